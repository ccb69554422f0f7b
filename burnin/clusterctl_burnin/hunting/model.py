"""The words of a hunt: parts that can be bad, rounds, results, and what is assumed of faults and of noise."""

from __future__ import annotations

from dataclasses import dataclass, field

from clusterctl_burnin.loads.model import Outcome

Part = tuple[str, ...]
"""What can be bad: a host (one name), or the path between two hosts that are good by themselves (two names, sorted)."""
Group = tuple[str, ...]
"""Hosts that run one job together, sorted."""
Rail = int | None
"""None for a load that tells nothing by rail."""

BAD = frozenset({Outcome.SLOW, Outcome.FAILED, Outcome.HUNG})
_ORDER = (Outcome.UNMEASURED, Outcome.PASSED, Outcome.SLOW, Outcome.FAILED, Outcome.HUNG)


@dataclass(frozen=True, slots=True)
class Round:
    """Jobs that run at the same time: no host is in two groups. `number` counts from 1."""

    number: int
    groups: tuple[Group, ...]

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(name for group in self.groups for name in group)


@dataclass(frozen=True, slots=True)
class Result:
    """How one group of a round ended on one rail. UNMEASURED tells nothing of anybody, and closes the group.

    `named`: members that the run itself holds to be the cause, for whom the others waited: what went wrong speaks
    against them alone. Empty where it does not know.
    """

    round: int
    group: Group
    outcome: Outcome
    rail: Rail = None
    named: Group = ()


def worse(one: Outcome, other: Outcome) -> Outcome:
    """Of two answers to one question the worse one holds, whichever came first."""
    return max(one, other, key=_ORDER.index)


@dataclass(frozen=True, slots=True)
class Noise:
    """What is assumed before anything was measured. All are probabilities.

    false_alarm     a group of good hosts goes wrong
    steady, fleeting  a group with a steadily bad host, or with one that comes and goes, goes wrong
    path_shows      a group with both ends of a bad path goes wrong
    host            a host is bad
    path            a host has a bad path to some other host
    fleeting_share  of the bad hosts, those that come and go
    common          everything goes wrong for a reason outside the hosts (a switch, the test, a limit)
    """

    false_alarm: float = 0.01
    steady: float = 0.97
    fleeting: float = 0.7
    path_shows: float = 0.9
    host: float = 0.02
    path: float = 0.003
    fleeting_share: float = 0.25
    common: float = 0.01


@dataclass(frozen=True, slots=True)
class Rules:
    """How a hunt is led.

    least, most   hosts in a group; a remainder below `least` joins another group, which is then larger than `most`
    screening     in so many rounds that told something each host takes part, whether anybody is suspected or not
    sure          the probability from which a part is called bad, and the hunt settled
    size          hosts in a group of a screening round; 0: about √N
    rounds        the hunt ends after so many, settled or not
    repeats       the same group is asked so often at most
    alone         likewise, as long as no host in the hunt is proven: only further hosts would tell more
    somebody      it is known that somebody here is bad (jobs went wrong): false alarms alone explain nothing
    """

    least: int = 2
    most: int = 64
    screening: int = 1
    sure: float = 0.95
    size: int = 0
    rounds: int = 24
    repeats: int = 24
    alone: int = 24
    somebody: bool = False
    noise: Noise = field(default_factory=Noise)

    def __post_init__(self) -> None:
        if not 2 <= self.least <= self.most or self.screening < 1 or not 0.5 < self.sure < 1 or self.rounds < 1:
            raise ValueError(f"these rules contradict themselves: {self}")
