"""`clusterctl cable disable`: bad uplinks out of use, under a budget, until they are repaired."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.operations.documents import content
from clusterctl_cli.options import FILE, site_option, verbose_option

if TYPE_CHECKING:
    from clusterctl.cabling.health.findings import FabricLabels
    from clusterctl.cabling.isolation import CutPlan
    from clusterctl.fleet.fabric.port_acts import Out
    from clusterctl.fleet.fabric.topology import Fabric
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.isolation import Wish
    from clusterctl.ports import Claim, Deadline
    from clusterctl.steps.cable.isolation import Isolator


@click.command("disable", short_help="Take bad links between switches out of use.")
@click.option("--from", "findings", type=FILE, help="What `cable health --json` or `cable verify --json` printed.")
@click.option("--port", "ports", metavar="SWITCH:PORT", multiple=True, help="A link by one of its ports; repeatable.")
@click.option("--fabric", type=FILE, required=True, help="The reading that the links were judged by.")
@click.option("--reason", required=True, help="Why; it is journaled with your name.")
@click.option("--apply", "act", is_flag=True, help="Do it. Without this, only say what would be done.")
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
@site_option
@verbose_option
@click.pass_context
def disable(
    ctx: click.Context,
    *,
    findings: Path | None,
    ports: tuple[str, ...],
    fabric: Path,
    reason: str,
    act: bool,
    deadline: float,
    folder: Path,
) -> None:
    """Disable the ports of bad links between switches, and print a repair request by rack.

    At most the smaller of 10 links and 0.5 % (at least 1) are out at a time, one uplink of each switch, never the last
    of its twins and never a host's own rail: the host is to be quarantined instead. Nothing is done where more than
    10 % of the links are broken, or where a port does not lead where it led when it was judged.

    Exit code 0: all were, or would be, disabled; 1: some were refused.
    """
    from clusterctl.cabling.health.findings import fabric_labels
    from clusterctl.edges.site.contents import wiring_plan
    from clusterctl.operations.cabling_input import fabric_in
    from clusterctl.ports import Deadline
    from clusterctl.steps.cable.isolation import claimed
    from clusterctl_cli.context import open_context

    context, judged = open_context(folder), fabric_in(fabric)
    places = fabric_labels(judged, wiring_plan(context.site))
    wanted = _wanted(findings, ports, judged, places, reason)
    refused: list[int] = []

    def run(claim: Claim) -> None:
        refused.append(_run(context, claim, wanted, places, Deadline.after(deadline), act=act))

    claimed(context.journal, context.run, run)
    ctx.exit(1 if any(refused) else 0)


def _wanted(
    findings: Path | None, ports: tuple[str, ...], judged: Fabric, places: FabricLabels, reason: str
) -> tuple[Wish, ...]:
    from clusterctl.cabling.mass_failure import mass_failure
    from clusterctl.fleet.errors import UsageError
    from clusterctl.operations.fabric_readings import most_broken_percent
    from clusterctl.operations.isolation import Wish, links_by_name, port_named, read_findings, wishes

    links = links_by_name(judged.cables(), places)
    named = [Wish(links[port_named(port, links)], reason, "check the cable and both its ends") for port in ports]
    if findings is None and not named:
        raise UsageError("name what to disable", where="--from, --port", remedy="give findings, or ports")
    if findings is not None:
        found = read_findings(content(findings), str(findings))
        if not found.judged:
            remedy = "give all that `cable health --json` or `cable verify --json` printed"
            raise UsageError("it does not say how many links were judged", where=str(findings), remedy=remedy)
        if stop := mass_failure(found.broken, found.judged, most_broken_percent()):
            remedy = "repair their common cause, then judge the links again"
            raise UsageError(stop.reason, where=str(findings), remedy=remedy)
        named += wishes(found, links)
    return tuple(named)


def _run(
    context: SiteContext, claim: Claim, wanted: tuple[Wish, ...], places: FabricLabels, deadline: Deadline, *, act: bool
) -> int:
    """How many were refused, or could not be disabled."""
    from clusterctl.cabling.isolation import Cut, Isolation, plan_cuts
    from clusterctl.fleet.errors import EdgeError
    from clusterctl.fleet.event import Stream
    from clusterctl.fleet.fabric.port_acts import Out, standing
    from clusterctl.operations.isolation import isolator, twins_of

    hands = isolator(context, claim)
    out = standing(context.journal.latest(Stream.FABRIC))
    failed = _finish(hands, out, deadline) if act else 0
    known = {one.port for one in out}
    fabric, _ = hands.fabric(deadline)
    now = {frozenset((link.a, link.b)): link for link in fabric.cables()}
    by_link = {now.get(frozenset((w.link.a, w.link.b)), w.link): w for w in wanted}
    open_wishes = [link for link in by_link if known.isdisjoint((link.a, link.b))]
    twins = twins_of(places.labels.plan, places)
    plan = plan_cuts(fabric, open_wishes, Isolation(tuple(Cut(one.port, one.peer) for one in out), twins))
    done = []
    for cut in plan.cuts:
        link, wish = next((link, w) for link, w in by_link.items() if cut.port in (link.a, link.b))
        one = Out(cut.port, cut.peer, places.plain(cut.port), wish.why, sure=False, gbps=link.gbps)
        try:
            if act:
                hands.disable(one, deadline)
        except EdgeError as error:
            failed += 1
            click.echo(f"not done: {error}", err=True)
        else:
            done.append((one, wish))
    _tell(plan, done, places, act=act)
    return len(plan.refusals) + failed


def _finish(hands: Isolator, out: tuple[Out, ...], deadline: Deadline) -> int:
    """What a killed run meant to disable: looked at, and done where it was not. Returns how many could not be."""
    from clusterctl.fleet.errors import EdgeError

    failed = 0
    for one in out:
        if one.sure or one.enabling:
            continue
        try:
            hands.disable(one, deadline)
        except EdgeError as error:
            failed += 1
            click.echo(f"not done: {error}", err=True)
        else:
            click.echo(f"disabled, as a run that was stopped had begun: {one.label}")
    return failed


def _tell(plan: CutPlan, done: list[tuple[Out, Wish]], places: FabricLabels, *, act: bool) -> None:
    """The repair request, by rack; then what was refused."""
    from clusterctl.operations.isolation import in_words

    for one, wish in sorted(done, key=lambda pair: places.rack(pair[0].port, pair[0].peer)):
        click.echo(f"rack {places.rack(one.port, one.peer) or 'not told'}")
        click.echo(f"  {'disabled' if act else 'would disable'}: {in_words(one.port, places)}")
        click.echo(f"    other end: {in_words(one.peer, places)}; why: {wish.why}")
        click.echo(
            f"    repair: {wish.action}; then: clusterctl cable enable --port {one.label.replace(' port ', ':')}"
        )
    for refusal in plan.refusals:
        ends = " – ".join(places.plain(end) for end in places.ordered(refusal.link))
        click.echo(f"refused: {ends}: {refusal.reason}; {refusal.remedy}")
        if refusal.host is not None:
            end = next(end for end in (refusal.link.a, refusal.link.b) if end.guid == refusal.host)
            click.echo(f"    clusterctl quarantine {places.name(end).device} --reason …")
    click.echo(
        f"{len(done)} {'disabled' if act else 'to disable (nothing was done; --apply does it)'}, "
        f"{len(plan.refusals)} refused; out before: {plan.out}, budget: {plan.budget}"
    )
