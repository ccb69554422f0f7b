"""Nightly burn-in: gold nodes out of work, burned in and back, batch after batch, until the window closes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import Site, contents
from clusterctl.edges.site.night_record import read_record, write_record
from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import ClaimLostError, ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.nightly.policy import TOGETHER, NightCandidate, NightPolicy, choose, overdue, require_affordable
from clusterctl.fleet.nightly.record import NightRecord
from clusterctl.fleet.nightly.window import Opening, Window, parse_window
from clusterctl.fleet.node import NodeId, RevalidationOrigin, Stage, Step
from clusterctl.fleet.payloads.hardware import FabricLinksJudged
from clusterctl.fleet.payloads.runs import NightEnded, NightStarted
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.fleet.state import NodeState, NodeSummary, Revalidation
from clusterctl.operations import notify
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.bootstrap import RunRequest, run_steps
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish, spares
from clusterctl.operations.night_policy import policy_of
from clusterctl.operations.operation import Control, Effect, Preview
from clusterctl.operations.partners import MAINTAIN, SCHEDULER_S, PartnerLender
from clusterctl.operations.runner import claimed
from clusterctl.operations.site_facts import require_scheduler, state_dir
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import PREFIX, Occupancy, Use
from clusterctl.site.scheduling import NightlySettings, zone_named
from clusterctl.steps.executor.lease import sole_claim

NAME = "burnin nightly"
NIGHTLY = "nightly"
STEPS = (Step.BURNIN, Step.ADMIT)
LINKS_S = 600.0
"""Seconds for the fabric and the counters of its ports to be read."""
CLAIM = NodeId("nightly")
"""One night at a time: two would each take what the site spares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRequest:
    """None: the site's value. `window`: `02:00-05:00`; `budget`: percent of the gold nodes that may be out of work."""

    window: str | None = None
    budget: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NightResult:
    """What became of a night.

    tested       names of the nodes that had a turn; `failed` those of them that are not gold
    overdue      gold nodes with evidence that is too old
    passed_over  nodes that could not be had, with the reason: they had no turn
    stuck        nodes that could not be given back to the scheduler, with the reason
    ended        why no more nodes were taken
    spares       None where the site does not give the number of nodes that its work needs
    links        the health of the fabric's links over the last day; None where no SKU has InfiniBand
    """

    tested: tuple[str, ...]
    failed: tuple[NodeSummary, ...]
    overdue: tuple[str, ...]
    passed_over: dict[str, str]
    stuck: dict[str, str]
    ended: str
    spares: Spares | None = None
    links: FabricLinksJudged | None = None

    @property
    def exit_code(self) -> int:
        """1 where a node failed, its evidence is too old, or it could not be given back."""
        return 1 if self.failed or self.overdue or self.stuck else 0


@dataclass(slots=True)
class Night:
    """A night as it goes; the fields are `NightResult`'s."""

    tested: list[str] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, str] = field(default_factory=dict)
    ended: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstChoice:
    """The nodes that the next night would take first if every node stayed as idle as now; `why` there are none."""

    window: str
    names: tuple[str, ...]
    why: str


def first_choice(context: SiteContext, request: NightRequest) -> FirstChoice:
    """Return the nodes that the next night would take first. Raises `UsageError` where the budget is too small."""
    policy, window = _policy_and_window(context, request)
    with closing(context.adapters()) as adapters:
        scheduler = require_scheduler(context.site, adapters.scheduler)
        seen = dict(scheduler.look(Deadline.after(SCHEDULER_S)).value)
    out = sum(node.ours for node in seen.values())
    choice = choose(policy, candidates(context), busy_reasons(seen), out=out, left=window.usual)
    return FirstChoice(window=str(window), names=tuple(choice.names), why=choice.why)


def preview(context: SiteContext, request: NightRequest) -> Preview:
    """Return the nodes that the night would take first. Raises as `run`."""
    with _unfinished_is_no_result():
        return _preview(context, request)


def _preview(context: SiteContext, request: NightRequest) -> Preview:
    first = first_choice(context, request)
    effects = tuple(Effect(node=name, text=f"burn in first, in {first.window}") for name in first.names)
    none = Effect(node="", text=f"burn in no node, in {first.window}: {first.why}")
    return Preview(operation=NAME, question="Burn gold nodes in?", effects=effects or (none,)).of(request)


def may_take(context: SiteContext) -> tuple[str, ...]:
    """Return the nodes that a night may act on: the gold ones."""
    return tuple(node.name for node in context.nodes() if node.stage is Stage.GOLD)


def run(context: SiteContext, request: NightRequest, control: Control) -> NightResult:
    """Run one night. Raises `EnvironmentBrokenError` where a night did not come to its end, `ConflictError` where the
    preview has changed since its approval, `UsageError` where another night runs.
    """
    if control.approved is not None:  # a timer approves whatever nodes are idle when the night begins
        control.require(preview(context, request))
    with _unfinished_is_no_result():
        result = _run(context, request, control)
    if not control.cancelled.is_set():
        notify.after_run(context)
    return result


@contextmanager
def _unfinished_is_no_result() -> Iterator[None]:
    """Raise an error with exit code 1 as `EnvironmentBrokenError`: for timers, 1 is the result of a whole night."""
    try:
        yield
    except ClusterctlError as error:
        if error.exit_code != 1:
            raise
        raise EnvironmentBrokenError(error.message, where=error.where, remedy=error.remedy) from error


def _run(context: SiteContext, request: NightRequest, control: Control) -> NightResult:
    context = context.reporting(control.waiting)
    policy, window = _policy_and_window(context, request)
    tonight = replace(context, site=tonights(context.site, policy))
    contents.suite(tonight.site)
    opening = _opening(window, CLOCK.now())
    with sole_claim(context.journal, CLAIM, context.run, control.cancelled.set):
        return _take_turns(tonight, policy, opening, control)


def _take_turns(tonight: SiteContext, policy: NightPolicy, opening: Opening, control: Control) -> NightResult:
    """Test nodes until the window closes; write when the night began and what became of it."""
    state, metrics = state_dir(tonight.site), _metrics(tonight.site)
    before, began = read_record(state), CLOCK.now()
    write_record(state, replace(before, began=began) if before else NightRecord(began), metrics)
    tonight.describe()
    tonight.journal.append([_started(tonight, policy, opening.end)])
    with closing(tonight.adapters()) as adapters:
        lender = PartnerLender(tonight, require_scheduler(tonight.site, adapters.scheduler), NIGHTLY)
        night = NightRun(lender, adapters, policy, opening.end, control).run()
        links = _links(tonight, adapters, control)
    tested = [node for node in tonight.journal.summaries() if node.name in night.tested]
    failed = tuple(node for node in tested if node.stage is not Stage.GOLD)
    late = overdue(policy, candidates(tonight), CLOCK.now())
    tonight.journal.append([_ended(tonight, night, [node.name for node in failed])])
    write_record(state, NightRecord(began, CLOCK.now(), len(tested), len(failed), len(late)), metrics)
    return NightResult(
        tested=tuple(night.tested),
        failed=failed,
        overdue=tuple(late),
        passed_over=night.passed_over,
        stuck=night.stuck,
        ended=night.ended,
        spares=spares(tonight.site, tonight.journal),
        links=links,
    )


def _links(context: SiteContext, adapters: Adapters, control: Control) -> FabricLinksJudged | None:
    """Keep the counters of the fabric's ports and judge its links; a fabric that cannot be read is INCONCLUSIVE."""
    if not any(sku.hca_link_layer == "InfiniBand" for sku in context.site.skus) or control.cancelled.is_set():
        return None
    collector = StepFactory(context, adapters, control.cancelled).link_collector()
    return collector.look(Deadline.after(LINKS_S, control.cancelled), adapters.telemetry)


def _policy_and_window(context: SiteContext, request: NightRequest) -> tuple[NightPolicy, Window]:
    settings = _settings(context.site)
    with closing(context.adapters()) as adapters:
        require_scheduler(context.site, adapters.scheduler)
    window = _window(context.site, settings, request)
    policy = policy_of(context.site, settings, request.budget)
    require_affordable(policy, len(candidates(context)), window.usual)
    return policy, window


@dataclass(frozen=True, slots=True)
class NightRun:
    """One night: the nodes of `closes`' window, batch after batch."""

    lender: PartnerLender
    adapters: Adapters
    policy: NightPolicy
    closes: datetime
    control: Control

    @property
    def context(self) -> SiteContext:
        return self.lender.context

    def run(self) -> Night:
        """Take batches until no more fit into the window, or the run is cancelled."""
        night = Night()
        self._tidy(night)
        if left := self._left_over(night):
            self._finish(left, night)
        while not night.ended:
            if self.control.cancelled.is_set():
                night.ended = "it was cancelled"
            else:
                self._next(night)
        return night

    def left(self) -> timedelta:
        return self.closes - CLOCK.now()

    def _next(self, night: Night) -> None:
        seen = self.lender.occupancy()
        tried = frozenset((*night.tested, *night.passed_over))
        fleet = candidates(self.context)
        out = sum(node.ours for node in seen.values())
        choice = choose(self.policy, fleet, busy_reasons(seen), out=out, left=self.left(), tried=tried)
        if not choice.names:
            night.ended = choice.why
            return
        taken, refused = self.lender.take(choice.names)
        night.passed_over.update(refused)
        if self._order(taken, night):
            self._turn(taken, night)
            self._once_more(taken, night)
        else:
            self._give_back(taken, night)

    def _order(self, names: Sequence[str], night: Night) -> bool:
        """Take all of them out of the gold pool, in the journal first; none of them where one would be alone."""
        if len(names) < TOGETHER:
            night.passed_over.update(dict.fromkeys(names, "no partner was left to measure it with"))
            return False
        return self._written(names, night)

    def _written(self, names: Sequence[str], night: Night) -> bool:
        """Write the events of all of them, or of none where another run holds one; return whether they are written."""
        states = self.context.named(names)
        why = Revalidation(RevalidationOrigin.NIGHT, f"{NIGHTLY} {self.context.run}")
        try:
            with claimed(self.context, states) as claims:
                for state in states:
                    event = order_event(state, Step.BURNIN, why)
                    self.context.journal.append([event], claim=claims[state.id])
        except ClaimLostError as error:
            night.passed_over[error.where] = error.message
            return False
        publish(self.context.journal, self.adapters.pool)
        return True

    def _once_more(self, names: Sequence[str], night: Night) -> None:
        """Give a healthy node with failed partners only one more turn, with a gold node that is lent.

        It was not measured through no fault of its own. It needs an idle gold node, and time enough.
        """
        states = self.context.named(names)
        alone = [state.name for state in states if _unmeasured(state)]
        failed = any(state.stage is Stage.QUARANTINED for state in states)
        if len(alone) != 1 or not failed or self.left() < self.policy.turn:
            return
        with self._partners_of(alone, night) as partners:
            if partners and self._written(alone, night):
                self._turn(alone, night, partners)

    def _finish(self, names: Sequence[str], night: Night) -> None:
        """Burn in the nodes that a killed night had taken."""
        with self._partners_of(names, night) as partners:
            self._turn(names, night, partners)

    @contextmanager
    def _partners_of(self, names: Sequence[str], night: Night) -> Iterator[list[str]]:
        """Lend an idle gold node for each SKU that only one of the nodes is of."""
        skus = Counter(state.sku for state in self.context.named(names))
        needs = {sku: TOGETHER - count for sku, count in skus.items() if count < TOGETHER}
        with self.lender.lend(self.lender.idle_gold(needs, apart=names), night.stuck.__setitem__) as (lent, _):
            yield lent

    def _turn(self, names: Sequence[str], night: Night, partners: Collection[str] = ()) -> None:
        """Burn in and admit nodes. Gold ones get work again; the others stay out, with the reason.

        `partners`: gold nodes that they are measured with, and of which nothing is reported.
        """
        nodes, lent = self.context.summaries(names), self.context.summaries(partners)
        request = RunRequest(steps=STEPS, limit=tuple(names))
        refused = run_steps(self.context, self.adapters, nodes, lent, request, self.control)
        night.passed_over.update(refused)
        night.tested += [name for name in names if name not in refused and name not in night.tested]
        states = self.context.named(names)
        self._give_back([state.name for state in states if state.in_pool(CLOCK.now())], night)
        for state in states:
            if state.stopped_at is not None:
                self.lender.relabel(state.name, f"{_check(state)}:{state.last_seq}")

    def _left_over(self, night: Night) -> list[str]:
        """Return the nodes that a killed night had taken and not tested: they come first."""
        begun = [state for state in self.context.journal.states() if _unfinished(state)]
        if not begun or self.left() < self.policy.turn:
            return []
        seen = self.lender.occupancy()
        mine = [state.name for state in begun if state.name in seen and seen[state.name].ours]
        names = [state.name for state in begun if state.name not in mine]
        taken, refused = self.lender.take(names)
        night.passed_over.update(refused)
        return [*mine, *taken]

    def _tidy(self, night: Night) -> None:
        """Return gold nodes to work that no run holds: left by a killed run, or gold again by day."""
        seen, now = self.lender.occupancy(), CLOCK.now()
        gold = {node.id: node.name for node in self.context.journal.summaries() if node.in_pool(now)}
        kept = f"{PREFIX}{MAINTAIN}:"
        ours = {name for name, node in seen.items() if node.returnable and not node.reason.startswith(kept)}
        stray = [node for node, name in gold.items() if name in ours]
        claims = self.context.journal.claim(stray, self.context.run)
        try:
            self._give_back([gold[node] for node in claims.granted], night)
        finally:
            self.context.journal.release(claims.granted.values())

    def _give_back(self, names: Sequence[str], night: Night) -> None:
        night.stuck.update(self.lender.give_back(names))


def candidates(context: SiteContext) -> list[NightCandidate]:
    """Return the site's gold nodes without a hold."""
    named, now = {node.name for node in context.site.nodes}, CLOCK.now()
    burnin = Step.BURNIN.value
    return [
        NightCandidate(state.name, state.sku, state.reported_at.get(burnin))
        for state in context.journal.states()
        if state.name in named and state.in_pool(now)
    ]


def busy_reasons(seen: Mapping[str, Occupancy]) -> dict[str, str]:
    """Return why each node is not idle; an empty text where it is."""
    return {name: "" if node.use is Use.IDLE else node.state for name, node in seen.items()}


def tonights(site: Site, policy: NightPolicy) -> Site:
    """Return the site with a burn-in that surely ends within a turn, and the suite of its nights."""
    nightly, deadlines = site.settings.nightly, site.settings.deadlines
    within = replace(deadlines, burnin=int(policy.node.total_seconds()))
    suite = nightly.suite if nightly else site.settings.burnin
    return replace(site, settings=replace(site.settings, deadlines=within, burnin=suite))


def _started(context: SiteContext, policy: NightPolicy, closes: datetime) -> NewEvent:
    return NewEvent(Stream.RUN, context.run, NightStarted(closes=closes, percent=policy.percent))


def _ended(context: SiteContext, night: Night, failed: Sequence[str]) -> NewEvent:
    payload = NightEnded(tested=tuple(night.tested), failed=tuple(failed), stuck=night.stuck, ended=night.ended)
    return NewEvent(Stream.RUN, context.run, payload)


def _unfinished(state: NodeState) -> bool:
    """Return whether a night ordered the node's burn-in and the node waits for it, or for its admission."""
    waits = state.stage in (Stage.CABLED, Stage.BURNED_IN) and state.stopped_at is None
    by_night = state.revalidation is not None and state.revalidation.origin is RevalidationOrigin.NIGHT
    return waits and by_night and not state.held(CLOCK.now())


def _unmeasured(state: NodeState) -> bool:
    return state.stage is Stage.CABLED and state.stopped_at is Step.BURNIN and state.verdict is Verdict.INCONCLUSIVE


def _check(state: NodeState) -> str:
    return state.findings[0].check if state.findings else str(state.stopped_at.value if state.stopped_at else "burnin")


def _settings(site: Site) -> NightlySettings:
    if site.settings.nightly is None:
        raise UsageError(
            "the site has no nightly burn-in",
            where=site.where("nightly"),
            remedy="add nightly: {window: 02:00-05:00, time_zone: Europe/Berlin} (docs/how-to/nightly.md)",
        )
    return site.settings.nightly


def _window(site: Site, settings: NightlySettings, request: NightRequest) -> Window:
    where = "--window" if request.window else site.where("nightly", "window")
    return parse_window(request.window or settings.window, zone_named(settings.time_zone), where=where)


def _opening(window: Window, now: datetime) -> Opening:
    opening = window.at(now)
    if opening is None:
        local = now.astimezone(window.zone)
        raise UsageError(
            f"it is {local:%H:%M} there, and the window is {window}",
            where="nightly.window",
            remedy="let the timer start it within the window (role burnin_timer), or give --window",
        )
    return opening


def _metrics(site: Site) -> Path | None:
    name = site.settings.nightly.metrics if site.settings.nightly else ""
    return Path(site.path(name)) if name else None
