"""Which nodes are loaded together, and when. Pure: the step runs the waves and hands their answers to `read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from clusterctl.burnin import hunt
from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads import all_reduce, ib_write_bw
from clusterctl.burnin.loads.model import Answer, Member, Round, Trial, Tried, Wave
from clusterctl.burnin.suite import Suite

Pair = tuple[str, str]


def plan(members: Sequence[Member], suite: Suite, limits: Limits, user: str) -> tuple[Wave, ...]:
    """The waves of the suite's loads, to be run one after the other; empty where there is nobody to measure with."""
    waves: list[Wave] = []
    if ib_write_bw.NAME in suite.loads:
        by_name = {member.name: member for member in members}
        rounds = tournament([m.name for m in members], suite.pair_rounds)
        waves.extend(_pair_wave(pairs, by_name, limits, user) for pairs in rounds)
    if all_reduce.NAME in suite.loads:
        method = limits.all_reduce
        groups = partition(members, method.group_nodes, method.min_nodes)
        waves.append(tuple(all_reduce.group(group, method, user) for group in groups))
    return tuple(wave for wave in waves if wave)


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """What the answers of a round (by member's name) say."""
    if one.load == ib_write_bw.NAME:
        return ib_write_bw.read(one, answers, limits)
    return all_reduce.read(one, answers, limits)


def confirm(load: str, trials: Iterable[Trial], members: Sequence[Member], limits: Limits, user: str) -> Wave:
    """One more wave that tells the bad node from its mates, and measures who had no mate yet; empty when every node is
    decided, or nothing new can be learned.
    """
    mine = [trial for trial in trials if trial.load == load]
    tried = {name for trial in mine for name in trial.members}
    suspects = [m.name for m in members if m.name not in tried or m.name in hunt.undecided(mine)]
    sound = [m.name for m in members if m.name in hunt.sound(mine)]
    by_name = {member.name: member for member in members}
    if load == ib_write_bw.NAME:
        met = {frozenset(trial.members) for trial in mine}
        return _pair_wave(new_pairs(suspects, sound, met), by_name, limits, user)
    done = {frozenset(trial.members) for trial in mine}
    groups = [g for g in new_groups(suspects, sound) if frozenset(g) not in done]
    return tuple(all_reduce.group([by_name[n] for n in group], limits.all_reduce, user) for group in groups)


def tournament(names: Sequence[str], rounds: int) -> tuple[tuple[Pair, ...], ...]:
    """The first `rounds` rounds of a round robin (circle method): no pair twice; with an odd number one node waits."""
    circle: list[str | None] = [*names, *([None] if len(names) % 2 else [])]
    half = len(circle) // 2
    result = []
    for _ in range(min(rounds, len(circle) - 1)):
        couples = zip(circle[:half], reversed(circle[half:]), strict=True)
        result.append(tuple((a, b) for a, b in couples if a is not None and b is not None))
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return tuple(pairs for pairs in result if pairs)


def partition(members: Sequence[Member], size: int, least: int) -> tuple[tuple[Member, ...], ...]:
    """Groups of `size` nodes; a remainder below `least` joins the group before it. None when all are below `least`."""
    if len(members) < max(2, least):
        return ()
    groups = [tuple(members[start : start + size]) for start in range(0, len(members), size)]
    if len(groups) > 1 and len(groups[-1]) < max(2, least):
        rest = groups.pop()
        groups[-1] += rest
    return tuple(groups)


def new_pairs(suspects: Sequence[str], sound: Sequence[str], met: set[frozenset[str]]) -> tuple[Pair, ...]:
    """Each suspect with a sound node that it has not met, or else with another suspect that it has not met."""
    free, pairs = [*sound, *suspects], []
    for suspect in suspects:
        if suspect not in free:
            continue
        mate = next((n for n in free if n != suspect and frozenset((n, suspect)) not in met), None)
        if mate is not None:
            pairs.append((mate, suspect))
            free = [n for n in free if n not in (mate, suspect)]
    return tuple(pairs)


def new_groups(suspects: Sequence[str], sound: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Each suspect with sound mates of its own, as far as they go; without any, the suspects in two halves."""
    if len(suspects) < 2 and not sound:
        return ()
    if not sound:
        half = (len(suspects) + 1) // 2
        return tuple(tuple(part) for part in (suspects[:half], suspects[half:]) if len(part) > 1)
    each = max(1, len(sound) // max(1, len(suspects)))
    groups = []
    for index, suspect in enumerate(suspects):
        mates = sound[index * each : (index + 1) * each]
        if mates:
            groups.append((*mates, suspect))
    return tuple(groups)


def _pair_wave(pairs: Sequence[Pair], members: Mapping[str, Member], limits: Limits, user: str) -> Wave:
    return tuple(ib_write_bw.pair(members[a], members[b], limits.pair, user) for a, b in pairs)
