"""`clusterctl cable verify --ethernet`: an Ethernet plan against LLDP neighbours, recorded or live."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.operations.documents import content

if TYPE_CHECKING:
    from clusterctl.cabling.ethernet.verify import EthernetVerification
    from clusterctl.fleet.fabric.wiring import WiringPlan
    from clusterctl.operations.context import SiteContext
    from clusterctl.steps.cable.lldp import LldpReadings

_NAMED = 4
"""Cables without a measurement that people see by name, for each reason."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What to compare: `plan` (None: the site's) with `recorded` files, named after the device that printed them
    (`node001.json`), or folders of such; and, where `live`, with what the hosts of the site in `folder` hear now.
    """

    plan: Path | None
    recorded: tuple[Path, ...]
    live: bool
    folder: Path
    deadline_s: float


def verify_ethernet_cables(sources: Sources, *, as_json: bool) -> int:
    """Print the answer; exit code 0 where every planned cable was heard and no other, else 1."""
    from clusterctl.cabling.ethernet.verify import verify_ethernet
    from clusterctl.operations.lldp_recorded import recorded_reports
    from clusterctl_cli.formats import print_document

    if not sources.live:
        _require_files(sources)
    context = _context(sources.folder) if sources.live else None
    plan = _plan(sources.plan, context)
    reports = recorded_reports(sources.recorded)
    heard = _asked(context, plan, sources.deadline_s) if context is not None else None
    reasons = heard.reasons if heard is not None else {}
    verification = verify_ethernet(plan, {**(heard.reports if heard else {}), **reports}, reasons)
    if as_json:
        print_document(_as_json(verification) | (_heard_json(heard) if heard is not None else {}))
    else:
        _print(verification, heard)
    silent = heard is not None and heard.unheard
    return 1 if verification.explanations or verification.unmeasured or silent else 0


def _require_files(sources: Sources) -> None:
    from clusterctl.fleet.errors import UsageError

    if sources.plan is None or not sources.recorded:
        option = "--ethernet" if sources.plan is None else "--lldp"
        remedy = "give --ethernet and --lldp together, or --live"
        raise UsageError("it is required", where=option, remedy=remedy)


def _context(folder: Path) -> SiteContext:
    from clusterctl_cli.context import open_context

    return open_context(folder)


def _plan(file: Path | None, context: SiteContext | None) -> WiringPlan:
    from clusterctl.fleet.errors import UsageError
    from clusterctl.fleet.fabric.wiring import settle
    from clusterctl.formats.file_text import text_in
    from clusterctl.formats.wiring.csv_plan import read_ethernet_csv

    if file is not None:
        return settle(read_ethernet_csv(text_in(content(file), str(file)), str(file)))
    plan = _plan_of(context) if context is not None else None
    if plan is None:
        remedy = "give --ethernet FILE, or name the file in site.yml: fabric.ethernet"
        raise UsageError("the site names no Ethernet plan", where="--ethernet", remedy=remedy)
    return plan


def _plan_of(context: SiteContext) -> WiringPlan | None:
    from clusterctl.edges.site.contents import ethernet_plan

    return ethernet_plan(context.site)


def _asked(context: SiteContext, plan: WiringPlan, seconds: float) -> LldpReadings:
    from clusterctl.operations.lldp_live import live_audience
    from clusterctl.ports import Deadline

    return live_audience(context, plan.hosts, Deadline.after(seconds))


def _heard_json(heard: LldpReadings) -> dict[str, object]:
    return {
        "hosts_asked": len(heard.evidence),
        "hosts_silent": [
            {"host": name, "reason": unheard.reason, "remedy": unheard.remedy}
            for name, unheard in sorted(heard.unheard.items())
        ],
        "evidence": {name: [item.digest for item in found] for name, found in sorted(heard.evidence.items())},
    }


def _as_json(verification: EthernetVerification) -> dict[str, object]:
    from clusterctl_cli.cabling_json import verification_json

    silent = [
        {"link": [str(item.cable.source), str(item.cable.destination)], "reason": item.reason}
        for item in verification.unmeasured
    ]
    return verification_json(verification) | {"not_measured": silent}


def _by_reason(verification: EthernetVerification) -> dict[str, list[str]]:
    """Cables that were not measured, by why."""
    found: dict[str, list[str]] = {}
    for item in verification.unmeasured:
        found.setdefault(item.reason, []).append(f"{item.cable.source} – {item.cable.destination}")
    return found


def _print(verification: EthernetVerification, heard: LldpReadings | None) -> None:
    from rich.text import Text

    from clusterctl_cli.cabling_face import print_by_rack, wide_console

    console = wide_console()
    print_by_rack(console, verification.explanations)
    for reason, links in _by_reason(verification).items():
        shown = ", ".join(links[:_NAMED])
        more = f" and {len(links) - _NAMED} more, all named with --json" if len(links) > _NAMED else ""
        console.print(Text(f"not measured, {len(links)}: {reason}: {shown}{more}", style="magenta"))
    unheard = heard.unheard if heard is not None else {}
    for name, why in sorted(unheard.items()):
        console.print(Text(f"INCONCLUSIVE {name}: {why.reason}", style="magenta"))
        console.print(Text(f"    → {why.remedy}", style="yellow"))
    told = f"{verification.right} of {verification.planned} planned cables are heard, {verification.observed} observed"
    good = not verification.explanations and not verification.unmeasured and not unheard
    findings, silent = len(verification.explanations), len(verification.unmeasured)
    verdict = "all as planned" if good else f"{findings} to mend, {silent} not measured"
    console.print(Text(f"{told}: {verdict}", style="green" if good else "red"))
