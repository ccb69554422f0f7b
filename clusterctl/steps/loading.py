"""Runs a suite's loads over nodes of one SKU, wave after wave, until every one is proven or its fault is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from clusterctl.burnin import schedule
from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads.model import Answer, Round, Trial, Wave
from clusterctl.burnin.suite import Suite
from clusterctl.ports import Deadline, Shell
from clusterctl.steps.guests import Guest, ask

CONFIRMING_WAVES = 4
"""At most so many extra waves tell a bad node from its mates."""


@dataclass(frozen=True, slots=True)
class Loading:
    """`user` is who the loads run as on the hosts; `pool` carries one thread for each guest."""

    shell: Shell
    suite: Suite
    limits: Limits
    user: str
    pool: ThreadPoolExecutor

    def trials(self, guests: Sequence[Guest], deadline: Deadline) -> list[Trial]:
        """The suite's waves, then as many confirming ones as tell who is to blame."""
        members = [guest.member for guest in guests]
        by_name = {guest.node.name: guest for guest in guests}
        trials: list[Trial] = []
        for wave in schedule.plan(members, self.suite, self.limits, self.user):
            trials += self._wave(wave, by_name, deadline)
        for load in self.suite.loads:
            for _ in range(CONFIRMING_WAVES):
                wave = schedule.confirm(load, trials, members, self.limits, self.user)
                if not wave:
                    break
                trials += self._wave(wave, by_name, deadline)
        return trials

    def _wave(self, wave: Wave, guests: Mapping[str, Guest], deadline: Deadline) -> Iterator[Trial]:
        """All rounds of a wave at once; every member's evidence stays with it."""
        asked = {
            (index, name): self.pool.submit(
                ask, self.shell, guests[name].host, command.stdin, deadline.within(one.timeout), privileged=False
            )
            for index, one in enumerate(wave)
            for name, command in one.commands.items()
        }
        for index, one in enumerate(wave):
            answers = {name: future.result()[0] for (at, name), future in asked.items() if at == index}
            yield from self._read(one, answers, guests)

    def _read(self, one: Round, answers: Mapping[str, Answer], guests: Mapping[str, Guest]) -> Iterator[Trial]:
        tried = schedule.read(one, answers, self.limits)
        for member in one.members:
            guests[member.name].keep(tried.evidence)
        yield from tried.trials
