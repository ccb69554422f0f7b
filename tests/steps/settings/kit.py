"""A machine that flashes, boots and forgets as real ones do, and a place to be killed at before and after each call."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Self

from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UnreachableError
from clusterctl.fleet.event import Event, NewEvent, Stream
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import Firmware, NodeId, Serial
from clusterctl.fleet.settings.baseline import Baseline, Bios, BiosWish, FirmwareWish, Image, Restarts, Value
from clusterctl.fleet.settings.updates import Task, TaskState, Updates
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Claim, Claims, Deadline, Post, Power
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.settings.apply_baseline import BaselineApplier, BaselineResult
from clusterctl.steps.settings.machine_session import SettingsServices, SettingsTimeouts
from tests.events import written
from tests.steps.fakes import NOW, address_of, seen

SERIAL = Serial("N1")
PACE = SettingsTimeouts(poll=0.0, task=30, back=30, boot=30, show=0.0)
BIOS, BMC, NIC = "BIOS (1)", "BMC (1)", "NIC (1)"


def wish(component: str, version: str, restarts: Restarts = Restarts.HOST) -> FirmwareWish:
    return FirmwareWish(component, version, image=Image(component, f"sha of {component}"), restarts=restarts)


ALL = Baseline(
    "all",
    (BiosWish({"Turbo": "Enabled", "Cores": 64}),),
    (wish(BIOS, "2"), wish(BMC, "2", Restarts.BMC), wish(NIC, "2")),
)


class KilledError(BaseException):
    """kill -9: it is never caught."""


@dataclass
class Seams:
    """Dies at the `at`-th passing (0: never), or at the first one at which `when` is true."""

    at: int = 0
    when: Callable[[], bool] = field(default=lambda: False)
    passed: int = 0

    def cross(self) -> None:
        self.passed += 1
        if self.passed == self.at or self.when():
            raise KilledError


class Torn:
    """Whatever is called through it may be the last thing before or after which the controller dies."""

    def __init__(self, inner: Any, seams: Seams, names: Sequence[str]) -> None:
        self._inner, self._seams, self._names = inner, seams, names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._names:
            return found

        def call(*args: Any, **options: Any) -> Any:
            self._seams.cross()
            answer = found(*args, **options)
            self._seams.cross()
            return answer

        return call


@dataclass
class _Work:
    """A task: `looks` more until `then` happens."""

    state: TaskState
    looks: int
    component: str
    words: str = ""


@dataclass
class Machine:
    """Its BMC too. `early`: staging ends the task, and the version comes with the next boot; `fails`, `refuses` and
    `loses` by component; `stubborn` keeps its BIOS as it is, `silent` reports no task that it made.
    """

    power_state: Power = Power.ON
    early: bool = False
    fails: frozenset[str] = frozenset()
    refuses: frozenset[str] = frozenset()
    loses: frozenset[str] = frozenset()
    stubborn: bool = False
    silent: bool = False
    versions: dict[str, str] = field(default_factory=lambda: {BIOS: "1", BMC: "1", NIC: "1"})
    current: dict[str, Value] = field(default_factory=lambda: {"Turbo": "Disabled", "Cores": 32})
    pending: dict[str, Value] = field(default_factory=dict)
    work: dict[str, _Work] = field(default_factory=dict)
    staged: list[str] = field(default_factory=list)
    away: int = 0
    testing: int = 0
    flashes: list[str] = field(default_factory=list)
    boots: int = 0
    log: list[str] = field(default_factory=list)

    @property
    def running(self) -> list[_Work]:
        return [one for one in self.work.values() if one.state is TaskState.RUNNING]

    def tick(self) -> None:
        if self.away:
            self.away -= 1
            raise UnreachableError("the BMC does not answer")
        self.testing = max(0, self.testing - 1)
        for one in self.running:
            one.looks -= 1
            if one.looks <= 0:
                self._end(one)

    def _end(self, one: _Work) -> None:
        if one.component in self.fails:
            one.state, one.words = TaskState.FAILED, "the image is bad"
        elif one.component == BMC:
            one.state, self.versions[BMC], self.away = TaskState.DONE, "2", 3
        elif one.component in self.staged:
            self.staged.remove(one.component)
            one.state, self.versions[one.component] = TaskState.DONE, "2"
        else:
            self.staged.append(one.component)
            one.state = TaskState.DONE if self.early else TaskState.WAITING

    def tick_until_idle(self) -> None:
        """Time passes without a poll."""
        while self.running or self.away:
            self.away = 0
            self.tick()

    def send(self, component: str) -> str:
        assert not self.running, "an image during a running task"
        if component in self.refuses:
            raise EdgeError("the BMC refuses the image: HTTP 400")
        self.flashes.append(component)
        path = f"/redfish/v1/TaskService/Tasks/{len(self.work)}"
        self.work[path] = _Work(TaskState.RUNNING, 2, component)
        return path

    def boot(self) -> None:
        assert not self.running, "switched during a task"
        assert not self.testing, "switched during a self-test"
        self.boots += 1
        self.testing = 3
        if not self.stubborn:
            self.current |= self.pending
        self.pending = {}
        for one in self.work.values():
            if one.state is TaskState.WAITING:
                one.state, one.looks = TaskState.RUNNING, 2
        if self.early:
            for component in self.staged:
                self.versions[component] = "2"
            self.staged.clear()


@dataclass
class FakeBmc:
    """One session."""

    machine: Machine
    serial: Serial = SERIAL

    def __enter__(self) -> Self:
        self.machine.tick()
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def bios(self, deadline: Deadline, *, thorough: bool = False) -> Observed[Bios]:
        self.machine.tick()
        return Observed(Bios("r1", dict(self.machine.current), dict(self.machine.pending), frozenset()), seen())

    def set_bios(self, wanted: Mapping[str, Value], serial: Serial, deadline: Deadline) -> Observed[Bios]:
        deadline.check("setting")
        assert serial == self.serial
        self.machine.pending |= wanted
        return self.bios(deadline)

    def updates(self, deadline: Deadline) -> Observed[Updates]:
        self.machine.tick()
        firmware = tuple(Firmware(name, version) for name, version in self.machine.versions.items())
        tasks = tuple(Task(path, one.state, None, one.words) for path, one in self.machine.work.items())
        return Observed(Updates(self.serial, firmware, tasks), seen())

    def push_firmware(
        self, wished: FirmwareWish, image: BinaryIO, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[Task, ...]]:
        deadline.check("sending")
        assert serial == self.serial
        path = self.machine.send(wished.component)
        if wished.component in self.machine.loses:
            raise OutcomeUnknownError("no answer")
        return Observed(() if self.machine.silent else (Task(path, TaskState.RUNNING),), seen())

    def task(self, path: str, deadline: Deadline) -> Observed[Task]:
        self.machine.tick()
        one = self.machine.work.get(path)
        return Observed(Task(path, one.state if one else TaskState.GONE, None, one.words if one else ""), seen())

    def power(self, deadline: Deadline) -> Observed[Power]:
        self.machine.tick()
        return Observed(self.machine.power_state, seen())

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        deadline.check("switching")
        assert serial == self.serial
        if power is Power.OFF:
            assert not self.machine.running, "switched off during a task"
        elif self.machine.power_state is not Power.ON:
            self.machine.boot()
        self.machine.power_state = power
        return Observed(power, seen())

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        deadline.check("switching")
        assert serial == self.serial
        self.machine.boot()
        return Observed(Power.ON, seen())

    def post(self, deadline: Deadline) -> Observed[Post]:
        self.machine.tick()
        return Observed(Post.RUNNING if self.machine.testing else Post.DONE, seen())


CALLS = ("set_bios", "push_firmware", "task", "updates", "set_power", "cycle_power")


@dataclass
class Bmcs:
    machine: Machine
    seams: Seams
    serial: Serial = SERIAL

    @contextmanager
    def open(self, address: BmcAddress, deadline: Deadline) -> Iterator[Any]:
        with FakeBmc(self.machine, self.serial) as bmc:
            yield Torn(bmc, self.seams, CALLS)


class Book:
    """A journal in memory: the same fold as the real one's."""

    lease_s = 120.0

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        for new in events:
            seq = len(self.events) + 1
            self.events.append(written(new, seq, NOW, "alice"))
        return tuple(self.events[-len(events) :])

    def history(self, stream: Stream, subject: str) -> Iterator[Event]:
        return iter([event for event in self.events if (event.stream, event.subject) == (stream, subject)])

    def state(self, node: NodeId) -> NodeState:
        return fold(self.history(Stream.NODE, node), node)

    def store(self, evidence: Iterable[Evidence]) -> None:
        pass

    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims:
        return Claims({node: Claim(node, run, 1) for node in nodes}, {})

    def renew(self, claims: Iterable[Claim]) -> Mapping[NodeId, str]:
        return {}

    def release(self, claims: Iterable[Claim], rest_s: float = 0.0) -> None:
        pass


class Shelf:
    """All images are there."""

    @contextmanager
    def opened(self, image: Image) -> Iterator[BinaryIO]:
        yield io.BytesIO(b"image")


def settle(
    book: Book, machine: Machine, baseline: Baseline = ALL, seams: Seams | None = None, serial: Serial = SERIAL
) -> BaselineResult:
    """One run."""
    crossing = seams or Seams()
    node = book.state(NodeId("id-n1"))
    claims = book.claim([node.id], "r").granted
    journal: Any = Torn(book, crossing, ("append",))
    try:
        means = SettingsServices(Bmcs(machine, crossing, serial), address_of, journal, Shelf(), PACE)
        return BaselineApplier(means).apply(node, SERIAL, baseline, IntentLog(journal, claims), Deadline.after(60))
    finally:
        book.release(claims.values())
