"""Which nodes are loaded together, and when. Pure: the step runs the waves and hands their answers to `read`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.burnin import hunt
from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads import all_reduce, ib_write_bw
from clusterctl.burnin.loads.model import Answer, Member, Round, Trial, Tried, Wave
from clusterctl.burnin.suite import Suite
from clusterctl.cabling.tournament import circle

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The loads of a suite under the limits of one SKU; `user` is who they run as on the hosts."""

    suite: Suite
    limits: Limits
    user: str

    def plan(self, members: Sequence[Member]) -> tuple[Wave, ...]:
        """The waves of the suite's loads, to be run one after the other; empty where there is nobody to measure with.

        The pairs' rounds lie apart, with the groups between them: a fault that comes and goes is not gone for all of
        them.
        """
        pairs = self._pair_waves(members) if ib_write_bw.NAME in self.suite.loads else ()
        groups = self._group_waves(members) if all_reduce.NAME in self.suite.loads else ()
        return (*pairs[:1], *groups, *pairs[1:])

    def confirm(self, load: str, trials: Iterable[Trial], members: Sequence[Member]) -> Wave:
        """One more wave that tells the bad node from its mates, and measures who met too few of them; empty when every
        node is decided, or nothing new can be learned.
        """
        mine = [trial for trial in trials if trial.load == load]
        unsettled = self.unsettled(load, mine)
        suspects = [m.name for m in members if unsettled(m.name)]
        sound = [m.name for m in members if m.name in hunt.sound(mine) and m.name not in suspects]
        done = {frozenset(trial.members) for trial in mine}
        by_name = {member.name: member for member in members}
        if load == ib_write_bw.NAME:
            return self._pair_wave(new_pairs(suspects, sound, done), by_name)
        groups = [group for group in new_groups(suspects, sound) if frozenset(group) not in done]
        return tuple(self._group([by_name[name] for name in group]) for group in groups)

    def unsettled(self, load: str, trials: Iterable[Trial]) -> Callable[[str], bool]:
        """Of whom it is not known whether they are sound: in doubt, or measured with too few others."""
        mine = [trial for trial in trials if trial.load == load]
        wanted = self.suite.pair_rounds if load == ib_write_bw.NAME else 1
        met, doubtful = hunt.measured_groups(mine), hunt.undecided(mine)
        return lambda name: name in doubtful or len(met.get(name, ())) < wanted

    def unproven(self, load: str, trials: Iterable[Trial]) -> Callable[[str], bool]:
        """Of whom nothing says that they are sound: in doubt, or measured with nobody."""
        mine = [trial for trial in trials if trial.load == load]
        met, doubtful = hunt.measured_groups(mine), hunt.undecided(mine)
        return lambda name: name in doubtful or not met.get(name)

    def _pair_waves(self, members: Sequence[Member]) -> tuple[Wave, ...]:
        by_name = {member.name: member for member in members}
        rounds = itertools.islice(circle([*by_name]), self.suite.pair_rounds)
        return tuple(self._pair_wave(pairs, by_name) for pairs in rounds if pairs)

    def _pair_wave(self, pairs: Sequence[Pair], members: Mapping[str, Member]) -> Wave:
        return tuple(ib_write_bw.pair(members[a], members[b], self.limits.pair, self.user) for a, b in pairs)

    def _group_waves(self, members: Sequence[Member]) -> tuple[Wave, ...]:
        method = self.limits.all_reduce
        groups = partition(members, method.group_nodes, method.min_nodes)
        return (tuple(self._group(group) for group in groups),) if groups else ()

    def _group(self, members: Sequence[Member]) -> Round:
        return all_reduce.group(members, self.limits.all_reduce, self.user)


def read(one: Round, answers: Mapping[str, Answer], limits: Limits) -> Tried:
    """What the answers of a round (by member's name) say."""
    if one.load == ib_write_bw.NAME:
        return ib_write_bw.read(one, answers, limits)
    return all_reduce.read(one, answers, limits)


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
