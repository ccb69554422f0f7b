"""Which gold nodes are tested tonight: those with the oldest evidence, as many as the site spares, within its window.

Pure: facts of the scheduler and the journal go in, the next node comes out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.fleet.errors import UsageError

TOGETHER = 2
"""A burn-in measures a node with others of its SKU: one alone proves nothing."""


@dataclass(frozen=True, slots=True)
class NightPolicy:
    """What the site spares.

    percent   of the gold nodes that may be out at a time, those that clusterctl keeps drained already among them
    most      the most nodes at a time, independent of `percent`; None: no bound of its own
    node      how long one burn-in takes at most
    attempts  how often a burn-in is run before its failure counts
    expiry    how old a gold node's burn-in may become
    """

    percent: int
    node: timedelta
    attempts: int
    expiry: timedelta
    most: int | None = None

    @property
    def turn(self) -> timedelta:
        """The longest that a node is out."""
        return self.node * self.attempts


@dataclass(frozen=True, slots=True)
class NightCandidate:
    """A gold node without a hold. `proven`: when its last burn-in was reported; None where none is known."""

    name: str
    sku: str
    proven: datetime | None


@dataclass(frozen=True, slots=True)
class Choice:
    """`names` to take now, in this order; none, and the reason in `why`."""

    names: tuple[str, ...]
    why: str = ""


def spared(policy: NightPolicy, pool: int) -> int:
    """Return how many of `pool` gold nodes may be out at a time; raise `UsageError` for too few to measure with."""
    share, room = pool * policy.percent // 100, _room(policy, pool)
    if room < TOGETHER:
        least = math.ceil(TOGETHER * 100 / pool) if pool >= TOGETHER else 0
        remedy = f"set nightly.percent to {least} at least" if least else "admit more nodes first"
        if share >= TOGETHER:
            remedy = f"set nightly.most to {TOGETHER} at least"
        raise UsageError(
            f"{policy.percent} % of {pool} gold nodes are {share}"
            + (f", at most {policy.most}" if policy.most is not None else "")
            + f": a burn-in needs {TOGETHER} nodes to measure with each other",
            where="nightly",
            remedy=remedy,
        )
    return room


def require_affordable(policy: NightPolicy, pool: int, window: timedelta) -> None:
    """Raise `UsageError`, with the arithmetic, where `expiry` cannot be kept with what the site spares.

    Counted is what surely fits: turns in which every burn-in is run as often as it may be.
    """
    at_once, turns = spared(policy, pool), window // policy.turn
    sum_of_turn = f"{policy.attempts} × {_minutes(policy.node)} = {_minutes(policy.turn)}"
    if turns < 1:
        raise UsageError(
            f"one turn may take {sum_of_turn}, the window has {_minutes(window)}",
            where="nightly",
            remedy="widen nightly.window, or shorten nightly.node_minutes by a shorter suite",
        )
    nights, days = math.ceil(pool / (turns * at_once)), policy.expiry // timedelta(days=1)
    if nights > days:
        raise UsageError(
            f"{pool} gold nodes / ({turns} turns a night × {at_once} nodes at a time) = {nights} nights, "
            f"but evidence expires after {days} days ({_minutes(window)} / ({sum_of_turn}) = {turns})",
            where="nightly",
            remedy=f"raise nightly.percent, widen nightly.window, or let evidence last {nights} days",
        )


def choose(
    policy: NightPolicy,
    candidates: Sequence[NightCandidate],
    idle: Mapping[str, str],
    *,
    out: int,
    left: timedelta,
    tried: frozenset[str] = frozenset(),
) -> Choice:
    """Return the next node: an idle node of one SKU, the one with the oldest evidence among them.

    idle   why a node is not idle, by its name; empty where it is. A node without an entry is not known to be idle.
    out    number of nodes that clusterctl has taken out already
    left   until the window closes
    tried  the nodes that had their turn, or could not be taken, tonight
    """
    if left < policy.turn:
        return Choice((), f"the window closes in {_minutes(left)}, a turn may take {_minutes(policy.turn)}")
    room = _room(policy, len(candidates) + out) - out
    if room < TOGETHER:
        return Choice((), f"{out} nodes are out already, {max(room, 0)} more are spared")
    waiting = sorted((one for one in candidates if one.name not in tried), key=_oldest_first)
    if not waiting:
        return Choice((), "every gold node had its turn")
    free = [one for one in waiting if idle.get(one.name, "not known") == ""]
    chosen = _of_one_sku(free)
    if chosen:
        return Choice(chosen[:room])
    return Choice(
        (), f"of {len(waiting)} gold nodes that wait for their turn, {len(free)} are idle: too few of one SKU"
    )


def _of_one_sku(free: Sequence[NightCandidate]) -> tuple[str, ...]:
    """Return the nodes of the first SKU that has enough of them; none without such a SKU."""
    by_sku: dict[object, list[str]] = {}
    for one in free:
        by_sku.setdefault(one.sku, []).append(one.name)
    return next((tuple(names) for names in by_sku.values() if len(names) >= TOGETHER), ())


def overdue(policy: NightPolicy, candidates: Sequence[NightCandidate], now: datetime) -> tuple[str, ...]:
    """Return the gold nodes with evidence older than permitted, oldest first."""
    late = [one for one in candidates if one.proven is None or now - one.proven > policy.expiry]
    return tuple(one.name for one in sorted(late, key=_oldest_first))


def _room(policy: NightPolicy, pool: int) -> int:
    share = pool * policy.percent // 100
    return share if policy.most is None else min(share, policy.most)


def _oldest_first(one: NightCandidate) -> tuple[bool, float, str]:
    return (one.proven is not None, one.proven.timestamp() if one.proven else 0.0, one.name)


def _minutes(span: timedelta) -> str:
    return f"{span // timedelta(minutes=1)} min"
