"""A burn that is killed again and again, at any moment: the same coverage, no stage lost, no port left busy."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from clusterctl.cabling.burn.coverage import BurnReport
from clusterctl.fleet.event import NewEvent
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.payloads.runs import BurnEnded
from clusterctl.ports import Claim, Deadline
from clusterctl.steps import fabric_burn
from tests.cabling.burn.tree import Tree
from tests.steps.fabric_burn.test_burn import Diary, burn_of
from tests.steps.fabric_burn.world import LINGER_S, FabricWorld

CYCLES = 3
KILLS = 5


class Killed(BaseException):
    """SIGKILL: nothing of the process runs after it."""


@dataclass
class Process:
    """The controller's process. Each call of a port, and each wait, is a moment; at the `last` one it is killed.

    moments  that have passed
    """

    last: int | None = None
    moments: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def moment(self) -> None:
        """Let one moment pass. A dead process gets no further."""
        with self._lock:
            self.moments += 1
            if self.last is not None and self.moments >= self.last:
                raise Killed


@dataclass
class Mortal:
    """Another object whose calls are moments of a process: one before each call, and one after it."""

    inner: Any
    process: Process

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.inner, name)

        def moments(*arguments: Any, **options: Any) -> Any:
            self.process.moment()
            answer = call(*arguments, **options)
            self.process.moment()
            return answer

        return moments


@dataclass
class MortalJournal:
    """A journal that the process can leave in the middle of a write: each piece of evidence and each event is a moment."""

    diary: Diary
    process: Process

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[object, ...]:
        self.process.moment()
        self.diary.append(events, claim=claim)
        self.process.moment()
        return ()

    def store(self, evidence: Sequence[Evidence]) -> None:
        for one in evidence:
            self.process.moment()
            self.diary.store((one,))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.diary, name)


def several_stages() -> FabricWorld:
    """A tree whose tables spread destinations by chance, as after a lost cable: a cycle takes several stages."""
    tree, draw = Tree(leaves=4, hosts=4), random.Random(21)
    for leaf in range(4):
        tree.exits[tree.leaf(leaf)] |= {
            lid: draw.randint(5, 8) for lid, port in tree.exits[tree.leaf(leaf)].items() if port > 4
        }
    return FabricWorld(tree.fabric(), tree.tables())


def life(world: FabricWorld, diary: Diary, process: Process, cycles: int = CYCLES) -> BurnReport | None:
    """Run or continue the burn in one process; return its report, None where the process was killed."""
    burn = burn_of(world, diary, cycles=cycles)
    mortal: Any = Mortal(world, process)
    journal: Any = MortalJournal(diary, process)
    burn.services = replace(burn.services, shell=mortal, fabric=mortal, tables=mortal, counters=mortal, journal=journal)
    try:
        burn.start()
        known = len(diary.stages)
        assert burn.recall(diary.stages) == known, "each stage that the journal has counts"
        burn.run(Deadline.after(1e6, timer=world.timer))
    except Killed:
        world.controller_died()
        return None
    return burn.report()


@pytest.fixture
def counted(monkeypatch):
    """Returns a world whose flows all run before time passes, whatever the machine's speed."""

    def made() -> FabricWorld:
        world = several_stages()
        monkeypatch.setattr(fabric_burn, "ThreadPoolExecutor", world.counted_pool)
        return world

    return made


@pytest.mark.parametrize("seed", range(8))
def test_killed_five_times_at_random_it_covers_what_it_covers_in_one_go(counted, seed):
    """Started again after any time, at once too: then the ports that the killed run used are busy for some seconds."""
    whole, uninterrupted = Diary(), Process()
    report = life(counted(), whole, uninterrupted)
    assert report is not None
    assert len(whole.stages) >= 2 * CYCLES, "it takes several stages, so that kills come between and within them"
    one_stage = uninterrupted.moments // len(whole.stages)

    draw, world, diary = random.Random(seed), counted(), Diary()
    kills = 0
    for _ in range(KILLS):
        stages = list(diary.stages)
        kills += life(world, diary, Process(last=draw.randint(1, one_stage * 3 // 2))) is None
        assert diary.stages[: len(stages)] == stages
        world.timer.advance(draw.choice((0.0, 1.0, LINGER_S)))
    after = life(world, diary, Process())
    assert kills == KILLS, "it was never at its end when it was killed"
    assert after is not None
    assert {one.load: one.verdict for one in after.directions} == {one.load: one.verdict for one in report.directions}
    assert after.loaded == report.loaded
    cycles = [[stage.cycle for stage in one.stages] for one in (diary, whole)]
    assert set(cycles[0]) == set(cycles[1])
    if not any(stage.failed for stage in diary.stages):
        assert cycles[0] == cycles[1], "and no stage is made twice"
    assert [isinstance(event.payload, BurnEnded) for event in diary.events].count(True) == 1
    assert world.busy_ports() == []


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_killed_at_each_of_its_moments(counted):
    """The first kill at every moment of the burn in turn, then to its end."""
    whole, uninterrupted = Diary(), Process()
    report = life(counted(), whole, uninterrupted, 1)
    assert report is not None
    for moment in range(1, uninterrupted.moments + 1):
        world, diary = counted(), Diary()
        assert life(world, diary, Process(last=moment), 1) is None, moment
        world.timer.advance(LINGER_S)
        after = life(world, diary, Process(), 1) or report
        assert after.loaded == report.loaded, moment
        assert [stage.cycle for stage in diary.stages] == [stage.cycle for stage in whole.stages], moment
