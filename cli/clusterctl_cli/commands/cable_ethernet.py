"""`clusterctl cable verify --ethernet`: an Ethernet plan against LLDP neighbours, recorded or live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clusterctl.cabling.ethernet.verify import EthernetVerification
    from clusterctl.operations.network_cables import LiveReading, NetworkCablesRequest, NetworkCablesResult

_NAMED = 4
"""Cables without a measurement that are printed by name, for each reason."""


def verify_network_cables(request: NetworkCablesRequest, folder: Path | None, *, as_json: bool) -> int:
    """Compare and print; return the exit code. `folder`: the site with the hosts to read now; None: files only."""
    from clusterctl.operations import network_cables as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    if folder is None:
        result = operation.run_recorded(request)
    else:
        result = operation.run_live(open_context(folder), request, Control())
    if as_json:
        live = _live_json(result.live) if result.live is not None else {}
        print_document(_as_json(result.verification) | live)
    else:
        _print(result)
    return result.exit_code


def _live_json(live: LiveReading) -> dict[str, object]:
    return {
        "hosts_asked": len(live.evidence),
        "hosts_silent": [
            {"host": name, "reason": missing.reason, "remedy": missing.remedy}
            for name, missing in sorted(live.silent.items())
        ],
        "evidence": {name: list(digests) for name, digests in sorted(live.evidence.items())},
    }


def _as_json(verification: EthernetVerification) -> dict[str, object]:
    from clusterctl_cli.cabling_json import verification_json

    silent = [
        {"link": [str(item.cable.source), str(item.cable.destination)], "reason": item.reason}
        for item in verification.unmeasured
    ]
    disputed = [{"port": str(port), "reason": reason} for port, reason in sorted(verification.disputed.items())]
    return verification_json(verification) | {"not_measured": silent, "disputed": disputed}


def _by_reason(verification: EthernetVerification) -> dict[str, list[str]]:
    """Return the unmeasured cables, by reason."""
    found: dict[str, list[str]] = {}
    for item in verification.unmeasured:
        found.setdefault(item.reason, []).append(f"{item.cable.source} – {item.cable.destination}")
    return found


def _print(result: NetworkCablesResult) -> None:
    from rich.text import Text

    from clusterctl_cli.cabling_face import print_by_rack, wide_console

    console, verification = wide_console(), result.verification
    print_by_rack(console, verification.explanations)
    for reason, links in _by_reason(verification).items():
        shown = ", ".join(links[:_NAMED])
        more = f" and {len(links) - _NAMED} more, all named with --json" if len(links) > _NAMED else ""
        console.print(Text(f"not measured, {len(links)}: {reason}: {shown}{more}", style="magenta"))
    for port, reason in sorted(verification.disputed.items()):
        console.print(Text(f"disputed: what {port} reports: {reason}", style="magenta"))
    silent = result.live.silent if result.live is not None else {}
    for name, missing in sorted(silent.items()):
        console.print(Text(f"INCONCLUSIVE {name}: {missing.reason}", style="magenta"))
        console.print(Text(f"    → {missing.remedy}", style="yellow"))
    counts = (
        f"{verification.right} of {verification.planned} planned cables are proven, {verification.observed} observed"
    )
    good = result.exit_code == 0
    findings, unmeasured = len(verification.explanations), len(verification.unmeasured)
    doubts = f", {len(verification.disputed)} reports disputed" if verification.disputed else ""
    verdict = "all as planned" if good else f"{findings} to repair, {unmeasured} not measured{doubts}"
    console.print(Text(f"{counts}: {verdict}", style="green" if good else "red"))
