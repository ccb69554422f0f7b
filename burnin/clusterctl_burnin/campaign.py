"""One load over nodes of one SKU, led by a hunt: the next partners, and what is known of each node.

Pure: the step runs the rounds and gives their answers to `read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Digest
from clusterctl_burnin.hunting.hunt import Hunt
from clusterctl_burnin.hunting.model import Group, HuntResult, HuntRound, Rules, Topology
from clusterctl_burnin.hunting.node_status import Measured, NodeStatus, measured_groups
from clusterctl_burnin.hunting.record import Dropped, HuntEvent, event_from_data, event_to_data
from clusterctl_burnin.hunting.wide_rounds import wide_rounds
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.group_load import Lasts
from clusterctl_burnin.loads.model import Answer, Participant, Trial, TrialOutcome, Tried
from clusterctl_burnin.loads.model import Round as Job
from clusterctl_burnin.registry import GROUP_LOADS
from clusterctl_burnin.suites.suite import Suite

FURTHER_ROUNDS = 32
"""The most rounds after the screening; few nodes take part in each, and a fault that comes and goes needs several."""
REPEATS = 4
"""The most times that the same nodes are measured together while no other node can help."""
PARTNERS = 2
"""Each node is measured in so many different groups, where there are as many nodes."""
COMMON = Rules(alone=1, rounds=1)
_OPEN = frozenset({NodeStatus.SUSPECT, NodeStatus.UNMEASURED})


@dataclass(frozen=True, slots=True)
class GroupTrials:
    """The trials of one group of a round."""

    number: int
    group: Group
    trials: tuple[Trial, ...]

    def results(self) -> Iterator[HuntResult]:
        """Return the results for the hunt, by rail; a job without a trial of its group is unmeasured."""
        mine = [trial for trial in self.trials if set(trial.members) == set(self.group)]
        railed = [trial for trial in mine if trial.rail is not None] or mine
        if not railed:
            yield HuntResult(self.number, self.group, TrialOutcome.UNMEASURED)
        for trial in railed:
            named = tuple(sorted(set(trial.missing) & set(self.group)))
            yield HuntResult(self.number, self.group, trial.outcome, trial.rail, named)


CampaignEvent = HuntRound | GroupTrials | Dropped


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """What a load is run by: suite, limits of the SKU, the user on the hosts, and the leaves of the hosts."""

    suite: Suite
    limits: Limits
    user: str
    topology: Topology = field(default_factory=dict)

    def campaigns(self, names: Iterable[str]) -> tuple[Campaign, ...]:
        """Return the campaign of each load of the suite, in order."""
        return tuple(Campaign(self, load, names) for load in self.suite.loads)

    def rules(self, load: str) -> Rules:
        """Return the rules: each node meets `pair_rounds` others, or `group_rounds` groups of the limits' size."""
        kind, known_bad = GROUP_LOADS[load], self.suite.known_bad
        sizes = kind.sizes(self.limits)
        least = max(2, sizes.least)
        most = max(least, sizes.most)
        rounds = self.suite.pair_rounds if kind.in_pairs else self.suite.group_rounds
        return replace(
            COMMON,
            least=least,
            most=most,
            widest=sizes.widest,
            meetings=self.suite.pair_meetings,
            screening=rounds,
            known_bad=known_bad,
        )

    def job(self, load: str, members: tuple[Participant, ...]) -> Job:
        lasts = Lasts(self.suite.pair_seconds, self.suite.group_iterations, self.suite.hang_seconds)
        return GROUP_LOADS[load].job(members, self.limits, lasts, self.user)


class Campaign:
    """Its state is its events: one that was killed goes on from them. Not thread-safe."""

    def __init__(
        self, plan: CampaignPlan, load: str, names: Iterable[str], events: Iterable[CampaignEvent] = ()
    ) -> None:
        """Begin a campaign. `events`: of one that is to go on; nodes that are not among `names` are absent."""
        self.load = load
        self._plan = plan
        self._rules = plan.rules(load)
        known = tuple(events)
        self._trials = [trial for event in known if isinstance(event, GroupTrials) for trial in event.trials]
        asked = {name for event in known if isinstance(event, HuntRound) for name in event.hosts}
        self._names = {*names, *asked}
        self._hunt = self._rebuilt(tuple(_for_hunt(known)))
        for name in sorted(asked - set(names)):
            self._hunt.drop(name)

    @property
    def rounds(self) -> int:
        """So many were asked."""
        return sum(isinstance(event, HuntRound) for event in self._hunt.events)

    @property
    def dropped(self) -> tuple[str, ...]:
        return self._hunt.answer().dropped

    def next(self) -> HuntRound | None:
        """Return the groups to run now; None where nothing more can be learned from the present nodes."""
        return self._hunt.next()

    def add(self, trials: GroupTrials) -> None:
        self._trials += trials.trials
        self._hunt.add(trials.results())

    def drop(self, name: str) -> Dropped:
        """Drop a node that fell silent; return the event to keep."""
        self._hunt.drop(name)
        return next(e for e in self._hunt.events if isinstance(e, Dropped) and e.host == name)

    def join(self, names: Iterable[str]) -> None:
        """Add nodes to measure with."""
        self._names |= set(names)
        self._hunt = self._rebuilt(self._hunt.events)

    def insist(self) -> bool:
        """Measure the present nodes together again where no other node can join, to distinguish a fault from chance.

        Return False where they have been, or where no node is in doubt.
        """
        if self._rules.alone == REPEATS or not self.measured().answer.suspects:
            return False
        self._rules = replace(self._rules, alone=REPEATS)
        self._hunt = self._rebuilt(self._hunt.events)
        return True

    def unproven(self, names: Iterable[str]) -> frozenset[str]:
        """Return the nodes that are in doubt, or were measured with no other node."""
        found: dict[str, set[NodeStatus]] = {name: set() for name in names}
        for rail in self.measured().blame().values():
            for name in found.keys() & rail.keys():
                found[name].add(rail[name].status)
        return frozenset(name for name, statuses in found.items() if not statuses or statuses & _OPEN)

    def unsettled(self, names: Iterable[str]) -> frozenset[str]:
        """Return the nodes that are suspected, or measured with fewer others than wanted."""
        met, mine = measured_groups(self._trials), frozenset(names)
        wanted = min(PARTNERS, self._rules.screening)
        return self.unproven(mine) | {name for name in mine if len(met.get(name, ())) < wanted}

    def measured(self) -> Measured:
        return Measured(self.load, tuple(self._trials), self._hunt.answer())

    def _rebuilt(self, events: tuple[HuntEvent, ...]) -> Hunt:
        asked = sum(isinstance(event, HuntRound) for event in events)
        wide = wide_rounds(sorted(self._names), self._rules)
        self._rules = replace(self._rules, rounds=asked + self._rules.screening + wide + FURTHER_ROUNDS)
        return Hunt(self._names, self._rules, events, self._plan.topology)


def _for_hunt(events: Iterable[CampaignEvent]) -> Iterator[HuntEvent]:
    for event in events:
        if isinstance(event, GroupTrials):
            yield from event.results()
        else:
            yield event


def read(one: Job, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """Return the trials and evidence in the answers of a job, by member's name."""
    return GROUP_LOADS[one.load].read(one, answers, limits)


def to_data(event: CampaignEvent) -> dict[str, Any]:
    if isinstance(event, GroupTrials):
        return {"round": event.number, "group": list(event.group), "trials": [_trial(t) for t in event.trials]}
    return event_to_data(event)


def from_data(data: Mapping[str, Any]) -> CampaignEvent:
    """Return the event. Raise ParseError for what is no event of a campaign."""
    if "trials" not in data:
        event = event_from_data(data)
        if isinstance(event, HuntResult):
            raise ParseError(f"this is no event of a campaign: {dict(data)}")
        return event
    try:
        group = tuple(map(str, data["group"]))
        return GroupTrials(int(data["round"]), group, tuple(_trial_from(trial) for trial in data["trials"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"this is no event of a campaign: {dict(data)}") from error


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "load": trial.load,
        "members": list(trial.members),
        "outcome": trial.outcome.value,
        "lane": dict(trial.lane),
        "rail": trial.rail,
        "value": trial.value,
        "detail": trial.detail,
        "evidence": list(trial.evidence),
        "remedy": trial.remedy,
        "missing": list(trial.missing),
    }


def _trial_from(data: Mapping[str, Any]) -> Trial:
    return Trial(
        load=str(data["load"]),
        members=tuple(map(str, data["members"])),
        outcome=TrialOutcome(data["outcome"]),
        lane={str(name): str(device) for name, device in data["lane"].items()},
        rail=None if data["rail"] is None else int(data["rail"]),
        value=None if data["value"] is None else float(data["value"]),
        detail=str(data["detail"]),
        evidence=tuple(Digest(str(digest)) for digest in data["evidence"]),
        remedy=str(data.get("remedy", "")),
        missing=tuple(map(str, data.get("missing", ()))),
    )


def one_after_the_other(histories: Iterable[Iterable[CampaignEvent]]) -> tuple[CampaignEvent, ...]:
    """Return the events of several campaigns of one load as those of one: their rounds are renumbered."""
    found: list[CampaignEvent] = []
    for history in histories:
        before = max((event.number for event in found if isinstance(event, HuntRound)), default=0)
        for event in history:
            if isinstance(event, (HuntRound, GroupTrials)):
                found.append(replace(event, number=event.number + before))
            else:
                found.append(replace(event, round=event.round + before))
    return tuple(found)
