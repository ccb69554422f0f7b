"""The status of each node on each rail after a hunt, and the trials that it rests on."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.answer import HuntAnswer
from clusterctl_burnin.hunting.follow_up import shows_in
from clusterctl_burnin.hunting.model import BAD, HuntPart, PartKind, Rail
from clusterctl_burnin.loads.model import Trial, TrialOutcome

DOUBT = {PartKind.PAIR: 0.05, PartKind.LEAF: 0.05, PartKind.UPLINK: 0.05}
"""Parts of several hosts keep these in doubt from so probable on; a host by itself, as long as it is in doubt."""


class NodeStatus(enum.Enum):
    """The status of a node by the trials of one rail. SHARED: its leaf, or the leaf's uplinks, are bad."""

    PROVEN = "proven"
    BAD = "bad"
    SUSPECT = "suspect"
    PATH = "path"
    SHARED = "shared"
    COMMON = "common"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class HuntBlame:
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
    shared: HuntPart | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The trials of one load, and the hunt's answer."""

    load: str
    trials: tuple[Trial, ...]
    answer: HuntAnswer

    def blame(self) -> Mapping[Rail, Mapping[str, HuntBlame]]:
        """Return the status of each member of a trial, by rail; rail None for loads (and failures) without one."""
        by_rail: dict[Rail, list[Trial]] = {}
        for trial in self.trials:
            if trial.passed or not set(self.answer.dropped) & set(trial.members):
                by_rail.setdefault(trial.rail, []).append(trial)
        rails = sorted(by_rail, key=lambda rail: -1 if rail is None else rail)
        return {rail: _of_rail(rail, by_rail[rail], self.answer) for rail in rails}


@dataclass(frozen=True, slots=True)
class _RailAnswer:
    """What the hunt found on one rail: bad parts, those in doubt, and whether all runs fail there."""

    bad: tuple[HuntPart, ...]
    doubtful: tuple[HuntPart, ...]
    common: bool

    def blame(self, name: str, trials: Sequence[Trial]) -> HuntBlame:
        """Return the status of a node by its trials: a fault, else unmeasured without a passed trial, else proven."""
        failed = tuple(trial for trial in trials if trial.outcome in BAD)
        fault = self._fault(name, failed)
        if fault is not None:
            return fault
        passed = tuple(trial for trial in trials if trial.passed)
        if not passed:
            return HuntBlame(NodeStatus.UNMEASURED, tuple(trials))
        return HuntBlame(NodeStatus.PROVEN, passed, tuple(trial for trial in failed if not self._explained(trial)))

    def _fault(self, name: str, failed: tuple[Trial, ...]) -> HuntBlame | None:
        mine = {part.kind: part for part in self.bad if name in part.names}
        if PartKind.HOST in mine:
            return HuntBlame(NodeStatus.BAD, failed)
        if not failed:
            return None
        if self.common:
            return HuntBlame(NodeStatus.COMMON, failed)
        shared = mine.get(PartKind.LEAF) or mine.get(PartKind.UPLINK)
        if shared is not None:
            return HuntBlame(NodeStatus.SHARED, failed, shared=shared)
        if any(name in part.names for part in self.doubtful):
            return HuntBlame(NodeStatus.SUSPECT, failed)
        return _path(name, mine.get(PartKind.PAIR), failed)

    def _explained(self, trial: Trial) -> bool:
        return any(shows_in(part, frozenset(trial.members)) for part in self.bad)


def _path(name: str, path: HuntPart | None, failed: tuple[Trial, ...]) -> HuntBlame | None:
    if path is None:
        return None
    partner = next(end for end in path.names if end != name)
    return HuntBlame(NodeStatus.PATH, tuple(trial for trial in failed if partner in trial.members), partner=partner)


def _of_rail(rail: Rail, trials: Iterable[Trial], answer: HuntAnswer) -> Mapping[str, HuntBlame]:
    mine: dict[str, list[Trial]] = {}
    for trial in trials:
        for name in trial.members:
            mine.setdefault(name, []).append(trial)
    on_rail = _RailAnswer(
        bad=tuple(c.part for c in answer.bad if rail in c.rails),
        doubtful=tuple(
            c.part for c in answer.suspects if rail in c.rails and c.probability > DOUBT.get(c.part.kind, 0.0)
        ),
        common=rail in answer.common,
    )
    return {name: on_rail.blame(name, its) for name, its in mine.items()}


def measured_groups(trials: Iterable[Trial]) -> Mapping[str, frozenset[frozenset[str]]]:
    """Return the groups (or pairs) in which each node was measured."""
    found: dict[str, set[frozenset[str]]] = {}
    for trial in trials:
        if trial.outcome is not TrialOutcome.UNMEASURED:
            for name in trial.members:
                found.setdefault(name, set()).add(frozenset(trial.members))
    return {name: frozenset(groups) for name, groups in found.items()}
