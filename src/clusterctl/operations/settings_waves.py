"""The waves in which idle machines are worked on: claimed, looked at again, done, and counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import click

from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.settings.plan import Todo, permitted, stops
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Outside
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.pool import publish
from clusterctl.ports import Claims, Deadline
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.settings.apply_baseline import BaselineResult


class Work(Protocol):
    """What is done to the machines of a wave.

    acts     the kinds of acts that it may find open, because an earlier run of it was interrupted
    seconds  that one wave may take
    """

    @property
    def acts(self) -> frozenset[str]: ...
    @property
    def seconds(self) -> float: ...
    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], acts: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]: ...


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
    done: list[BaselineResult] = field(default_factory=list)
    stopped: str = ""

    @property
    def most_images(self) -> int:
        return max((len(plan.bmc) + len(plan.host) for plan in self.plans.values()), default=0)

    @property
    def failures(self) -> int:
        return sum(1 for one in self.done if one.error is not None)


@dataclass(frozen=True, slots=True)
class Waves:
    """`does` is told in words of each machine that went well."""

    office: Office
    outside: Outside
    wanted: Wanted
    course: Course
    work: Work
    does: str

    def run(self, cancelled: threading.Event) -> None:
        """Until all are done, too many have failed, or the run is stopped."""
        course = self.course
        for number, wave in enumerate(course.order):
            with self._claimed(wave) as claims:
                deadline = Deadline.after(self.work.seconds, cancelled)
                members = list(self._members(wave, claims))
                for settled in self.work.run(members, IntentLog(self.office.journal, claims.granted), deadline):
                    course.done.append(settled)
                    click.echo(f"{settled.name}: {settled.error or self.does}", err=True)
            rest = sum(map(len, course.order[number + 1 :]))
            if cancelled.is_set():
                return
            if rest and stops(number, course.canaries, course.failures, self.wanted.max_failures):
                words = f"stopped after wave {number + 1}: {course.failures} failed; {rest} nodes were not touched"
                course.stopped = words
                return

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

    def _members(self, wave: Sequence[str], claims: Claims) -> Iterator[tuple[NodeState, Serial]]:
        """Those of the wave that may still be set, now that they are claimed; gold ones are held first."""
        journal, known = self.office.journal, ids(self.office)
        for name in wave:
            node = journal.state(known[name])
            if node.id not in claims.granted:
                continue
            try:
                serial = permitted(node, CLOCK.now(), from_pool=self.wanted.from_pool, acts=self.work.acts)
            except UsageError as error:
                self.course.left[name] = f"{error.message}; {error.remedy}"
                continue
            if node.in_pool(CLOCK.now()):
                held = orders.hold(node, self.wanted.reason, None)
                journal.append(held.events, claim=claims.granted[node.id])
                publish(self.office, self.outside.pool)
            yield journal.state(node.id), serial


def ids(office: Office) -> Mapping[str, NodeId]:
    """Of all that the journal knows, by name."""
    return {node.name: node.id for node in office.journal.summaries()}
