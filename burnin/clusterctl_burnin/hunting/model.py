"""The types of a hunt: parts that can be bad, rounds, results, and the assumptions about faults and noise."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl_burnin.loads.model import TrialOutcome

Group = tuple[str, ...]
"""Hosts that run one job together, sorted."""
Rail = int | None
"""None for a load that does not measure each rail by itself."""

BAD = frozenset({TrialOutcome.SLOW, TrialOutcome.FAILED, TrialOutcome.HUNG})
_ORDER = (TrialOutcome.UNMEASURED, TrialOutcome.PASSED, TrialOutcome.SLOW, TrialOutcome.FAILED, TrialOutcome.HUNG)


@dataclass(frozen=True, slots=True)
class HuntRound:
    """Jobs that run at the same time: no host is in two groups. `number` counts from 1."""

    number: int
    groups: tuple[Group, ...]

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(name for group in self.groups for name in group)


@dataclass(frozen=True, slots=True)
class HuntResult:
    """How one group of a round ended on one rail. UNMEASURED shows nothing of any host, and closes the group.

    `named`: members that the run itself found to be the cause, such as those that the others waited for. The failure
    counts against them alone. Empty where it is unknown.
    """

    round: int
    group: Group
    outcome: TrialOutcome
    rail: Rail = None
    named: Group = ()


def worse(one: TrialOutcome, other: TrialOutcome) -> TrialOutcome:
    """Return the worse of two outcomes of one run, in any order."""
    return max(one, other, key=_ORDER.index)


class PartKind(enum.StrEnum):
    """What can be bad.

    HOST    a host
    PAIR    the path between two hosts that are good with others
    LEAF    a leaf: each run with one of its hosts
    UPLINK  the links between a leaf and the others: each run with hosts on both sides
    ALL     a cause common to all runs: a spine, the load's program, its limit
    """

    HOST = "host"
    PAIR = "pair"
    LEAF = "leaf"
    UPLINK = "uplink"
    ALL = "all"


SHARED = frozenset({PartKind.LEAF, PartKind.UPLINK, PartKind.ALL})
"""Parts that many hosts share."""


@dataclass(frozen=True, slots=True, order=True)
class HuntPart:
    """A part that can be bad: its hosts (sorted), and the name of the leaf for LEAF and UPLINK."""

    kind: PartKind
    names: tuple[str, ...]
    label: str = ""

    def __str__(self) -> str:
        match self.kind:
            case PartKind.HOST:
                return self.names[0]
            case PartKind.PAIR:
                return f"the path between {self.names[0]} and {self.names[1]}"
            case PartKind.LEAF:
                return f"the leaf of {self.label}"
            case PartKind.UPLINK:
                return f"the uplinks of {self.label}"
            case PartKind.ALL:
                return "a common cause"


def host(name: str) -> HuntPart:
    return HuntPart(PartKind.HOST, (name,))


def pair(one: str, other: str) -> HuntPart:
    return HuntPart(PartKind.PAIR, (one, other) if one < other else (other, one))


Topology = Mapping[str, str]
"""The leaf (or the rack, where the leaf is unknown) of each host with a known place."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is assumed before anything was measured. All are probabilities.

    noise    how often a run with good parts alone fails in a round, by level: quiet, then ever worse bursts
    levels   how often a round has each level after a quiet round
    lasting  how often a burst goes on in the next round
    shows    how often a bad host fails its runs: always, or now and then
    pair_shows  likewise a bad pair
    shared   likewise a bad leaf, its uplinks, or a common cause: many runs show it, so that it hardly hides
    host, leaf, uplink, common  one of them is bad
    pair     a host has a bad path to some other host
    """

    noise: tuple[float, ...] = (0.001, 0.02, 0.1, 0.3, 0.6)
    levels: tuple[float, ...] = (0.955, 0.02, 0.01, 0.01, 0.005)
    lasting: float = 0.5
    shows: tuple[float, ...] = (0.97, 0.7)
    pair_shows: tuple[float, ...] = (0.9,)
    shared: tuple[float, ...] = (0.97, 0.85)
    host: float = 0.01
    pair: float = 0.003
    leaf: float = 0.002
    uplink: float = 0.002
    common: float = 0.002

    def ways(self, kind: PartKind) -> tuple[float, ...]:
        """Return how often a bad part of the kind shows, each as probable as the others."""
        if kind is PartKind.PAIR:
            return self.pair_shows
        return self.shows if kind is PartKind.HOST else self.shared

    def prior(self, kind: PartKind, hosts: int) -> float:
        match kind:
            case PartKind.HOST:
                return self.host
            case PartKind.PAIR:
                return self.pair / max(2, hosts)
            case PartKind.LEAF:
                return self.leaf
            case PartKind.UPLINK:
                return self.uplink
            case PartKind.ALL:
                return self.common


@dataclass(frozen=True, slots=True)
class Rules:
    """How a hunt proceeds.

    least, most   hosts in a group; a remainder below `least` joins another group, which is then larger than `most`
    widest        hosts in a group of a wide round, for pairs of hosts; 0: there are none
    meetings      each two hosts that passed are in so many wide runs together, as far as the wide rounds suffice
    screening     each host takes part in so many runs that were measured, whether it is suspected or not
    sure          the probability from which a part is called bad, and the hunt settled
    rounds        the hunt ends after so many, settled or not
    repeats       the same group runs so often at most
    alone         likewise, while a host of it failed and no host in the hunt is proven: only more hosts help
    known_bad      some part is known to be bad, because jobs failed: noise alone explains nothing
    """

    least: int = 2
    most: int = 8
    widest: int = 0
    meetings: int = 0
    screening: int = 5
    sure: float = 0.999
    rounds: int = 24
    repeats: int = 24
    alone: int = 24
    known_bad: bool = False
    assumptions: Assumptions = field(default_factory=Assumptions)

    def __post_init__(self) -> None:
        if not 2 <= self.least <= self.most or self.screening < 1 or not 0.5 < self.sure < 1 or self.rounds < 1:
            raise ValueError(f"these rules contradict themselves: {self}")
