"""`clusterctl cable health`: which links are ill, from two recorded readings of the counters, offline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.cabling_options import plan_option, sheet_option
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, duration_seconds, gathered, site_option

if TYPE_CHECKING:
    from clusterctl.cabling.health.findings import HealthFinding, PortRate
    from clusterctl.cabling.health.groups import HealthGroup
    from clusterctl.cabling.health.judge import FabricHealth
    from clusterctl.operations.link_health import HealthResult, LimitsUsed

_READINGS = "give --before and --after, or --since SPAN for the site's history"
_FABRIC_HELP = "Output of ibnetdiscover or iblinkinfo; a db_csv holds it itself."


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """The options of `health`."""

    folder: Path
    before: Path | None
    after: Path | None
    since: float | None
    fabric: Path | None
    plan: tuple[Path, ...]
    sheet: str
    seconds: float | None
    limits: str
    rates: bool
    as_json: bool


@click.command("health")
@click.option("--before", type=FILE, help="The first reading: ibqueryerrors, perfquery -x or db_csv.")
@click.option("--after", type=FILE, help="The second reading, likewise.")
@click.option("--since", callback=duration_seconds, metavar="SPAN", help="Judge the site's history of so long, as 7d.")
@site_option
@click.option("--fabric", type=FILE, help=_FABRIC_HELP)
@plan_option
@sheet_option
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Time between the two readings.")
@click.option(
    "--limits",
    default="",
    show_default="ndr, with --since the site's",
    help="Fabric limits by name, or a file of your own.",
)
@click.option("--rates", is_flag=True, help="With --json: also what passed every port, by direction.")
@format_option(*DOCUMENTS)
@click.pass_context
@gathered(HealthOptions)
def health(ctx: click.Context, options: HealthOptions) -> None:
    """Judge links by what their counters gathered between two readings, or over the site's history.

    With --since the readings are those that steps, nights and burns have kept in the journal of --site.
    The time in between comes from --seconds, or from a comment with the time in both files, as
    `(date -u +'# %Y-%m-%dT%H:%M:%SZ'; ibqueryerrors) > before` writes it.

    Exit code 0: every link is proven healthy; 1: some are not; 2: a file could not be read or understood.
    """
    from clusterctl.operations import link_health
    from clusterctl.operations.fabric_files import PlanFiles

    if options.since is not None:
        from clusterctl_cli.context import open_context

        _require_no_files(options)
        result = link_health.run_history(open_context(options.folder), options.since, options.limits)
        _print(result, options)
        ctx.exit(result.exit_code)
    if options.before is None or options.after is None:
        raise UsageError("no readings are named", where="cable health", remedy=_READINGS)
    request = link_health.ReadingsRequest(
        before=options.before,
        after=options.after,
        fabric=options.fabric,
        plan=PlanFiles(options.plan, options.sheet),
        seconds=options.seconds,
        limits=options.limits or "ndr",
    )
    result = link_health.run_health(request)
    _print(result, options)
    ctx.exit(result.exit_code)


def _require_no_files(options: HealthOptions) -> None:
    given: dict[str, object] = {
        "--before": options.before,
        "--after": options.after,
        "--fabric": options.fabric,
        "--plan": options.plan,
        "--seconds": options.seconds,
    }
    for name, value in given.items():
        if value:
            raise UsageError("--since reads the site's history, not files", where=name, remedy=f"leave {name} out")


def _print(result: HealthResult, options: HealthOptions) -> None:
    if options.as_json:
        _print_document(result.health, result.limits, result.rates if options.rates else ())
    else:
        print_health(result.health)


def health_document(found: FabricHealth) -> dict[str, object]:
    """Return the health as data for JSON, without the limits."""
    return {
        "verdict": found.verdict.value,
        "links": found.links,
        "proven": found.proven,
        "bad": found.bad,
        "seconds": found.seconds,
        "proven_ber": found.proven_ber,
        "stop": found.stop.reason if found.stop else "",
        "not_measured": list(found.not_measured),
        "groups": [_group_as_json(one) for one in found.groups],
        "findings": [_as_json(finding, found) for finding in found.findings],
    }


def _print_document(found: FabricHealth, limits: LimitsUsed, rates: Iterable[PortRate]) -> None:
    from clusterctl_cli.formats import print_document

    document = health_document(found) | {"limits": {"name": limits.name, "digest": limits.digest}}
    ports = [
        {
            "device": rate.port.device,
            "port": rate.port.port,
            "gbps": rate.gbps,
            "sent_gbps": rate.sent_gbps,
            "received_gbps": rate.received_gbps,
            "errors_per_second": dict(rate.errors),
        }
        for rate in rates
    ]
    print_document(document | ({"ports": ports} if ports else {}))


def _group_as_json(group: HealthGroup) -> dict[str, object]:
    return {
        "kind": group.kind.value,
        "verdict": group.verdict.value,
        "shared": group.shared.value,
        "value": group.value,
        "count": group.count,
        "population": group.population,
        "of": "modules" if group.modules else "links",
        "cause": group.cause,
        "action": group.action,
        "rack": group.rack,
        "members": [list(member.subjects) for member in group.members],
    }


def _as_json(finding: HealthFinding, found: FabricHealth) -> dict[str, object]:
    hours = found.seconds / 3600
    return {
        "kind": finding.kind.value,
        "verdict": finding.verdict.value,
        "subjects": list(finding.subjects),
        "cause": finding.cause,
        "action": finding.action,
        "links": finding.links,
        "ports": [{"device": end.device, "port": end.port} for end in finding.ends],
        "rack": finding.rack,
        "counters": [
            {"device": end.device, "port": end.port, "counter": counter, "added": added, "per_hour": added / hours}
            for end, counter, added in finding.counters
        ],
        "modules": [
            {"device": end.device, "port": end.port, "part": part, "serial": serial}
            for end, part, serial in finding.modules
        ],
        "group": next((group.value for group in found.groups if any(one is finding for one in group.members)), ""),
    }


def print_health(found: FabricHealth) -> None:
    """Print the groups, then the other findings by rack, then the counts."""
    from itertools import groupby

    from rich.text import Text

    from clusterctl.cabling.health.groups import ungrouped
    from clusterctl.cabling.labels import shortened
    from clusterctl_cli.cabling_face import wide_console

    console = wide_console()
    for group in found.groups:
        console.print(Text(f"{group.verdict.name} {group.kind.value.replace('_', ' ')}: {group.cause}", style="bold"))
        console.print(Text(f"  → {group.action}", style="yellow"))
        links = shortened(" – ".join(member.subjects) for member in group.members)
        console.print(Text(f"  links: {links}"))
    single = list(ungrouped(found.findings, found.groups))
    for rack, findings in groupby(single, key=lambda finding: finding.rack):
        console.print(Text(f"rack {rack}" if rack else "rack unknown", style="bold"))
        for finding in findings:
            console.print(Text(f"  {finding.verdict.name} {finding.kind.value.replace('_', ' ')}: {finding.cause}"))
            console.print(Text(f"    → {finding.action}", style="yellow"))
    if found.not_measured:
        console.print(Text(f"not in these readings: {', '.join(found.not_measured)}"))
    if found.stop:
        console.print(Text(found.stop.reason, style="bold red"))
    proven = f" to a bit error rate below {found.proven_ber:g}" if found.proven_ber else ""
    counts = f"{found.proven} of {found.links} links are proven healthy{proven}, bad ones: {found.bad}"
    console.print(Text(counts, style="green" if found.verdict.admits else "red"))
