"""`clusterctl cable verify`: a wiring plan against a recorded ibnetdiscover, offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clusterctl.cabling.explain import Explanation
    from clusterctl.cabling.verify import Verification

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("verify")
@click.option("--plan", type=_FILE, required=True, help="wiring.csv or ibtopodiff .topo, gzipped or not")
@click.option("--fabric", type=_FILE, required=True, help="output of ibnetdiscover, gzipped or not")
@click.option("--host-gbps", type=click.FloatRange(min=0, min_open=True), help="rate that a host's link must have")
@click.option("--json", "as_json", is_flag=True, help="one JSON document on stdout")
@click.pass_context
def verify(ctx: click.Context, plan: Path, fabric: Path, host_gbps: float | None, as_json: bool) -> None:
    """Compare a wiring plan with a recorded fabric and say which cables to move.

    Exit code 0: everything is as planned; 1: something is not; 2: a file could not be read or understood.
    """
    verification = _verify(plan, fabric, host_gbps)
    if as_json:
        _print_json(verification)
    else:
        _print_for_people(verification)
    ctx.exit(1 if verification.explanations else 0)


def _verify(plan: Path, fabric: Path, host_gbps: float | None) -> Verification:
    from clusterctl.cabling.verify import verify as compare  # here, not above: keeps --help fast
    from clusterctl.fleet.errors import ParseError, UsageError
    from clusterctl.formats.ibnetdiscover import parse_ibnetdiscover
    from clusterctl.formats.wiring import decode_plan

    planned = decode_plan(_content(plan), file=str(plan))
    try:
        observed = parse_ibnetdiscover(_content(fabric).decode(), file=str(fabric))
    except UnicodeDecodeError as error:
        message = f"byte {error.start} is not UTF-8"
        raise UsageError(message, where=str(fabric), remedy="give the text that ibnetdiscover printed") from error
    except ParseError as error:
        raise UsageError(error.message, where=error.where, remedy=error.remedy) from error
    return compare(planned, observed, host_gbps=host_gbps)


def _content(file: Path) -> bytes:
    """The file's bytes, unpacked if it is gzip. Raises UsageError where it cannot be read."""
    import gzip
    import zlib

    from clusterctl.fleet.errors import UsageError

    try:
        data = file.read_bytes()
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error) as error:
        message = f"cannot be read: {error}"
        raise UsageError(message, where=str(file), remedy="give a readable, whole file") from error


def _print_json(verification: Verification) -> None:
    import json

    document = {
        "verdict": "fail" if verification.explanations else "pass",
        "summary": {
            "planned": verification.planned,
            "observed": verification.observed,
            "right": verification.right,
        },
        "findings": [_as_json(explanation) for explanation in verification.explanations],
    }
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def _as_json(explanation: Explanation) -> dict[str, object]:
    return {
        "kind": explanation.kind.value,
        "cause": explanation.cause,
        "action": explanation.action,
        "nodes": list(explanation.nodes),
        "ports": [{"device": port.device, "port": port.port} for port in explanation.ports],
        "rack": explanation.rack,
    }


def _print_for_people(verification: Verification) -> None:
    """By rack, so that one walk mends all of it."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    right = f"{verification.right} of {verification.planned} planned cables are right, {verification.observed} observed"
    by_rack: dict[str, list[Explanation]] = {}
    for explanation in verification.explanations:
        by_rack.setdefault(explanation.rack, []).append(explanation)
    for rack, explanations in sorted(by_rack.items()):
        console.print(Text(f"rack {rack}" if rack else "rack unknown", style="bold"))
        for explanation in explanations:
            console.print(Text(f"  {explanation.kind.value.replace('_', ' ')}: {explanation.cause}"))
            console.print(Text(f"    → {explanation.action}", style="yellow"))
    count = len(verification.explanations)
    verdict = f"{count} thing{'s' if count != 1 else ''} to mend" if count else "all as planned"
    console.print(Text(f"{right}: {verdict}", style="red" if count else "green"))
