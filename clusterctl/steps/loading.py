"""Runs a suite's loads over nodes of one SKU, wave after wave, until every one is proven or its fault is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads.model import Round, Trial, Wave
from clusterctl.burnin.schedule import Schedule, read
from clusterctl.burnin.suite import Suite
from clusterctl.ports import Deadline, Shell
from clusterctl.steps.guests import Guest, Silent, ask, call

CONFIRMING_WAVES = 6
"""At most so many extra waves tell a bad node from its mates; a fault that comes and goes needs some."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How many nodes are checked, and how many rounds of a load run, at the same time at most.

    Real nodes do not disturb each other, and loads are to fill the fabric. Those of a rehearsal share the controller's
    processors: more at once would measure the controller.
    """

    sweeps: int = 256
    rounds: int = 4096


FULL_PACE = Pace()
More = Callable[[bool], Sequence[Guest]]
"""Brings further mates for a batch that is proven, or is not."""


@dataclass(slots=True)
class Loading:
    """`user` is who the loads run as on the hosts; `pool` carries one thread for each guest.

    at_once  so many rounds of a wave run together at most
    lost     who fell silent under the loads, and with what words: they are in no further wave, and no trial that they
             took part in and that went wrong is held against their mates
    """

    shell: Shell
    suite: Suite
    limits: Limits
    user: str
    pool: ThreadPoolExecutor
    at_once: int
    lost: dict[str, Silent] = field(default_factory=dict)

    def trials(self, guests: Sequence[Guest], more: More, deadline: Deadline) -> list[Trial]:
        """The suite's waves, then as many confirming ones as tell who is to blame, with the mates that `more` brings
        where those who are there do not tell, or are too few.
        """
        by_name = {guest.node.name: guest for guest in guests}
        trials: list[Trial] = []
        schedule = Schedule(self.suite, self.limits, self.user)
        for wave in schedule.plan([guest.member for guest in guests]):
            trials = self._spared([*trials, *self._wave(wave, by_name, deadline)])
        for load in self.suite.loads:
            for _ in range(CONFIRMING_WAVES):
                there = [guest.member for guest in by_name.values() if guest.node.name not in self.lost]
                wave = schedule.confirm(load, trials, there)
                if wave:
                    trials = self._spared([*trials, *self._wave(wave, by_name, deadline)])
                    continue
                mine = [guest.node.name for guest in guests if guest.node.name not in self.lost]
                proven = not any(map(schedule.unproven(load, trials), mine))
                newcomers = more(proven) if any(map(schedule.unsettled(load, trials), mine)) else ()
                if not newcomers:
                    break
                by_name |= {guest.node.name: guest for guest in newcomers}
        return trials

    def _spared(self, trials: Iterable[Trial]) -> list[Trial]:
        """Without the trials that went wrong with a lost node in them: it explains them."""
        return [trial for trial in trials if trial.passed or not self.lost.keys() & set(trial.members)]

    def _wave(self, wave: Wave, guests: Mapping[str, Guest], deadline: Deadline) -> list[Trial]:
        """All rounds of a wave at once, as far as the pace allows, but for those with a lost node."""
        rounds = [one for one in wave if not self.lost.keys() & {member.name for member in one.members}]
        if not rounds:
            return []
        with ThreadPoolExecutor(min(self.at_once, len(rounds)), "round") as running:
            tried = list(running.map(lambda one: self._round(one, guests, deadline), rounds))
        doubtful = {
            member.name
            for one, trials in zip(rounds, tried, strict=True)
            if not all(trial.passed for trial in trials)
            for member in one.members
        }
        self._call(doubtful, guests, deadline)
        return [trial for trials in tried for trial in trials]

    def _round(self, one: Round, guests: Mapping[str, Guest], deadline: Deadline) -> tuple[Trial, ...]:
        """All members of a round at once; every member's evidence stays with it."""
        until = deadline.within(one.timeout)
        asked = {
            name: self.pool.submit(ask, self.shell, guests[name].host, command.stdin, until, privileged=False)
            for name, command in one.commands.items()
        }
        answers = {name: future.result()[0] for name, future in asked.items()}
        told = {name: answer.words if isinstance(answer, Silent) else answer for name, answer in answers.items()}
        tried = read(one, told, self.limits)
        for member in one.members:
            guests[member.name].keep(tried.evidence)
        return tried.trials

    def _call(self, names: Iterable[str], guests: Mapping[str, Guest], deadline: Deadline) -> None:
        """Whoever was in a trial that went wrong is asked whether it is still there."""
        calls = {name: self.pool.submit(call, self.shell, guests[name].host, deadline) for name in sorted(names)}
        for name, future in calls.items():
            silent = future.result()
            if silent is not None:
                self.lost[name] = silent
