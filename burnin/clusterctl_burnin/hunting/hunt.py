"""The hunt: `next` says who runs with whom, `tell` takes what came of it, `answer` says what is known, and what not.

Pure and deterministic: its state is its events, so that a run that was killed goes on where it stood.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from clusterctl_burnin.hunting import planning
from clusterctl_burnin.hunting.affine_plane import screening_groups
from clusterctl_burnin.hunting.answer import Answer, answer
from clusterctl_burnin.hunting.model import Group, Part, Rail, Result, Round, Rules
from clusterctl_burnin.hunting.posterior import Case, Posterior, believe, conditioned
from clusterctl_burnin.hunting.record import Dropped, HuntEvent, Record, rebuilt

PATIENCE = 2
"""A host that could not be measured is asked so many more times than others before it is left unmeasured."""

ENOUGH_OF_A_PAIR = 3


class Hunt:
    """Which host, path or rail is bad among `hosts` (2 to some thousands). Not thread-safe."""

    def __init__(self, hosts: Iterable[str], rules: Rules | None = None, events: Iterable[HuntEvent] = ()) -> None:
        """`events` are those of a hunt of the same hosts that is to go on. Raises ValueError where they are not."""
        self._hosts = tuple(sorted(set(hosts)))
        self._rules = rules or Rules()
        self._record: Record = rebuilt(events)
        self._beliefs: Mapping[Rail, Posterior] | None = None
        if not all(one.hosts <= set(self._hosts) for one in self._record.rounds.values()):
            raise ValueError("these are the events of another hunt: they name hosts that are not in this one")

    @property
    def events(self) -> tuple[HuntEvent, ...]:
        """All that there is to keep: the same for the same rounds and results, whatever order they were told in."""
        return tuple(self._record.events())

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(host for host in self._hosts if host not in self._record.gone)

    def next(self) -> Round | None:
        """The groups to run now: of the round that is open, those that nothing was told of. None: the hunt is over."""
        pending = self._record.untold()
        if pending is not None:
            return pending
        number = len(self._record.rounds) + 1
        groups = self._groups(number) if number <= self._rules.rounds else ()
        if not groups:
            return None
        new = Round(number, tuple(sorted(groups)))
        self._record.apply(new)
        return new

    def tell(self, results: Iterable[Result]) -> None:
        """Results in any order, all rails of a group together; ValueError for a group that was never asked."""
        for result in results:
            self._record.apply(result)
        self._beliefs = None

    def drop(self, host: str) -> None:
        """The host is gone: it is in no further group, and what went wrong with it in this round accuses no host."""
        if host not in self._hosts:
            raise ValueError(f"{host} is not in this hunt")
        self._record.apply(Dropped(host, max(self._record.rounds, default=0)))
        self._beliefs = None

    def answer(self) -> Answer:
        """What is known now, after any round."""
        return answer(self._hosts, self._record, self._believed(), self._rules)

    def _believed(self) -> Mapping[Rail, Posterior]:
        if self._beliefs is None:
            rails = self._record.rails()
            noise, count = self._rules.noise, len(self._hosts)
            beliefs = {rail: believe(*self._record.runs(rail), count, noise) for rail in rails}
            self._beliefs = conditioned(beliefs) if self._rules.somebody else beliefs
        return self._beliefs

    def _groups(self, number: int) -> tuple[Group, ...]:
        beliefs = self._believed()
        undecided = self._undecided(beliefs)
        plan = planning.RoundPlan(set(self.present), self._clean(beliefs, number), self._met(undecided))
        times, clean = self._record.times(), frozenset(plan.clean)
        weights: dict[str, float] = {}
        for case in undecided:
            paths = self._paths(case, times)
            planning.place_paths(plan, paths, self._rules)
            for host, weight in () if paths else planning.suspects(case).items():
                weights[host] = max(weight, weights.get(host, 0.0))
        for host in self._missed(beliefs):
            weights.setdefault(host, 0.0)
        if weights:
            planning.place_suspects(plan, weights, self._rules, self._size(number), number)
        planning.place_others(plan, self._wanting(weights), self._hosts, number - 1, self._rules)
        return tuple(group for group in plan.groups if times.get(group, 0) < self._often(group, clean))

    def _often(self, group: Group, clean: frozenset[str]) -> int:
        """The same group again tells whether it is chance, where somebody in it is in doubt and others are not."""
        return self._rules.repeats if clean and not clean.issuperset(group) else self._rules.alone

    def _paths(self, case: Case, times: Mapping[Group, int]) -> Mapping[Part, float]:
        """The paths to measure for it; a pair that ran by itself a few times tells less than its ends with others."""
        paths = planning.doubtful_paths(case)
        pairs = self._rules.most == 2
        return {path: p for path, p in paths.items() if not pairs or times.get(path, 0) < ENOUGH_OF_A_PAIR}

    def _met(self, undecided: list[Case]) -> Mapping[str, Mapping[str, int]]:
        """Whoever was in a run that went wrong, with whom."""
        met: dict[str, Counter[str]] = defaultdict(Counter)
        for case in undecided:
            for group in case.runs:
                for host in group:
                    met[host].update(group)
        return met

    def _undecided(self, beliefs: Mapping[Rail, Posterior]) -> list[Case]:
        """The cases that are not sure, of all rails; of a rail that fails as a whole, none."""
        sure = self._rules.sure
        return [c for b in beliefs.values() if b.common < sure for c in b.cases if c.certainty < sure]

    def _clean(self, beliefs: Mapping[Rail, Posterior], number: int) -> list[str]:
        """Proven partners, beginning with another one each round."""
        measured = self._record.measured()
        blamed: dict[str, float] = {}
        for belief in beliefs.values():
            for case in belief.cases:
                for part, p in case.parts.items():
                    if len(part) == 1:
                        blamed[part[0]] = max(p, blamed.get(part[0], 0.0))
        passed = {host for rail in beliefs for group in self._record.runs(rail)[0] for host in group}
        clean = [h for h in self.present if h in passed and measured.get(h, 0) and blamed.get(h, 0.0) <= planning.CLEAN]
        turn = (number * 7) % max(1, len(clean))
        return clean[turn:] + clean[:turn]

    def _wanting(self, weights: Mapping[str, float]) -> list[str]:
        """Who has not been measured often enough, and is not measured apart anyway."""
        measured, asked = self._record.measured(), self._record.asked()
        wanted = self._rules.screening
        return [
            host
            for host in self.present
            if measured.get(host, 0) < wanted and asked.get(host, 0) < wanted + PATIENCE and host not in weights
        ]

    def _missed(self, beliefs: Mapping[Rail, Posterior]) -> list[str]:
        """Who was asked and not measured, or never passed though others are to blame for that: tried again among proven
        partners, so that no other host is missed with it.
        """
        common = any(belief.common >= self._rules.sure for belief in beliefs.values())
        told = self._record.measured() if common else self._record.passed()
        asked, measured, patience = self._record.asked(), self._record.measured(), self._rules.screening + PATIENCE
        missed = {host: asked[host] - measured.get(host, 0) for host in self.present if asked.get(host)}
        wanting = [host for host, times in missed.items() if not told.get(host) and times < patience]
        return [h for h in wanting if not any(b.of((h,)) >= self._rules.sure for b in beliefs.values())]

    def _size(self, number: int) -> int:
        groups = screening_groups(self._hosts, number - 1, self._rules.least, self._rules.most, self._rules.size)
        return max((len(group) for group in groups), default=self._rules.least)
