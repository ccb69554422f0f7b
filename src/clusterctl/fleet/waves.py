"""Many machines one after another: a few first, then so many at a time, and none any more once too many fail. Pure.

How it goes is counted within one run; the next run begins with a canary again.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.fleet.finding import Report, Verdict
from clusterctl.fleet.hardware.disk_contract import DATA, ROOT
from clusterctl.fleet.node import NodeId, Step


@dataclass(frozen=True, slots=True)
class WavePolicy:
    """What the site bears.

    canary        so many machines must have ended well before the others begin; 0: none
    at_once       so many machines at a time
    per_rack      so many of one rack at a time (of machines whose rack is known); 0: no bound of its own
    stop_percent  more failures than this among the last machines that ended stop all that have not begun
    of_at_least   so many machines must have ended before that counts; a run over no more than these has no canary
    patience_s    a canary that takes longer than this gets another one beside it
    """

    canary: int = 1
    at_once: int = 32
    per_rack: int = 4
    stop_percent: int = 20
    of_at_least: int = 5
    patience_s: float = 1800.0


class Ending(enum.Enum):
    """What one machine says of the step as such: GOOD and FAILED count, OTHER says nothing (its BMC is silent, it
    was not measured), RUINED must not happen twice: a drive was written to that was to be left alone.
    """

    GOOD = "good"
    FAILED = "failed"
    OTHER = "other"
    RUINED = "ruined"


@dataclass(frozen=True, slots=True)
class Under:
    """A machine that is being worked on: in which rack (empty: unknown), since when (the clock of `now`)."""

    rack: str
    since: float


@dataclass(frozen=True, slots=True)
class Course:
    """How the run has gone so far. `machines`: how many it may come to in all; `ended`: each machine's last ending, in
    the order of these.
    """

    machines: int
    running: Mapping[NodeId, Under] = field(default_factory=dict)
    ended: Mapping[NodeId, Ending] = field(default_factory=dict)


def ending(report: Report) -> Ending:
    """Whether a machine's failure is the step's: its OS did not come up, or runs from another disk; a role failed."""
    if report.verdict.admits:
        return Ending.GOOD
    failed = [one for one in report.findings if one.verdict is Verdict.FAIL]
    if any(one.check == DATA for one in failed):
        return Ending.RUINED
    if any(one.check in {report.step, ROOT} and one.subject != "bmc" for one in failed):
        return Ending.FAILED
    return Ending.OTHER


def stopped(policy: WavePolicy, course: Course) -> str:
    """Why no more machines may begin, in words; empty while they may."""
    ruined = [node for node, how in course.ended.items() if how is Ending.RUINED]
    if ruined:
        return "a drive that was to be left alone does not hold what it held before"
    told = [how for how in course.ended.values() if how is not Ending.OTHER]
    last = told[-max(policy.at_once, policy.of_at_least) :]
    failed = last.count(Ending.FAILED)
    if len(last) < policy.of_at_least or failed * 100 <= policy.stop_percent * len(last):
        return ""
    return f"{failed} of the last {len(last)} machines failed, more than {policy.stop_percent} % are not borne"


def may_begin(
    policy: WavePolicy, course: Course, waiting: Sequence[tuple[NodeId, str]], now: float
) -> tuple[NodeId, ...]:
    """Who of those that wait, (id, rack) in their order, may begin now."""
    if stopped(policy, course):
        return ()
    room = min(policy.at_once - len(course.running), _canaries_left(policy, course, now))
    racks = Counter(under.rack for under in course.running.values())
    chosen: list[NodeId] = []
    for node, rack in waiting:
        if len(chosen) >= room:
            break
        if rack and policy.per_rack and racks[rack] >= policy.per_rack:
            continue
        racks[rack] += 1
        chosen.append(node)
    return tuple(chosen)


def held_back(nodes: Iterable[NodeId], step: Step, why: str) -> dict[NodeId, str]:
    """In words, for each node that did not get its turn."""
    return dict.fromkeys(nodes, f"its {step.value} was not begun, because no more was to be begun: {why}")


def _canaries_left(policy: WavePolicy, course: Course, now: float) -> int:
    """So many more may begin before it is known that the step works; no bound once it is."""
    good = sum(how is Ending.GOOD for how in course.ended.values())
    if course.machines <= policy.of_at_least or good >= policy.canary:
        return policy.at_once
    fresh = sum(now < under.since + policy.patience_s for under in course.running.values())
    return max(0, policy.canary - good - fresh)
