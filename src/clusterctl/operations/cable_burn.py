"""The burn of the fabric: free hosts load every link in both directions, and counters judge each link.

Gold nodes take part where the scheduler has no work for them, and have work again afterwards. A burn that was killed
goes on where the journal has its last stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.cabling.burn.coverage import BurnReport
from clusterctl.cabling.burn.plan import BurnPlan
from clusterctl.cabling.burn.routes import Routes, lay_routes
from clusterctl.cabling.burn.scope import BurnScope, hosts_across, hosts_for, named_links
from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.history import known_modules
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid, NodeId, Stage
from clusterctl.fleet.payloads.runs import BurnEnded, BurnStageMeasured, BurnStarted
from clusterctl.fleet.selectors import matching
from clusterctl.fleet.state import NodeState
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.infiniband.opensm import parse_dump_fts
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.burn_work import BurnWork, work_after
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.operation import Control, Effect, Event, Preview
from clusterctl.operations.partners import PartnerLender
from clusterctl.ports import Claim, Deadline
from clusterctl.ports.scheduler import PREFIX, Occupancy, Use
from clusterctl.steps.executor.lease import kept, sole_claim
from clusterctl.steps.fabric_burn import BurnHost, BurnServices, BurnSettings, FabricBurn, look_at

NAME = "cable burn"
PURPOSE = "cable-burn"
"""Names the operation in the reason of its drains, which has no space: `is_returnable`."""
CLAIM = NodeId("fabric burn")
LOOK_S = 600.0
"""Seconds for all hosts to report their adapters, and for the fabric to be read."""
LONGER = 10
"""A stage may take so many times as long as the operator asked for, where a reading of the counters takes long."""
FEWEST = 2
GOES_ON = timedelta(days=3)
"""A burn that was stopped longer ago does not go on."""
_FREE = (Stage.CONFIGURED, Stage.CABLED, Stage.BURNED_IN, Stage.GOLD)
"""Stages from which on a host can take part; others only where they are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CableBurnRequest:
    """What is burned, and for how long.

    nodes       names and patterns; none: all free hosts
    rails       that are loaded; none: all
    leaves      switches whose links are loaded, by name; none: all
    links       single links that are loaded, each by one of its ports, SWITCH:PORT; none: all
    stage_s     seconds for which a stage loads its links; where reading counters is slow, up to `LONGER` times as many
    for_s       seconds for which links are loaded again and again; None: each link once
    adaptive    the switches route adaptively
    limits      fabric limits by name, or a file; empty: the site's
    within_s    seconds after which a burn without `for_s` ends in any case
    """

    nodes: tuple[str, ...] = ()
    rails: tuple[int, ...] = ()
    leaves: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    stage_s: int = 600
    for_s: float | None = None
    adaptive: bool = False
    limits: str = ""
    within_s: float = 7 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CableBurnResult:
    """What the burn has proven.

    hosts     that took part to the end
    skipped   hosts that could not take part, with the reason
    stages    number of stages, of a killed run of the same burn too
    report    None where no stage came to its end
    stopped   why it ended before every link was loaded; empty where all were
    stuck     nodes that could not be given back to the scheduler, with the reason
    work      what is to be done; None where no stage came to its end
    """

    hosts: tuple[str, ...]
    skipped: Mapping[str, str]
    stages: int
    report: BurnReport | None
    goal: float
    stopped: str = ""
    stuck: Mapping[str, str] = field(default_factory=dict)
    work: BurnWork | None = None
    cancelled: bool = False

    @property
    def exit_code(self) -> int:
        """0: every direction of every link was loaded and is healthy; 1: some are not; 130: cancelled."""
        if self.cancelled:
            return CancelledError.exit_code
        found = self.report
        proven = found is not None and all(one.verdict.admits for one in found.directions)
        healthy = found is not None and not found.health.bad and found.health.stop is None
        return 0 if proven and healthy and not self.stopped and not self.stuck else 1


@dataclass(frozen=True, slots=True)
class _Hosts:
    """Hosts that take part, and of the others why not. `gold`: those that the scheduler must keep work off."""

    states: tuple[NodeState, ...]
    skipped: dict[str, str]
    gold: tuple[str, ...]


def preview(context: SiteContext, request: CableBurnRequest) -> Preview:
    """Return which hosts would load which links. Reads hosts and fabric; changes nothing."""
    with closing(context.adapters(Access.READ)) as adapters:
        chosen = _chosen(context, adapters, request)
        services = StepFactory(context, adapters, Control().cancelled).fabric_burn()
        hosts = _look(services, chosen.states, chosen.skipped, Deadline.after(LOOK_S))
        burn = FabricBurn(services, _settings(context, request), hosts, "", Claim(CLAIM, "", 0), _ignore)
        earlier = None if request.links else _unfinished(context)
        recalled = burn.recall(earlier.stages) if earlier and not earlier.hindrance(request) else 0
        plan = burn.ready(Deadline.after(LOOK_S)).plan
    stages = len(plan.stages.stages)
    effects = tuple(
        Effect(node=name, text=f"send and receive on {_adapters(len(one.rails))}{_drained(name, chosen.gold)}")
        for name, one in sorted(hosts.items())
    )
    minutes = stages * request.stage_s / 60
    question = f"Load the fabric's links from {len(hosts)} hosts in {stages} stages ({minutes:.0f} min)?"
    return Preview(
        operation=NAME,
        question=question,
        effects=effects,
        skipped=chosen.skipped,
        warnings=(*_of_earlier(earlier, recalled, request), *_warnings(plan, _scope(request))),
    )


def run(context: SiteContext, request: CableBurnRequest, control: Control) -> CableBurnResult:
    """Burn the fabric, or go on with a burn that was killed. Raises `UsageError` where another one runs."""
    if control.approved is not None:
        control.require(preview(context, request))
    with (
        closing(context.adapters()) as adapters,
        sole_claim(context.journal, CLAIM, context.run, control.cancelled.set) as claim,
    ):
        chosen = _chosen(context, adapters, request)
        stuck: dict[str, str] = {}
        with _taken(context, adapters, chosen, stuck) as states, _claimed(context, states, chosen, control) as mine:
            services = StepFactory(context, adapters, control.cancelled).fabric_burn()
            hosts = _look(services, mine, chosen.skipped, Deadline.after(LOOK_S, control.cancelled))

            def on_event(text: str) -> None:
                control.on_event(Event(text=text))

            earlier = _going_on(context, request, claim, on_event)
            subject = earlier.subject if earlier else context.run
            burn = FabricBurn(services, _settings(context, request), hosts, subject, claim, on_event)
            result = _run(burn, earlier.stages if earlier else (), request, control, chosen.skipped, stuck)
        report, fabric = result.report, burn.coverage.latest
        if report is None or fabric is None:
            return result
        return replace(result, work=work_after(context, fabric, report.health))


def _run(
    burn: FabricBurn,
    stages: Sequence[BurnStageMeasured],
    request: CableBurnRequest,
    control: Control,
    skipped: Mapping[str, str],
    stuck: Mapping[str, str],
) -> CableBurnResult:
    burn.start()
    recalled = burn.recall(stages)
    if recalled:
        control.on_event(Event(text=f"{recalled} stages of a burn that was stopped count"))
    stopped = ""
    try:
        stopped = burn.run(Deadline.after(request.for_s or request.within_s, control.cancelled))
    except CancelledError:
        if not control.cancelled.is_set():
            raise
    return CableBurnResult(
        hosts=tuple(sorted(burn.hosts)),
        skipped=skipped,
        stages=burn.stages,
        report=burn.report(),
        goal=burn.settings.limits.value("burn_goal"),
        stopped=stopped,
        stuck=stuck,
        cancelled=control.cancelled.is_set(),
    )


def _ignore(_text: str) -> None:
    """Discard an event of a preview."""


def _adapters(count: int) -> str:
    return f"{count} adapter{'s' * (count != 1)}"


def _drained(name: str, gold: Sequence[str]) -> str:
    return "; the scheduler keeps jobs off it meanwhile" if name in gold else ""


def _warnings(plan: BurnPlan, scope: BurnScope) -> Iterator[str]:
    if plan.routing.problem:
        yield plan.routing.problem
    if plan.unreached and (scope.whole or scope.leaves or scope.links):
        some = ", ".join(one.link for one in plan.unreached[:5])
        more = f" and {len(plan.unreached) - 5} more" if plan.unreached[5:] else ""
        yield f"{len(plan.unreached)} directed links are loaded by no flow of these hosts: {some}{more}"


def _scope(request: CableBurnRequest) -> BurnScope:
    ports = (text.rpartition(":") for text in request.links)
    return BurnScope(
        rails=frozenset(request.rails),
        leaves=frozenset(request.leaves),
        links=frozenset(PortName(device, port) for device, _, port in ports),
        named=bool(request.nodes),
    )


def _settings(context: SiteContext, request: CableBurnRequest) -> BurnSettings:
    return BurnSettings(
        scope=_scope(request),
        stage_s=request.stage_s,
        longest_s=LONGER * request.stage_s,
        cycles=1 if request.for_s is None else None,
        adaptive=request.adaptive,
        limits=limits_for(context.site, request.limits),
        plan=wiring_plan(context.site),
        modules=known_modules(context.journal.latest(Stream.FABRIC, Kind.FABRIC_TRANSCEIVER_SEEN)),
        nodes=request.nodes,
    )


def _chosen(context: SiteContext, adapters: Adapters, request: CableBurnRequest) -> _Hosts:
    """Return the nodes that may take part: free of jobs, holds and doubts about their stage."""
    scheduler, now = adapters.scheduler, CLOCK.now()
    known = scheduler.look(Deadline.after(LOOK_S)).value if scheduler is not None else {}
    states, skipped = [], {}
    for state in context.states(_wanted(context, request)):
        reason = _hindrance(state, known, named=bool(request.nodes), scheduled=scheduler is not None)
        if state.held(now):
            reason = "an operator holds it"
        if reason:
            skipped[state.name] = reason
        else:
            states.append(state)
    needed = _needed(context, adapters, request, states)
    states = [state for state in states if state.name in needed or _is_left(known.get(state.name))]
    gold = tuple(state.name for state in states if state.in_pool(now))
    return _Hosts(tuple(states), skipped, gold)


def _is_left(use: Occupancy | None) -> bool:
    """Return whether a burn that was killed keeps jobs off the node: this one gives it back."""
    return use is not None and use.use is Use.OUT and use.reason.startswith(f"{PREFIX}{PURPOSE}:")


def _needed(
    context: SiteContext, adapters: Adapters, request: CableBurnRequest, states: Sequence[NodeState]
) -> frozenset[str]:
    """Return the names of the hosts that the burn needs: for single links those whose packets cross them.

    Raises `UsageError` where no link is up at a port that is named.
    """
    scope, plan, free = _scope(request), wiring_plan(context.site), [state.name for state in states]
    if not scope.links:
        return hosts_for(scope, plan, free)
    deadline = Deadline.after(LOOK_S)
    fabric = parse_ibnetdiscover(adapters.fabric.ibnetdiscover(deadline).value, file="ibnetdiscover")
    tables = parse_dump_fts(adapters.tables.dump_fts(deadline).value.splitlines(), file="dump_fts")
    labels = fabric_labels(fabric, plan)
    up = {labels.name(end) for link in fabric.cables() for end in (link.a, link.b)}
    if missing := sorted(map(str, scope.links - up)):
        raise UsageError("no link is up at this port", where=missing[0], remedy="write it as SWITCH:PORT")
    routes = _named_routes(lay_routes(fabric, tables), states)
    single = named_links(replace(scope, leaves=frozenset()), fabric, plan) or frozenset()
    return hosts_across(routes, single, free) | (
        hosts_for(replace(scope, links=frozenset()), plan, free) if scope.leaves else frozenset()
    )


def _named_routes(routes: Routes, states: Sequence[NodeState]) -> Routes:
    """Return the routes with each adapter's host as the BMC's inventory has it; else by the adapter's description."""
    hosts = {guid: state.name for state in states for guid in _adapters_by_bmc(state)}
    named = (
        replace(end, name=replace(end.name, device=hosts.get(end.port.guid, end.name.device)))
        for end in routes.endpoints
    )
    return replace(routes, endpoints=tuple(named))


def _wanted(context: SiteContext, request: CableBurnRequest) -> list[str]:
    """Return the names of the nodes that the request selects, in the order of the site."""
    names = [node.name for node in context.listed() if node.stage is not Stage.RETIRED]
    wanted = matching(names, request.nodes, "NODE")
    return [name for name in names if name in wanted]


def _hindrance(state: NodeState, known: Mapping[str, Occupancy], *, named: bool, scheduled: bool) -> str:
    """Return why the node cannot take part; empty where it can."""
    if not named and (state.stage not in _FREE or state.stopped_at is not None):
        return f"it is {state.stage.value}: name it, if it is to take part all the same"
    is_gold = state.stage is Stage.GOLD
    if is_gold and not scheduled:
        return "jobs may run on it: the site names no scheduler that knows"
    return _at_work(known.get(state.name), is_gold=is_gold)


def _at_work(use: Occupancy | None, *, is_gold: bool) -> str:
    """Return what the scheduler reports of a node that it uses; empty where the node is free."""
    if use is None or _is_left(use):
        return ""
    hinders = use.use is not Use.IDLE if is_gold else use.use is Use.BUSY
    return f"the scheduler reports it as {use.state or use.use.value}" if hinders else ""


def _look(
    services: BurnServices, states: Sequence[NodeState], skipped: dict[str, str], deadline: Deadline
) -> dict[str, BurnHost]:
    """Return the hosts by name, with their adapters; note in `skipped` those that cannot take part."""
    with ThreadPoolExecutor(max(1, min(256, len(states))), "look") as pool:
        answers = pool.map(lambda state: look_at(services, state, deadline), states)
        found = {state.name: answer for state, answer in zip(states, answers, strict=True)}
    hosts = {name: one for name, one in found.items() if isinstance(one, BurnHost)}
    skipped |= {name: one for name, one in found.items() if isinstance(one, str)}
    _drop_claimed_twice(hosts, states, skipped)
    if len(hosts) < FEWEST:
        why = "; ".join(f"{name}: {reason}" for name, reason in list(skipped.items())[:5])
        raise UsageError(
            f"{len(hosts)} hosts can take part, a burn needs two{f' ({why})' if why else ''}",
            where="NODE",
            remedy="bring more hosts to the stage configured, or wait until their jobs have ended",
        )
    return hosts


def _drop_claimed_twice(hosts: dict[str, BurnHost], states: Sequence[NodeState], skipped: dict[str, str]) -> None:
    """Leave out hosts that report an adapter of another host as theirs; the one whose BMC has it as well stays."""
    claims = Counter(guid for one in hosts.values() for guid in one.rails)
    by_bmc = {state.name: _adapters_by_bmc(state) for state in states}
    for name, one in list(hosts.items()):
        foreign = [guid for guid in one.rails if claims[guid] > 1 and guid not in by_bmc[name]]
        if foreign:
            skipped[name] = f"it reports the adapter {foreign[0]}, and so does another host"
            del hosts[name]


def _adapters_by_bmc(state: NodeState) -> frozenset[Guid]:
    hcas = state.inventory.hcas if state.inventory else None
    return frozenset(hca.guid for hca in hcas or () if hca.guid is not None)


@contextmanager
def _taken(
    context: SiteContext, adapters: Adapters, chosen: _Hosts, stuck: dict[str, str]
) -> Iterator[tuple[NodeState, ...]]:
    """Keep jobs off the gold nodes for the time; yield the nodes that could be had."""
    if not chosen.gold or adapters.scheduler is None:
        yield chosen.states
        return
    lender = PartnerLender(context, adapters.scheduler, PURPOSE)
    occupancy = lender.occupancy()
    ours = [name for name in chosen.gold if _is_left(occupancy.get(name))]
    taken, refused = lender.take([name for name in chosen.gold if name not in ours])
    chosen.skipped.update(refused)
    try:
        yield tuple(state for state in chosen.states if state.name not in refused)
    finally:
        stuck.update(lender.give_back([*taken, *ours]))


def give_back_left(context: SiteContext) -> Mapping[str, str]:
    """Give gold nodes back to the scheduler that a killed burn keeps jobs off; none while a burn runs.

    Return those that cannot be given back, with the reason.
    """
    claims = context.journal.claim([CLAIM], context.run)
    if CLAIM not in claims.granted:
        return {}
    try:
        with closing(context.adapters(Access.READ)) as adapters:
            if adapters.scheduler is None:
                return {}
            lender, now = PartnerLender(context, adapters.scheduler, PURPOSE), CLOCK.now()
            left = {name for name, use in lender.occupancy().items() if _is_left(use)}
            gold = [node.name for node in context.journal.summaries() if node.name in left and node.in_pool(now)]
            return lender.give_back(gold)
    finally:
        context.journal.release(claims.granted.values())


@contextmanager
def _claimed(
    context: SiteContext, states: Sequence[NodeState], chosen: _Hosts, control: Control
) -> Iterator[tuple[NodeState, ...]]:
    """Claim the nodes for the time; yield those that no other run has."""
    names = {state.id: state.name for state in states}
    claims = context.journal.claim(names, context.run)
    chosen.skipped.update({names[node]: holder for node, holder in claims.refused.items()})
    try:
        with kept(context.journal, claims.granted, control.cancelled.set):
            yield tuple(state for state in states if state.id in claims.granted)
    finally:
        context.journal.release(claims.granted.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """A burn that never ended: its stages, what it was ordered for, and when it wrote its last event (UTC)."""

    subject: str
    ordered: BurnStarted
    stages: tuple[BurnStageMeasured, ...]
    last: datetime

    def hindrance(self, request: CableBurnRequest) -> str:
        """Return why this request does not go on with it; empty where it does."""
        ours = (tuple(sorted(set(request.rails))), tuple(sorted(set(request.leaves))), request.nodes)
        if (self.ordered.rails, self.ordered.leaves, self.ordered.nodes) != ours:
            return "a burn of another scope was ordered"
        if CLOCK.now() - self.last > GOES_ON:
            return f"it was stopped more than {GOES_ON.days} days ago, and cables may have been moved since"
        return ""


def _unfinished(context: SiteContext) -> _Earlier | None:
    """Return the burn that never ended; None where there is none. A burn of single links is short: it begins again."""
    started = [
        (event.subject, event.payload)
        for event in context.journal.latest(Stream.CAMPAIGN, Kind.BURN_STARTED)
        if isinstance(event.payload, BurnStarted) and not event.payload.links
    ]
    if not started:
        return None
    subject, ordered = started[-1]
    events = list(context.journal.history(Stream.CAMPAIGN, subject))
    if any(isinstance(event.payload, BurnEnded) for event in events):
        return None
    stages = tuple(event.payload for event in events if isinstance(event.payload, BurnStageMeasured))
    return _Earlier(subject=subject, ordered=ordered, stages=stages, last=events[-1].at)


def _going_on(
    context: SiteContext, request: CableBurnRequest, claim: Claim, on_event: Callable[[str], None]
) -> _Earlier | None:
    """Return the burn that the request goes on with. One that it does not go on with is ended, with the reason."""
    earlier = None if request.links else _unfinished(context)
    reason = earlier.hindrance(request) if earlier else ""
    if earlier is None or not reason:
        return earlier
    on_event(f"the burn of {earlier.last:%Y-%m-%d %H:%M} UTC, which was stopped, does not count: {reason}")
    context.journal.append([NewEvent(Stream.CAMPAIGN, earlier.subject, BurnEnded(reason=reason))], claim=claim)
    return None


def _of_earlier(earlier: _Earlier | None, recalled: int, request: CableBurnRequest) -> Iterator[str]:
    """Yield what becomes of a burn that was stopped."""
    if earlier is None or not earlier.stages:
        return
    reason = earlier.hindrance(request)
    counts = f"does not count: {reason}" if reason else f"goes on: {recalled} of its stages count"
    yield f"the burn of {earlier.last:%Y-%m-%d %H:%M} UTC, which was stopped, {counts}"
