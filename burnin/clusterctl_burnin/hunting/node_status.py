"""Where each node stands on each rail after a hunt, and the trials that this rests on."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl_burnin.hunting.answer import Answer
from clusterctl_burnin.hunting.follow_up import shows_in
from clusterctl_burnin.hunting.model import BAD, Part, PartKind, Rail
from clusterctl_burnin.loads.model import Outcome, Trial

DOUBT = {PartKind.PAIR: 0.05, PartKind.LEAF: 0.05, PartKind.UPLINK: 0.05}
"""Parts of several hosts keep these in doubt from so probable on; a host by itself, as long as it is in doubt."""


class NodeStatus(enum.Enum):
    """What the trials of one rail say of a node. SHARED: a leaf or its uplinks, which it shares with other nodes, is
    bad.
    """

    PROVEN = "proven"
    BAD = "bad"
    SUSPECT = "suspect"
    PATH = "path"
    SHARED = "shared"
    COMMON = "common"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class Blame:
    """A node's status on one rail.

    trials   that it rests on
    chance   that failed with it, and that nothing but chance explains
    partner  the other end of the path, where the status is PATH
    shared   the part, where the status is SHARED
    """

    status: NodeStatus
    trials: tuple[Trial, ...]
    chance: tuple[Trial, ...] = ()
    partner: str = ""
    shared: Part | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """All that one load said: its trials, and what the hunt makes of them."""

    load: str
    trials: tuple[Trial, ...]
    answer: Answer

    def blame(self) -> Mapping[Rail, Mapping[str, Blame]]:
        """The status of every member of a trial, by rail; None for loads (and failures) that have none."""
        by_rail: dict[Rail, list[Trial]] = {}
        for trial in self.trials:
            if trial.passed or not set(self.answer.gone) & set(trial.members):
                by_rail.setdefault(trial.rail, []).append(trial)
        rails = sorted(by_rail, key=lambda rail: -1 if rail is None else rail)
        return {rail: _of_rail(rail, by_rail[rail], self.answer) for rail in rails}


def _of_rail(rail: Rail, trials: Iterable[Trial], answer: Answer) -> Mapping[str, Blame]:
    mine: dict[str, list[Trial]] = {}
    for trial in trials:
        for name in trial.members:
            mine.setdefault(name, []).append(trial)
    bad = [c.part for c in answer.bad if rail in c.rails]
    doubtful = [c.part for c in answer.suspects if rail in c.rails and c.probability > DOUBT.get(c.part.kind, 0.0)]
    return {name: _of_node(name, its, bad, doubtful, common=rail in answer.common) for name, its in mine.items()}


def _of_node(name: str, trials: list[Trial], bad: list[Part], doubtful: list[Part], *, common: bool) -> Blame:
    passed = tuple(trial for trial in trials if trial.passed)
    failed = tuple(trial for trial in trials if trial.outcome in BAD)
    mine = {part.kind: part for part in bad if name in part.names}
    shared = mine.get(PartKind.LEAF) or mine.get(PartKind.UPLINK)
    blame: Blame | None = None
    if PartKind.HOST in mine:
        blame = Blame(NodeStatus.BAD, failed)
    elif failed and common:
        blame = Blame(NodeStatus.COMMON, failed)
    elif failed and shared is not None:
        blame = Blame(NodeStatus.SHARED, failed, shared=shared)
    elif failed and any(name in part.names for part in doubtful):
        blame = Blame(NodeStatus.SUSPECT, failed)
    elif failed and PartKind.PAIR in mine:
        partner = next(end for end in mine[PartKind.PAIR].names if end != name)
        blame = Blame(NodeStatus.PATH, tuple(t for t in failed if partner in t.members), partner=partner)
    elif not passed:
        blame = Blame(NodeStatus.UNMEASURED, tuple(trials))
    if blame is not None:
        return blame
    chance = tuple(t for t in failed if not any(shows_in(part, frozenset(t.members)) for part in bad))
    return Blame(NodeStatus.PROVEN, passed, chance)


def measured_groups(trials: Iterable[Trial]) -> Mapping[str, frozenset[frozenset[str]]]:
    """With whom each node was measured: the groups (or pairs) of its trials that told anything."""
    found: dict[str, set[frozenset[str]]] = {}
    for trial in trials:
        if trial.outcome is not Outcome.UNMEASURED:
            for name in trial.members:
                found.setdefault(name, set()).add(frozenset(trial.members))
    return {name: frozenset(groups) for name, groups in found.items()}
