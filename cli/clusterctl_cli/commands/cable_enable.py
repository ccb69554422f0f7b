"""`clusterctl cable enable`: repaired links back into use, once they have proven themselves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl_cli.options import site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.cabling.health.judge import Health
    from clusterctl.fleet.fabric.limits import FabricLimits
    from clusterctl.fleet.fabric.port_acts import Out
    from clusterctl.fleet.fabric.topology import Link
    from clusterctl.fleet.finding import Observed
    from clusterctl.operations.context import SiteContext
    from clusterctl.ports import Claim, Deadline
    from clusterctl.steps.cable.isolation import Isolator

_SLACK = 1.01
"""Longer than the limit's interval, so that rounding never leaves it short."""


@click.command("enable", short_help="Bring repaired links back into use, once proven.")
@click.option("--port", "ports", metavar="SWITCH:PORT", multiple=True, help="Only these.  [default: all that are out]")
@click.option("--limits", default="ndr", show_default=True, help="Fabric limits by name, or a file of your own.")
@click.option("--apply", "act", is_flag=True, help="Do it. Without this, only say what would be done.")
@click.option(
    "--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds, besides the proof."
)
@site_option
@verbose_option
@click.pass_context
def enable(
    ctx: click.Context, *, ports: tuple[str, ...], limits: str, act: bool, deadline: float, folder: Path
) -> None:
    """Enable ports that `cable disable` took out, and prove the links by their error counters.

    A port must lead where it did, at the rate that it had and that most of its like have. Its counters are read twice,
    as far apart as the limits take to prove the bit error rate (12 minutes at 400 Gb/s); what came back slower, or is
    not proven healthy by then, is disabled again.

    Exit code 0: all are proven and in use; 1: some are not, and it says why.
    """
    from clusterctl.operations.fabric_readings import limits_named
    from clusterctl.ports import Deadline
    from clusterctl.steps.cable.isolation import claimed
    from clusterctl_cli.context import open_context

    context, figures = open_context(folder), limits_named(limits)
    bad: list[int] = []

    def run(claim: Claim) -> None:
        chosen = _chosen(context, ports)
        if not act:
            for one in chosen:
                click.echo(f"would enable and prove: {one.label} ({one.why})")
            return
        bad.append(_run(context, claim, chosen, figures, Deadline.after(deadline)))

    claimed(context.journal, context.run, run)
    ctx.exit(1 if any(bad) else 0)


def _chosen(context: SiteContext, ports: tuple[str, ...]) -> tuple[Out, ...]:
    from clusterctl.fleet.errors import UsageError
    from clusterctl.fleet.event import Stream
    from clusterctl.fleet.fabric.port_acts import standing

    out = {one.label: one for one in standing(context.journal.latest(Stream.FABRIC))}
    if not ports:
        return tuple(out.values())
    wanted = [f"{device} port {port}" for device, _, port in (text.rpartition(":") for text in ports)]
    unknown = [label for label in wanted if label not in out]
    if unknown:
        remedy = "clusterctl cable enable without --apply lists those that are"
        raise UsageError("it was not disabled by clusterctl", where=unknown[0], remedy=remedy)
    return tuple(out[label] for label in wanted)


def _run(context: SiteContext, claim: Claim, chosen: tuple[Out, ...], limits: FabricLimits, deadline: Deadline) -> int:
    """How many are not in use."""
    from clusterctl.fleet.errors import EdgeError
    from clusterctl.operations.isolation import isolator

    hands = isolator(context, claim)
    up, bad = [], 0
    for one in chosen:
        try:
            hands.enable(one, deadline)
        except EdgeError as error:
            bad += 1
            click.echo(f"not enabled: {error}")
        else:
            up.append(one)
    return bad + (_prove(context, hands, tuple(up), limits, deadline) if up else 0)


def _prove(context: SiteContext, hands: Isolator, up: tuple[Out, ...], limits: FabricLimits, deadline: Deadline) -> int:
    """How many were disabled again."""
    fabric, _ = hands.fabric(deadline)
    links = {frozenset((link.a, link.b)): link for link in fabric.links}
    found = {one: links.get(frozenset((one.port, one.peer))) for one in up}
    slow = _slower(context, fabric, found)
    for one, words in slow.items():
        hands.back_out(one, deadline)
        click.echo(f"disabled again: {one.label}: {words}")
    full = {one: link for one, link in found.items() if one not in slow}
    return len(slow) + (_watch(context, hands, fabric, full, limits=limits, deadline=deadline) if full else 0)


def _slower(context: SiteContext, fabric: Fabric, found: Mapping[Out, Link | None]) -> dict[Out, str]:
    """Those that came back below the rate that they had, or that most of their like have, in words."""
    from clusterctl.cabling.explain.explanation import RATE_KINDS
    from clusterctl.cabling.explain.verify import verify
    from clusterctl.edges.site.contents import wiring_plan

    judged = verify(wiring_plan(context.site), fabric)
    slow = {port: e.cause for e in judged.explanations if e.kind in RATE_KINDS for port in e.ports}
    words: dict[Out, str] = {}
    for one, link in found.items():
        if link is not None and link.gbps < one.gbps:
            words[one] = f"it came back at {link.rate} ({link.gbps:g} Gb/s), and had {one.gbps:g} Gb/s before"
        elif one.port in judged.names and judged.names[one.port] in slow:
            words[one] = slow[judged.names[one.port]]
    return words


def _watch(
    context: SiteContext,
    hands: Isolator,
    fabric: Fabric,
    found: Mapping[Out, Link | None],
    *,
    limits: FabricLimits,
    deadline: Deadline,
) -> int:
    """How many were disabled again, for what their counters gathered."""
    from clusterctl.cabling.health.symptoms import interval_s, span
    from clusterctl.operations.isolation import counter_reader
    from clusterctl.ports import Deadline

    seconds = _SLACK * max((interval_s(limits, link, "max") for link in found.values() if link), default=0.0)
    long = Deadline.after(deadline.remaining + seconds, deadline.cancelled)
    reader = counter_reader(context)
    before = reader.ibqueryerrors(long)
    click.echo(f"{len(found)} enabled; their counters are watched for {span(seconds)}", err=True)
    hands.wait(seconds, long)
    after = reader.ibqueryerrors(long)
    bad = 0
    for one, link in found.items():
        alone = Fabric(fabric.devices, (link,) if link is not None else ())
        judged = _judged(alone, before, after, limits)
        if judged.verdict.admits:
            proof = f"BER below {judged.proven_ber:g}"
            hands.proven(one, proof, (*before.evidence, *after.evidence))
            click.echo(f"in use: {one.label}: {proof}")
        else:
            bad += 1
            hands.back_out(one, long)
            causes = "; ".join(finding.cause for finding in judged.findings) or "its link went down again"
            click.echo(f"disabled again: {one.label}: {causes}")
    return bad


def _judged(alone: Fabric, before: Observed[str], after: Observed[str], limits: FabricLimits) -> Health:
    """The one link by itself; the readings are as far apart as their evidence says."""
    from clusterctl.cabling.health.findings import fabric_labels
    from clusterctl.cabling.health.judge import judge_health
    from clusterctl.cabling.health.symptoms import Window
    from clusterctl.formats.infiniband.fabric_file import decode_telemetry

    first, last = (
        decode_telemetry(one.value.encode(), alone, file="ibqueryerrors") if alone.links else Telemetry()
        for one in (before, after)
    )
    seconds = (after.evidence[0].at - before.evidence[0].at).total_seconds()
    return judge_health(alone, Window(first, last, seconds, limits), fabric_labels(alone))
