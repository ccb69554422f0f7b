"""The hunt: `next` returns the groups to run, `add` takes their results, `answer` returns what is known.

Pure and deterministic: its state is its events, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.answer import HuntAnswer, answer
from clusterctl_burnin.hunting.deal import Meetings, Sizes, deal, even_sizes, mixed
from clusterctl_burnin.hunting.evidence import HuntEvidence
from clusterctl_burnin.hunting.follow_up import FollowUpLimits, FollowUpPool, follow_up
from clusterctl_burnin.hunting.model import (
    SHARED,
    Group,
    HuntPart,
    HuntResult,
    HuntRound,
    PartKind,
    Rail,
    Rules,
    Topology,
)
from clusterctl_burnin.hunting.posterior import Posterior, PosteriorCase, given_bad, posterior
from clusterctl_burnin.hunting.record import Dropped, HuntEvent, HuntRun, Record, rebuilt
from clusterctl_burnin.hunting.wide_rounds import plane, wide_rounds

PATIENCE = 3
"""A host that could not be measured is asked so many more times than others before it stays unmeasured."""


NARROW = 4
"""The first rounds have groups of the usual size, which distinguish hosts and leaves. Later rounds have large groups of
hosts that passed, where most pairs of hosts are together at once.
"""


@dataclass(frozen=True, slots=True)
class _Hosts:
    """The present hosts in the order of a round, by what is known of them.

    doubtful  suspects, and hosts that are bad
    """

    present: list[str]
    proven: list[str]
    suspects: set[str]
    doubtful: set[str]


class Hunt:
    """Which part is bad among `hosts` (2 to some thousands) and what connects them. Not thread-safe."""

    def __init__(
        self,
        hosts: Iterable[str],
        rules: Rules | None = None,
        events: Iterable[HuntEvent] = (),
        topology: Topology | None = None,
    ) -> None:
        """Begin a hunt. `events`: of one of the same hosts that is to go on. Raise ValueError where they are not."""
        self._hosts = tuple(sorted(set(hosts)))
        self._rules = rules or Rules()
        self._topology = topology or {}
        self._record: Record = rebuilt(events)
        self._posteriors: Mapping[Rail, Posterior] | None = None
        self._meetings, self._counted = Meetings(), 0
        if not all(one.hosts <= set(self._hosts) for one in self._record.rounds.values()):
            raise ValueError("these are the events of another hunt: they name hosts that are not in this one")

    @property
    def events(self) -> tuple[HuntEvent, ...]:
        """Return all that must be kept: the same for the same rounds and results in any order."""
        return tuple(self._record.events())

    @property
    def present(self) -> tuple[str, ...]:
        return tuple(host for host in self._hosts if host not in self._record.dropped)

    def next(self) -> HuntRound | None:
        """Return the groups to run now: of the round that is open, those without a result. None: the hunt is over."""
        pending = self._record.open_round()
        if pending is not None:
            return pending
        number = len(self._record.rounds) + 1
        groups = self._groups(number) if number <= self._rules.rounds else ()
        if not groups:
            return None
        new = HuntRound(number, tuple(sorted(groups)))
        self._record.apply(new)
        return new

    def add(self, results: Iterable[HuntResult]) -> None:
        """Take results in any order, all rails of a group together. Raises ValueError for a group never asked."""
        for result in results:
            self._record.apply(result)
        self._posteriors = None

    def drop(self, host: str) -> None:
        """Take the host out: it is in no further group, and what failed with it in this round counts against none."""
        if host not in self._hosts:
            raise ValueError(f"{host} is not in this hunt")
        self._record.apply(Dropped(host, max(self._record.rounds, default=0)))
        self._posteriors = None

    def answer(self) -> HuntAnswer:
        """Return what is known now, after any round."""
        return answer(self._hosts, self._record, self._updated(), self._rules)

    def _updated(self) -> Mapping[Rail, Posterior]:
        if self._posteriors is None:
            found: dict[tuple[HuntRun, ...], Posterior] = {}
            for rail in self._record.rails():
                runs = self._record.runs(rail)
                if runs not in found:  # a fault of a whole host shows on all rails alike
                    evidence = HuntEvidence(runs, self._hosts, self._topology)
                    found[runs] = posterior(evidence, self._rules.assumptions)
            posteriors = {rail: found[self._record.runs(rail)] for rail in self._record.rails()}
            self._posteriors = given_bad(posteriors) if self._rules.known_bad else posteriors
        return self._posteriors

    def _groups(self, number: int) -> tuple[Group, ...]:
        """Return the groups of a round: screening runs while a host lacks any, then follow-up runs."""
        posteriors = self._updated()
        sure, cases = self._sure(posteriors), self._undecided(posteriors)
        hosts = self._hosts_of(number, sure, cases)
        wanting = self._wanting(sure)
        shared = self._shared_in_doubt(sure, cases)
        if wanting and (number <= NARROW or shared):
            groups = self._usual(number, hosts, wanting)
        elif wanting:
            groups = self._wide(number, hosts, wanting)
        else:
            groups = self._after_screening(number, hosts, cases, shared=shared)
        times = self._record.times()
        return tuple(group for group in groups if times.get(group, 0) < self._often(group, hosts))

    def _hosts_of(self, number: int, sure: Iterable[HuntPart], cases: Iterable[PosteriorCase]) -> _Hosts:
        suspects = self._suspects(cases)
        doubtful = suspects | {part.names[0] for part in sure if part.kind is PartKind.HOST}
        present, passed = self._shuffled(number), self._record.passed()
        proven = [name for name in present if passed.get(name) and name not in doubtful]
        return _Hosts(present, proven, suspects, doubtful)

    def _after_screening(
        self, number: int, hosts: _Hosts, cases: Sequence[PosteriorCase], *, shared: bool
    ) -> tuple[Group, ...]:
        """Return wide groups between the follow-up runs of what failed before and after them.

        Hosts in doubt take part in no wide group, so that they are cleared first. What fails in wide groups is followed
        up after all of them, since two failed groups have few hosts in common.
        """
        if not self._wide_so_far() or shared:
            return self._follow_up(number, hosts, cases) or (() if shared else self._further(hosts))
        return self._further(hosts) or self._follow_up(number, hosts, cases)

    def _follow_up(self, number: int, hosts: _Hosts, cases: Sequence[PosteriorCase]) -> tuple[Group, ...]:
        bad = hosts.doubtful - hosts.suspects
        others = _among(hosts.present, {*hosts.present}.difference(hosts.proven, bad))
        pool = FollowUpPool(hosts.proven, others, self._topology, self._met(), self._rules.least)
        sizes = Sizes(self._rules.least, self._rules.most)
        return tuple(follow_up(cases, pool, FollowUpLimits(sizes, self._rules.widest, self._rules.sure), number))

    def _shared_in_doubt(self, sure: Sequence[HuntPart], cases: Iterable[PosteriorCase]) -> bool:
        """Return whether a part that many hosts share is bad or in doubt."""
        doubtful = (part for case in cases for part in case.open(self._rules.sure))
        return any(part.kind in SHARED for part in (*sure, *doubtful))

    def _usual(self, number: int, hosts: _Hosts, wanting: set[str]) -> tuple[Group, ...]:
        """Return screening groups of the usual size, suspects apart."""
        mine = _among(hosts.present, wanting | hosts.suspects)
        sizes = self._sizes(mine, hosts)
        placed = self._with_partners(mine, hosts, sizes.most)
        return deal(placed, hosts.suspects, number - 1, self._topology, sizes, self._met())

    def _wide(self, number: int, hosts: _Hosts, wanting: set[str]) -> tuple[Group, ...]:
        """Return large groups of the proven hosts, and groups of the usual size of the others."""
        mine = _among(hosts.present, wanting | hosts.suspects)
        due = self._wide_due()
        good = hosts.proven if due else _among(mine, {*hosts.proven})
        if self._rules.widest <= self._rules.most or len(good) < 2 * self._rules.most:
            return self._usual(number, hosts, wanting)
        narrow = self._apart(_among(mine, {*mine} - {*good}), hosts, good)
        left = _among(good, {*good} - {*narrow})
        met = self._met()
        groups = deal(narrow, hosts.suspects, number - 1, self._topology, self._sizes(mine, hosts), met)
        if due:
            return (*groups, *self._lines(left))
        large = even_sizes(len(left), Sizes(self._rules.least, self._rules.widest))
        return (*groups, *deal(left, (), 2 * number, self._topology, large, met))

    def _lines(self, names: Sequence[str]) -> tuple[Group, ...]:
        """Return large groups of these hosts, in which each two are together equally often."""
        there, dealt = {*names}, plane(self._hosts, self._rules.widest)
        lines = dealt.groups(self._wide_so_far()) if dealt else []
        groups = (tuple(name for name in line if name in there) for line in lines)
        return tuple(group for group in groups if len(group) >= self._rules.least)

    def _further(self, hosts: _Hosts) -> tuple[Group, ...]:
        """Return the groups of a further wide round, until each two hosts were together as often as wanted."""
        enough = len(hosts.proven) >= 2 * self._rules.most
        return self._lines(hosts.proven) if enough and self._wide_due() else ()

    def _wide_due(self) -> bool:
        return self._wide_so_far() < wide_rounds(self._hosts, self._rules)

    def _wide_so_far(self) -> int:
        return sum(all(self._is_wide(group) for group in one.groups) for one in self._record.rounds.values())

    def _sizes(self, mine: Sequence[str], hosts: _Hosts) -> Sizes:
        """Return the usual sizes, or so much smaller ones that each group has one suspect at most, and one has none:
        where all hosts fit in one group, each of them failed with the suspect.
        """
        least, most = self._rules.least, self._rules.most
        return Sizes(least, max(least, min(most, len(mine) // (len(hosts.suspects) + 1))))

    def _apart(self, names: list[str], hosts: _Hosts, good: list[str]) -> list[str]:
        """Return the names with as many proven partners as groups with one suspect each need, if there are so many."""
        if not names:
            return []
        there = {*names}
        wanted = len(names) * (self._rules.most - 1)
        partners = [name for name in good if name not in there]
        enough = wanted if wanted <= len(partners) // 2 else -len(names) % self._rules.most
        return self._with_partners([*names, *partners[:enough]], hosts, self._rules.most)

    def _met(self) -> Meetings:
        """Return who met in groups of the usual size. Wide rounds have all together alike, where they are planned."""
        for one in [*self._record.rounds.values()][self._counted :]:
            self._counted += 1
            for group in one.groups:
                if not self._is_wide(group) or not self._rules.meetings:
                    self._meetings.add(group)
        return self._meetings

    def _is_wide(self, group: Group) -> bool:
        return len(group) >= 2 * self._rules.most

    def _shuffled(self, number: int) -> list[str]:
        """Return the hosts that are present, those measured least first, else in another order each round."""
        measured = self._record.measured()
        return sorted(mixed(self.present, number), key=lambda name: measured.get(name, 0))

    def _often(self, group: Group, hosts: _Hosts) -> int:
        """Return how often the group may run; where it failed and no host is proven, only other hosts show more."""
        unlimited = hosts.proven or hosts.doubtful.isdisjoint(group)
        return self._rules.repeats if unlimited else self._rules.alone

    def _with_partners(self, names: list[str], hosts: _Hosts, size: int) -> list[str]:
        """Return the names with as many partners as fill their groups."""
        there = {*names}
        more = [name for name in hosts.proven if name not in there][: -len(names) % size]
        short = self._rules.least - len(names) - len(more)
        there |= {*more}
        more += [name for name in hosts.present if name not in there][: max(0, short)]
        return [*names, *more]

    def _sure(self, posteriors: Mapping[Rail, Posterior]) -> list[HuntPart]:
        sure = self._rules.sure
        return [part for b in posteriors.values() for case in b.cases for part, p in case.parts.items() if p >= sure]

    def _undecided(self, posteriors: Mapping[Rail, Posterior]) -> list[PosteriorCase]:
        """Return the cases that are in doubt, those of several rails that are alike once."""
        cases = {case.sets: case for posterior in posteriors.values() for case in posterior.cases}
        return [case for case in cases.values() if case.open(self._rules.sure)]

    def _suspects(self, cases: Iterable[PosteriorCase]) -> set[str]:
        parts = (part for case in cases for part in case.open(self._rules.sure))
        return {part.names[0] for part in parts if part.kind is PartKind.HOST}

    def _wanting(self, sure: Iterable[HuntPart]) -> set[str]:
        """Return the hosts that did not pass often enough, except those of sure parts.

        A run that another part failed shows nothing of a host, so only passed runs count.
        """
        known = {name for part in sure if part.kind in (PartKind.HOST, PartKind.LEAF) for name in part.names}
        counted = self._record.measured() if any(p.kind is PartKind.ALL for p in sure) else self._record.passed()
        asked, wanted = self._record.asked(), self._rules.screening
        return {
            name
            for name in self.present
            if name not in known and asked.get(name, 0) < wanted + PATIENCE and counted.get(name, 0) < wanted
        }


def _among(names: Iterable[str], wanted: Collection[str]) -> list[str]:
    return [name for name in names if name in wanted]
