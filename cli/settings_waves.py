"""The waves in which machines are brought to their baselines: claimed, looked at again, done, and counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import click

from clusterctl.cli.office import CLOCK, Office
from clusterctl.cli.outside import Outside
from clusterctl.cli.pool import publish
from clusterctl.edges.images import ImageFiles
from clusterctl.fleet import orders
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.settings_plan import Todo, permitted, stops
from clusterctl.ports import Claims, Deadline
from clusterctl.steps.settle import Settled, Settler
from clusterctl.steps.settle_hands import SettleMeans, SettlePace
from clusterctl.steps.settle_look import Asked
from clusterctl.steps.settle_wave import Member, run_wave
from clusterctl.steps.step import Acts

PACE = {True: SettlePace(poll=1.0, show=60.0), False: SettlePace()}
"""By whether the site is a rehearsal."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the person said."""

    patterns: Sequence[str]
    reason: str
    wave: int
    max_failures: int
    from_pool: bool


@dataclass(slots=True)
class Course:
    """How it goes: the plans, who goes together, who is left alone and why, and what became of each."""

    plans: dict[str, Todo]
    order: tuple[tuple[str, ...], ...]
    canaries: int
    left: dict[str, str]
    done: list[Settled] = field(default_factory=list)
    stopped: str = ""

    @property
    def most_images(self) -> int:
        return max((len(plan.bmc) + len(plan.host) for plan in self.plans.values()), default=0)

    @property
    def failures(self) -> int:
        return sum(1 for one in self.done if one.error is not None)


@dataclass(frozen=True, slots=True)
class Waves:
    """`machines` by name, as they were planned for."""

    office: Office
    outside: Outside
    machines: Mapping[str, Asked]
    wanted: Wanted
    course: Course

    def run(self, cancelled: threading.Event) -> None:
        """Until all are done, too many have failed, or the run is stopped."""
        course, pace = self.course, PACE[self.office.site.settings.simulated]
        settler = self._settler(pace)
        for number, wave in enumerate(course.order):
            with self._claimed(wave) as claims:
                deadline = Deadline.after(pace.longest * (1 + course.most_images), cancelled)
                members = list(self._members(wave, claims))
                for settled in run_wave(settler, members, Acts(self.office.journal, claims.granted), deadline):
                    course.done.append(settled)
                    click.echo(f"{settled.name}: {settled.error or 'as the baseline has it'}", err=True)
            rest = sum(map(len, course.order[number + 1 :]))
            if cancelled.is_set():
                return
            if rest and stops(number, course.canaries, course.failures, self.wanted.max_failures):
                words = f"stopped after wave {number + 1}: {course.failures} failed; {rest} nodes were not touched"
                course.stopped = words
                return

    def _settler(self, pace: SettlePace) -> Settler:
        office = self.office
        return Settler(SettleMeans(self.outside.bmcs, office.site.bmc_address, office.journal, ImageFiles(), pace))

    @contextmanager
    def _claimed(self, wave: Sequence[str]) -> Iterator[Claims]:
        """What can be had of the wave; who holds the others is told."""
        names = {node: name for name, node in ids(self.office).items() if name in wave}
        claims = self.office.journal.claim(names, self.office.run)
        try:
            self.course.left.update({names[node]: holder for node, holder in claims.refused.items()})
            yield claims
        finally:
            self.office.journal.release(claims.granted.values())

    def _members(self, wave: Sequence[str], claims: Claims) -> Iterator[Member]:
        """Those of the wave that may still be set, now that they are claimed; gold ones are held first."""
        journal, known = self.office.journal, ids(self.office)
        for name in wave:
            node = journal.state(known[name])
            if node.id not in claims.granted:
                continue
            try:
                serial = permitted(node, CLOCK.now(), from_pool=self.wanted.from_pool)
            except UsageError as error:
                self.course.left[name] = f"{error.message}; {error.remedy}"
                continue
            if node.in_pool(CLOCK.now()):
                held = orders.hold(node, f"settings: {self.wanted.reason}", None)
                journal.append(held.events, claim=claims.granted[node.id])
                publish(self.office, self.outside.pool)
            yield Member(journal.state(node.id), serial, self.machines[name].baseline)


def ids(office: Office) -> Mapping[str, NodeId]:
    """Of all that the journal knows, by name."""
    return {node.name: node.id for node in office.journal.summaries()}
