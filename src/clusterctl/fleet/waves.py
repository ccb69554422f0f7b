"""Waves: a few canary machines first, then so many at a time, and none any more once too many fail. Pure.

Endings are counted within one run: the next run begins with a canary again.
"""

from __future__ import annotations

import enum
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.fleet.finding import Report, Verdict
from clusterctl.fleet.hardware.disk_contract import DATA, ROOT
from clusterctl.fleet.node import NodeId, Step


@dataclass(frozen=True, slots=True)
class WavePolicy:
    """How many machines may be under way at a time, and how many failures are accepted.

    canary        machines of a kind that must end well before the others begin, one kind after the other; 0: none
    at_once       the most machines at a time
    per_rack      the most machines of one rack at a time (of machines with a known rack); 0: only `at_once` counts
    stop_percent  more failures than this among the last machines that ended stop all that have not begun
    of_at_least   so many machines must have ended before that counts; a run over no more than these has no canary
    patience_s    a canary that takes longer than this gets a second one
    max_failures  counts instead of `stop_percent` where it is set: more failures than this stop all that have not
                  begun, and so does one failed canary
    """

    canary: int = 1
    at_once: int = 32
    per_rack: int = 4
    stop_percent: int = 20
    of_at_least: int = 5
    patience_s: float = 1800.0
    max_failures: int | None = None

    @classmethod
    def counted(cls, at_once: int, max_failures: int) -> WavePolicy:
        """Return the policy of an operator's order: one canary of each kind alone, then `at_once` machines."""
        return cls(1, at_once, per_rack=0, of_at_least=0, patience_s=math.inf, max_failures=max_failures)


class Ending(enum.Enum):
    """What the end of one machine means for the work as such.

    GOOD and FAILED count. OTHER does not: the BMC is silent, or something was not measured. RUINED must not happen
    twice: a drive was written to that had to stay as it was.
    """

    GOOD = "good"
    FAILED = "failed"
    OTHER = "other"
    RUINED = "ruined"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine that waits. `rack`: empty where it is unknown; `kind`: machines of one kind share their canary."""

    id: NodeId
    rack: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A machine that is being worked on since `since` (the clock of `now`)."""

    machine: Machine
    since: float


@dataclass(frozen=True, slots=True)
class WaveEnd:
    machine: Machine
    ending: Ending


@dataclass(frozen=True, slots=True)
class Course:
    """The run so far. `machines`: how many the run may come to; `ended`: the last ending of each machine, in order."""

    machines: int
    running: Mapping[NodeId, Running] = field(default_factory=dict)
    ended: Mapping[NodeId, WaveEnd] = field(default_factory=dict)

    def count(self, ending: Ending, kind: str | None = None) -> int:
        """Return how many machines (of one kind) ended so."""
        return sum(one.ending is ending and kind in (None, one.machine.kind) for one in self.ended.values())


def ending(report: Report) -> Ending:
    """Return the ending that a report means: good, failed, other or ruined."""
    if report.verdict.admits:
        return Ending.GOOD
    failed = [one for one in report.findings if one.verdict is Verdict.FAIL]
    if any(one.check == DATA for one in failed):
        return Ending.RUINED
    if any(one.check in {report.step, ROOT} and one.subject != "bmc" for one in failed):
        return Ending.FAILED
    return Ending.OTHER


def stopped(policy: WavePolicy, course: Course) -> str:
    """Return why no more machines may begin; empty while they may."""
    if course.count(Ending.RUINED):
        return "a drive that had to stay as it was does not hold what it held before"
    if policy.max_failures is not None:
        return _too_many(policy, policy.max_failures, course)
    counted = [one.ending for one in course.ended.values() if one.ending is not Ending.OTHER]
    last = counted[-max(policy.at_once, policy.of_at_least) :]
    failed = last.count(Ending.FAILED)
    if len(last) < policy.of_at_least or failed * 100 <= policy.stop_percent * len(last):
        return ""
    return f"{failed} of the last {len(last)} machines failed, more than the {policy.stop_percent} % that are accepted"


def _too_many(policy: WavePolicy, most: int, course: Course) -> str:
    failed = [one.machine for one in course.ended.values() if one.ending is Ending.FAILED]
    if any(course.count(Ending.GOOD, machine.kind) < policy.canary for machine in failed):
        return "a canary failed"
    return f"{len(failed)} machines failed, more than the {most} that are accepted" if len(failed) > most else ""


def may_begin(policy: WavePolicy, course: Course, waiting: Sequence[Machine], now: float) -> tuple[NodeId, ...]:
    """Return which of the waiting machines, in their order, may begin now."""
    if stopped(policy, course):
        return ()
    room, kind = policy.at_once - len(course.running), _unproven(policy, course, waiting)
    if kind is not None:
        fresh = sum(now < one.since + policy.patience_s for one in course.running.values())
        room = min(room, policy.canary - course.count(Ending.GOOD, kind) - fresh)
    racks = Counter(one.machine.rack for one in course.running.values())
    chosen: list[NodeId] = []
    for machine in waiting:
        if len(chosen) >= room:
            break
        if kind not in (None, machine.kind):
            continue
        if _is_full(policy, racks, machine.rack):
            continue
        racks[machine.rack] += 1
        chosen.append(machine.id)
    return tuple(chosen)


def _is_full(policy: WavePolicy, racks: Mapping[str, int], rack: str) -> bool:
    return bool(rack and policy.per_rack) and racks.get(rack, 0) >= policy.per_rack


def _unproven(policy: WavePolicy, course: Course, waiting: Iterable[Machine]) -> str | None:
    """Return the first kind of which too few canaries have ended well; None once all kinds are proven."""
    if course.machines <= policy.of_at_least:
        return None
    kinds = [*(one.machine.kind for one in course.running.values()), *(machine.kind for machine in waiting)]
    return next((kind for kind in kinds if course.count(Ending.GOOD, kind) < policy.canary), None)


def planned(policy: WavePolicy, machines: Sequence[Machine]) -> Iterator[tuple[NodeId, ...]]:
    """Yield the waves in which the machines are worked on where all end well and each wave waits for the one before."""
    waiting, ended = list(machines), dict[NodeId, WaveEnd]()
    while wave := may_begin(policy, Course(len(machines), {}, ended), waiting, 0.0):
        yield wave
        ended |= {machine.id: WaveEnd(machine, Ending.GOOD) for machine in waiting if machine.id in wave}
        waiting = [machine for machine in waiting if machine.id not in wave]


def held_back(nodes: Iterable[NodeId], step: Step, why: str) -> dict[NodeId, str]:
    """Return for each node that did not begin the reason."""
    return dict.fromkeys(nodes, f"{step.value} was not begun, because no more machines begin it: {why}")
