"""Who is to blame when nodes that were measured together fail. Pure: trials in, each node's standing out.

A node is bad when it failed with at least two different mates, in a trial whose other members all passed elsewhere, and
itself never passed (or was the only suspect of two failing trials). A single failing trial accuses nobody: those of its
members that never passed elsewhere are suspects until they are measured with others; all of them, if all passed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.burnin.loads.model import Outcome, Trial


class Standing(enum.Enum):
    """What the trials say of a node."""

    PROVEN = "proven"
    BAD = "bad"
    SUSPECT = "suspect"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class Blame:
    """A node's standing and the trials that it rests on."""

    standing: Standing
    trials: tuple[Trial, ...]


def blame(trials: Iterable[Trial]) -> Mapping[str, Blame]:
    """The standing of every member, from trials of one load (and of one rail, where it has rails)."""
    all_trials = tuple(trials)
    failing = [t for t in all_trials if t.outcome in (Outcome.SLOW, Outcome.FAILED, Outcome.HUNG)]
    passing = [t for t in all_trials if t.passed]
    proven = frozenset(name for trial in passing for name in trial.members)
    names = dict.fromkeys(name for trial in all_trials for name in trial.members)
    bad = frozenset(name for name in names if _is_bad(name, failing, proven))
    open_trials = [t for t in failing if not bad.intersection(t.members)]
    suspects = {name: tuple(t for t in open_trials if name in _suspects(t, proven)) for name in names}
    return {name: _standing(name, all_trials, suspects[name], bad) for name in names}


def _suspects(failing: Trial, proven: frozenset[str]) -> tuple[str, ...]:
    """The members that nothing speaks for; all, where something speaks for each."""
    return tuple(name for name in failing.members if name not in proven) or failing.members


def _is_bad(name: str, failing: Sequence[Trial], proven: frozenset[str]) -> bool:
    mine = [t for t in failing if name in t.members]
    mates = {mate for trial in mine for mate in trial.members if mate != name}
    accusing = [t for t in mine if all(mate in proven for mate in t.members if mate != name)]
    return len(mates) > 1 and len(accusing) >= (2 if name in proven else 1)


def _standing(name: str, trials: Sequence[Trial], suspected: tuple[Trial, ...], bad: frozenset[str]) -> Blame:
    mine = tuple(t for t in trials if name in t.members)
    passed = tuple(t for t in mine if t.passed)
    if name in bad:
        return Blame(Standing.BAD, tuple(t for t in mine if not t.passed and t.outcome is not Outcome.UNMEASURED))
    if suspected:
        return Blame(Standing.SUSPECT, suspected)
    if passed:
        return Blame(Standing.PROVEN, passed)
    return Blame(Standing.UNMEASURED, mine)


def by_rail(trials: Iterable[Trial]) -> Mapping[int | None, tuple[Trial, ...]]:
    """The trials of each rail, in order of rails; None for loads (and failures) that have none."""
    found: dict[int | None, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.rail, []).append(trial)
    rails = sorted(found, key=lambda rail: -1 if rail is None else rail)
    return {rail: tuple(found[rail]) for rail in rails}


def measured_groups(trials: Iterable[Trial]) -> Mapping[str, frozenset[frozenset[str]]]:
    """With whom each node was measured: the groups (or pairs) of its trials that told anything."""
    found: dict[str, set[frozenset[str]]] = {}
    for trial in trials:
        if trial.outcome is not Outcome.UNMEASURED:
            for name in trial.members:
                found.setdefault(name, set()).add(frozenset(trial.members))
    return {name: frozenset(groups) for name, groups in found.items()}


def undecided(trials: Iterable[Trial]) -> frozenset[str]:
    """The nodes that are, on some rail, neither proven nor bad: to be measured again with others."""
    return frozenset(
        name
        for rail in by_rail(trials).values()
        for name, found in blame(rail).items()
        if found.standing in (Standing.SUSPECT, Standing.UNMEASURED)
    )


def sound(trials: Iterable[Trial]) -> frozenset[str]:
    """The nodes that are proven on every rail."""
    standings: dict[str, set[Standing]] = {}
    for rail in by_rail(trials).values():
        for name, found in blame(rail).items():
            standings.setdefault(name, set()).add(found.standing)
    return frozenset(name for name, found in standings.items() if found == {Standing.PROVEN})
