"""One night: nodes out of work, burned in, and back, batch after batch, until the window closes or all had a turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.edges.site import Site
from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.nightly.policy import TOGETHER, Candidate, NightPolicy, choose
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Outside
from clusterctl.operations.bootstrap import Order, run_nodes
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import claimed
from clusterctl.operations.pool import publish
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import PREFIX, Occupancy, Scheduler, Use

NIGHTLY = "nightly"
WAY = ("burnin", "admit")
SCHEDULER_S = 300.0


@dataclass(slots=True)
class Night:
    """What became of it.

    passed_over  nodes that could not be had, and why: they had no turn
    stuck        nodes that could not be given back to the scheduler, and why
    ended        why no more were taken
    """

    tested: list[str] = field(default_factory=list)
    passed_over: dict[str, str] = field(default_factory=dict)
    stuck: dict[str, str] = field(default_factory=dict)
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Watch:
    """What a night is done with."""

    office: Office
    outside: Outside
    scheduler: Scheduler
    policy: NightPolicy
    closes: datetime

    def run(self) -> Night:
        """All of it; the outside is closed at the end."""
        night = Night()
        with closing(self.outside):
            self._tidy(night)
            if left := self._left_over(night):
                self._finish(left, night)
            while not night.ended:
                self._next(night)
        return night

    def left(self) -> timedelta:
        return self.closes - CLOCK.now()

    def _next(self, night: Night) -> None:
        seen = self._look()
        tried = frozenset((*night.tested, *night.passed_over))
        fleet = candidates(self.office)
        out = sum(node.ours for node in seen.values())
        choice = choose(self.policy, fleet, idle_words(seen), out=out, left=self.left(), tried=tried)
        if not choice.names:
            night.ended = choice.why
            return
        refused = self.scheduler.take(choice.names, self._reason(), self._soon())
        night.passed_over.update(refused)
        taken = [name for name in choice.names if name not in refused]
        if self._order(taken, night):
            self._turn(taken, night)
            self._once_more(taken, night)
        else:
            self._give_back(taken, night)

    def _order(self, names: Sequence[str], night: Night) -> bool:
        """Out of the gold pool, in the journal first: all of them, or none where one would be alone."""
        if len(names) < TOGETHER:
            night.passed_over.update(dict.fromkeys(names, "nobody was left to measure it with"))
            return False
        return self._written(names, night)

    def _written(self, names: Sequence[str], night: Night) -> bool:
        """Whether all of them are ordered now; none is where another run holds one."""
        states = self.office.named(names)
        try:
            with claimed(self.office, states) as claims:
                for state in states:
                    event = order_event(state, Step.BURNIN, f"{NIGHTLY} {self.office.run}")
                    self.office.journal.append([event], claim=claims[state.id])
        except ClaimLostError as error:
            night.passed_over[error.where] = error.message
            return False
        publish(self.office, self.outside.pool)
        return True

    def _once_more(self, names: Sequence[str], night: Night) -> None:
        """A sound node whose mates all failed was not measured, and that is no fault of its own: it has one more turn,
        beside a gold node that is lent, where there is one and time enough.
        """
        states = self.office.named(names)
        alone = [state.name for state in states if _unmeasured(state)]
        failed = any(state.stage is Stage.QUARANTINED for state in states)
        if len(alone) != 1 or not failed or self.left() < self.policy.turn:
            return
        with self._lent_to(alone, night) as mates:
            if mates and self._written(alone, night):
                self._turn(alone, night, mates)

    def _finish(self, names: Sequence[str], night: Night) -> None:
        """The turn of what was left over."""
        with self._lent_to(names, night) as mates:
            self._turn(names, night, mates)

    @contextmanager
    def _lent_to(self, names: Sequence[str], night: Night) -> Iterator[list[str]]:
        """An idle gold node, out of work for the time, for each SKU that one of the nodes alone is of."""
        kinds = Counter(state.sku for state in self.office.named(names))
        idle = [name for name, node in self._look().items() if node.use is Use.IDLE]
        gold = {one.sku: one.name for one in candidates(self.office) if one.name in idle}
        wanted = [gold[sku] for sku, count in kinds.items() if count < TOGETHER and sku in gold]
        refused = self.scheduler.take(wanted, self._reason(), self._soon()) if wanted else {}
        mates = [name for name in wanted if name not in refused]
        try:
            yield mates
        finally:
            self._give_back(mates, night)

    def _turn(self, names: Sequence[str], night: Night, mates: Collection[str] = ()) -> None:
        """Burned in and admitted; whoever is gold again gets work again, the others stay out, with the reason.

        `mates`: gold nodes that they are measured with, and of which nothing is reported.
        """
        nodes = [node for node in self.office.journal.summaries() if node.name in names]
        partners = [node for node in self.office.journal.summaries() if node.name in mates]
        order = Order(WAY, tuple(names), yes=True, quiet=True)
        refused = run_nodes(self.office, self.outside, nodes, partners, order)
        night.passed_over.update(refused)
        night.tested += [name for name in names if name not in refused and name not in night.tested]
        states = self.office.named(names)
        self._give_back([state.name for state in states if state.in_pool(CLOCK.now())], night)
        for state in states:
            if state.stopped_at is not None:
                self.scheduler.relabel(state.name, f"{PREFIX}{_check(state)}:{state.last_seq}", self._soon())

    def _left_over(self, night: Night) -> list[str]:
        """What a night that was killed had taken and not done: it comes first."""
        begun = [state for state in self.office.journal.states() if _unfinished(state)]
        if not begun or self.left() < self.policy.turn:
            return []
        seen = self._look()
        mine = [state.name for state in begun if state.name in seen and seen[state.name].ours]
        names = [state.name for state in begun if state.name not in mine]
        refused = self.scheduler.take(names, self._reason(), self._soon()) if names else {}
        night.passed_over.update(refused)
        return [*mine, *(name for name in names if name not in refused)]

    def _tidy(self, night: Night) -> None:
        """Gold nodes that we keep out of work, and no run holds: left by a killed one, or gold again by day."""
        seen, now = self._look(), CLOCK.now()
        gold = {node.id: node.name for node in self.office.journal.summaries() if node.in_pool(now)}
        stray = [node for node, name in gold.items() if name in seen and seen[name].ours]
        claims = self.office.journal.claim(stray, self.office.run)
        try:
            self._give_back([gold[node] for node in claims.granted], night)
        finally:
            self.office.journal.release(claims.granted.values())

    def _give_back(self, names: Sequence[str], night: Night) -> None:
        if names:
            kept = self.scheduler.give_back(names, self._soon())
            night.stuck.update(kept)

    def _look(self) -> dict[str, Occupancy]:
        return dict(self.scheduler.look(self._soon()).value)

    def _reason(self) -> str:
        return f"{PREFIX}{NIGHTLY}:{self.office.run}"

    @staticmethod
    def _soon() -> Deadline:
        return Deadline.after(SCHEDULER_S)


def candidates(office: Office) -> list[Candidate]:
    """The site's gold nodes that nobody holds."""
    named, now = {node.name for node in office.site.nodes}, CLOCK.now()
    burnin = Step.BURNIN.value
    return [
        Candidate(state.name, state.sku, state.reported_at.get(burnin))
        for state in office.journal.states()
        if state.name in named and state.in_pool(now)
    ]


def idle_words(seen: dict[str, Occupancy]) -> dict[str, str]:
    """Why each node is not idle; empty words where it is."""
    return {name: "" if node.use is Use.IDLE else node.words for name, node in seen.items()}


def tonights(site: Site, policy: NightPolicy) -> Site:
    """The site with a burn-in that surely ends within a turn, and the suite of its nights."""
    said, deadlines = site.settings.nightly, site.settings.deadlines
    within = replace(deadlines, burnin=int(policy.node.total_seconds()))
    suite = said.suite if said else site.settings.burnin
    return replace(site, settings=replace(site.settings, deadlines=within, burnin=suite))


def started(office: Office, policy: NightPolicy, closes: datetime) -> NewEvent:
    data = {"closes": closes.isoformat(), "percent": policy.percent}
    return NewEvent("run", office.run, Kind.NIGHT_STARTED, data)


def ended(office: Office, night: Night, failed: Sequence[str]) -> NewEvent:
    data = {"tested": night.tested, "failed": list(failed), "stuck": night.stuck, "ended": night.ended}
    return NewEvent("run", office.run, Kind.NIGHT_ENDED, data)


def _unfinished(state: NodeState) -> bool:
    """Ordered by a night, and not stopped since: it stands before its burn-in, or before its admission."""
    waits = state.stage in (Stage.CABLED, Stage.BURNED_IN) and state.stopped_at is None
    return waits and state.revalidation.startswith(f"{NIGHTLY} ") and not state.held(CLOCK.now())


def _unmeasured(state: NodeState) -> bool:
    return state.stage is Stage.CABLED and state.stopped_at is Step.BURNIN and state.verdict is Verdict.INCONCLUSIVE


def _check(state: NodeState) -> str:
    return state.findings[0].check if state.findings else str(state.stopped_at.value if state.stopped_at else "burnin")
