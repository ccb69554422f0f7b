"""The events of a hunt: rounds, results, dropped hosts. The same events in any order make the same record."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl_burnin.hunting.model import BAD, Group, HuntResult, HuntRound, Rail, worse
from clusterctl_burnin.loads.model import TrialOutcome


@dataclass(frozen=True, slots=True)
class Dropped:
    """A host that is gone since round `round`. A failure of its group in that round counts against no host."""

    host: str
    round: int


HuntEvent = HuntRound | HuntResult | Dropped


@dataclass(frozen=True, slots=True)
class HuntRun:
    """One group of one round on one rail, measured."""

    round: int
    group: Group
    failed: bool


@dataclass(slots=True)
class Record:
    """Rounds by number; outcomes by round, group and rail, and the hosts that they name; the hosts that are gone."""

    rounds: dict[int, HuntRound] = field(default_factory=dict)
    outcomes: dict[tuple[int, Group], dict[Rail, TrialOutcome]] = field(default_factory=lambda: defaultdict(dict))
    dropped: dict[str, int] = field(default_factory=dict)
    named: dict[tuple[int, Group, Rail], Group] = field(default_factory=dict)
    _runs: dict[Rail, tuple[HuntRun, ...]] = field(default_factory=dict, repr=False, compare=False)
    _counts: dict[bool, Mapping[str, int]] = field(default_factory=dict, repr=False, compare=False)

    def apply(self, event: HuntEvent) -> None:
        """Add an event; the same event twice is one. Raises ValueError for a result of a group that was never asked."""
        self._runs.clear()
        self._counts.clear()
        match event:
            case HuntRound():
                if self.rounds.setdefault(event.number, event) != event:
                    raise ValueError(f"round {event.number} was asked otherwise before")
            case HuntResult(number, group, outcome, rail, named):
                asked = self.rounds.get(number)
                if asked is None or group not in asked.groups:
                    raise ValueError(f"round {number} has no group {', '.join(group)}")
                outcomes = self.outcomes[number, group]
                outcomes[rail] = worse(outcomes.get(rail, outcome), outcome)
                if named:
                    before = self.named.get((number, group, rail), ())
                    self.named[number, group, rail] = tuple(sorted({*before, *named}))
            case Dropped(host, number):
                self.dropped[host] = min(number, self.dropped.get(host, number))

    def events(self) -> Iterator[HuntEvent]:
        """Return all events in a fixed order: each round with its results, then the hosts that are gone."""
        for number in sorted(self.rounds):
            yield self.rounds[number]
            for group in self.rounds[number].groups:
                outcomes = self.outcomes.get((number, group), {})
                for rail in _in_order(outcomes):
                    yield HuntResult(number, group, outcomes[rail], rail, self.named.get((number, group, rail), ()))
        yield from (Dropped(host, number) for host, number in sorted(self.dropped.items()))

    def open_round(self) -> HuntRound | None:
        """Return the groups of the last round without a result; None where it is complete, or there is no round."""
        if not self.rounds:
            return None
        last = self.rounds[max(self.rounds)]
        left = tuple(g for g in last.groups if not self.outcomes.get((last.number, g)) and self._there(g, last.number))
        return HuntRound(last.number, left) if left else None

    def _there(self, group: Group, number: int) -> bool:
        """Return whether all members of the group are present, so that it can still run."""
        return not any(host in self.dropped and self.dropped[host] <= number for host in group)

    def rails(self) -> tuple[Rail, ...]:
        """Return the rails that were measured. A job that could not be started measures none."""
        rails: set[Rail] = set()
        for outcomes in self.outcomes.values():
            if not rails.issuperset(outcomes):
                rails.update(rail for rail, outcome in outcomes.items() if outcome is not TrialOutcome.UNMEASURED)
        return _in_order(rails)

    def runs(self, rail: Rail) -> tuple[HuntRun, ...]:
        """Return the runs that were measured on that rail; of one that failed, the hosts that it named, if any.

        A run that failed in the round in which one of its hosts dropped out is left out.
        """
        if rail not in self._runs:
            self._runs[rail] = tuple(self._measured(rail))
        return self._runs[rail]

    def _measured(self, rail: Rail) -> Iterator[HuntRun]:
        for number, group in sorted(self.outcomes):
            outcomes = self.outcomes[number, group]
            outcome = outcomes.get(rail, TrialOutcome.UNMEASURED)
            if outcome is TrialOutcome.PASSED:
                yield HuntRun(number, group, failed=False)
            elif outcome in BAD and not any(self.dropped.get(host) == number for host in group):
                yield HuntRun(number, self.named.get((number, group, rail), group), failed=True)

    def measured(self) -> Mapping[str, int]:
        """Return in how many runs each host was measured, on the rail where it was least often."""
        return self._counted(all_runs=True)

    def passed(self) -> Mapping[str, int]:
        """Return in how many runs each host passed, on the rail where it passed least often."""
        return self._counted(all_runs=False)

    def _counted(self, *, all_runs: bool) -> Mapping[str, int]:
        if all_runs not in self._counts:
            by_rail = [[run.group for run in self.runs(rail) if all_runs or not run.failed] for rail in self.rails()]
            self._counts[all_runs] = _least(by_rail)
        return self._counts[all_runs]

    def times(self) -> Mapping[Group, int]:
        """Return how often each group was asked."""
        return Counter(group for one in self.rounds.values() for group in one.groups)

    def asked(self) -> Mapping[str, int]:
        groups = itertools.chain.from_iterable(one.groups for one in self.rounds.values())
        return Counter(itertools.chain.from_iterable(groups))


def rebuilt(events: Iterable[HuntEvent]) -> Record:
    """Return the record of events in any order in which a round comes before its results."""
    record = Record()
    for event in events:
        record.apply(event)
    return record


def _least(groups_by_rail: Sequence[Sequence[Group]]) -> Mapping[str, int]:
    counts = [Counter(itertools.chain.from_iterable(groups)) for groups in groups_by_rail]
    if len(counts) == 1:
        return counts[0]
    return {host: min(count[host] for count in counts) for host in set().union(*counts)}


def _in_order(rails: Iterable[Rail]) -> tuple[Rail, ...]:
    return tuple(sorted(rails, key=lambda rail: -1 if rail is None else rail))


def event_to_data(event: HuntEvent) -> dict[str, Any]:
    match event:
        case HuntRound(number, groups):
            return {"asked": number, "groups": [list(group) for group in groups]}
        case HuntResult(number, group, outcome, rail, named):
            data = {"result": number, "group": list(group), "outcome": outcome.value, "rail": rail}
            return {**data, "named": list(named)} if named else data
        case Dropped(host, number):
            return {"dropped": host, "round": number}


def event_from_data(data: Mapping[str, Any]) -> HuntEvent:
    """Return the event. Raises ParseError where the data is not an event of a hunt."""
    try:
        if "asked" in data:
            return HuntRound(int(data["asked"]), tuple(tuple(map(str, group)) for group in data["groups"]))
        if "result" in data:
            group = tuple(map(str, data["group"]))
            rail = None if data["rail"] is None else int(data["rail"])
            return HuntResult(
                int(data["result"]), group, TrialOutcome(data["outcome"]), rail, tuple(map(str, data.get("named", ())))
            )
        return Dropped(str(data["dropped"]), int(data["round"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ParseError(f"this is no event of a hunt: {dict(data)}") from error
