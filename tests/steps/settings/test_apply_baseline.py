"""One machine to its baseline: in order, once, whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clusterctl.fleet.errors import OutcomeUnknownError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.settings.baseline import Baseline, BiosWish, FirmwareWish, Restarts
from clusterctl.fleet.settings.updates import TaskState
from clusterctl.ports import Power
from tests.events import data_of
from tests.steps.fakes import identified
from tests.steps.settings.kit import ALL, BIOS, BMC, NIC, Book, KilledError, Machine, Seams, settle, wish

WANTED = {"Turbo": "Enabled", "Cores": 64}
FLASHED = {BIOS: "2", BMC: "2", NIC: "2"}


@pytest.fixture
def book() -> Book:
    return journal()


def journal() -> Book:
    made: Any = Book()
    identified(made, "n1", "N1")
    return made


def acts(book: Book) -> list[str]:
    """What was begun and what came of it, in order."""
    kinds = {Kind.ACT_INTENDED: "about to", Kind.ACT_OBSERVED: "seen"}
    events = [event for event in book.history(Stream.NODE, NodeId("id-n1")) if event.kind in kinds]
    return [f"{kinds[event.kind]} {data_of(event)['act'].removeprefix('settings.')}" for event in events]


@pytest.mark.parametrize("power", [Power.ON, Power.OFF])
@pytest.mark.parametrize("early", [False, True])
def test_all_of_it(book: Book, power: Power, early: bool) -> None:
    """The BMC first, each image once, one reboot; a machine that was off is off again; no act is left open."""
    machine = Machine(power, early=early)
    settled = settle(book, machine)
    assert settled.error is None
    assert machine.flashes == [BMC, BIOS, NIC]
    assert (machine.versions, machine.current) == (FLASHED, WANTED)
    assert machine.boots == 1
    assert machine.power_state is power
    assert book.state(NodeId("id-n1")).open_acts == ()
    flash = ["about to firmware", "about to firmware", "seen firmware"]
    assert acts(book) == [*flash * 3, "about to bios", "seen bios", "about to reboot", "seen reboot"]


def test_nothing_to_do(book: Book) -> None:
    """A machine that is right is neither written to nor rebooted."""
    machine = Machine(versions=dict(FLASHED), current=dict(WANTED))
    assert settle(book, machine).error is None
    assert (machine.flashes, machine.boots, acts(book)) == ([], 0, [])


def test_only_the_bmc(book: Book) -> None:
    """Needs no reboot of the machine."""
    machine = Machine()
    baseline = Baseline("bmc", firmware=(wish(BMC, "2", Restarts.BMC),))
    assert settle(book, machine, baseline).error is None
    assert (machine.versions[BMC], machine.boots) == ("2", 0)


@pytest.mark.parametrize("early", [False, True], ids=["task waits", "task ends when staged"])
@pytest.mark.parametrize("power", [Power.ON, Power.OFF], ids=["on", "off"])
def test_killed_at_every_seam(power: Power, early: bool) -> None:
    """Before or after any call and any line in the journal: the next run ends it, no image is ever sent twice, nothing
    is switched during a task or a self-test, the power is as it was found.
    """
    whole = Seams()
    first = journal()
    settle(first, Machine(power, early=early), seams=whole)
    assert whole.passed > 60
    for at in range(1, whole.passed + 1):
        book = journal()
        machine = Machine(power, early=early)
        with pytest.raises(KilledError):
            settle(book, machine, seams=Seams(at))
        settled = settle(book, machine)
        assert settled.error is None, at
        assert sorted(machine.flashes) == sorted([BMC, BIOS, NIC]), at
        assert (machine.versions, machine.current, machine.power_state) == (FLASHED, WANTED, power), at
        assert machine.boots <= 2, at
        assert book.state(NodeId("id-n1")).open_acts == (), at


def test_killed_again_and_again() -> None:
    """Every run dies after some steps more than the one before; it is done in the end, each image sent once."""
    book, machine = journal(), Machine()
    for at in range(3, 400, 5):
        try:
            settled = settle(book, machine, seams=Seams(at))
        except KilledError:
            continue
        assert settled.error is None
        break
    assert sorted(machine.flashes) == sorted([BMC, BIOS, NIC])
    assert (machine.versions, machine.current) == (FLASHED, WANTED)


def fails(machine: Machine) -> Machine:
    return replace(machine, fails=frozenset({BIOS}))


def refuses(machine: Machine) -> Machine:
    return replace(machine, refuses=frozenset({BIOS}))


def stubborn(machine: Machine) -> Machine:
    return replace(machine, stubborn=True)


@pytest.mark.parametrize(
    ("ill", "expected", "boots"),
    [
        (fails, "could not flash BIOS (1): task 1 failed: the image is bad", 0),
        (refuses, "the BMC refuses the image: HTTP 400", 0),
        (stubborn, "still different from the baseline: Turbo is Disabled, wanted Enabled; Cores is 32, wanted 64", 1),
    ],
)
def test_what_goes_wrong(book: Book, ill: Callable[[Machine], Machine], expected: str, boots: int) -> None:
    """It ends there, in the BMC's words, in the history too; the machine is not rebooted for a flash that failed."""
    machine = ill(Machine())
    settled = settle(book, machine)
    assert settled.error is not None
    assert expected in settled.error.message
    assert machine.boots == boots
    assert book.state(NodeId("id-n1")).open_acts == ()


def test_after_a_failure_it_is_sent_again(book: Book) -> None:
    """What is known to have failed is no flash to be spared."""
    machine = fails(Machine())
    settle(book, machine)
    repaired = replace(machine, fails=frozenset())
    assert settle(book, repaired).error is None
    assert repaired.flashes == [BMC, BIOS, BIOS, NIC]


def test_a_running_task_is_waited_for(book: Book) -> None:
    """Another client's, before anything is sent."""
    machine = Machine()
    machine.send("another client's")
    machine.flashes.clear()
    next(iter(machine.work.values())).looks = 20
    assert settle(book, machine).error is None
    assert next(iter(machine.work.values())).state is not TaskState.RUNNING
    assert machine.flashes == [BMC, BIOS, NIC]


def test_another_machine(book: Book) -> None:
    """At its address answers one that is not it: nothing is sent."""
    machine = Machine()
    settled = settle(book, machine, serial=Serial("OTHER"))
    assert settled.error is not None
    assert "belongs to machine OTHER" in settled.error.message
    assert (machine.flashes, machine.boots, machine.pending) == ([], 0, {})


def test_manual_settings_are_reported(book: Book) -> None:
    """An attribute that is not there, and firmware without an image, do not keep the rest from being done."""
    unknown = BiosWish({"Turbo": "Enabled", "Nonsense": "1"})
    baseline = replace(ALL, bios=(unknown,), firmware=(FirmwareWish(NIC, "2"),))
    machine = Machine()
    settled = settle(book, machine, baseline)
    assert settled.error is None
    assert [one.what for one in settled.left] == [NIC, "Nonsense"]
    assert (machine.current["Turbo"], machine.flashes) == ("Enabled", [])


def test_an_unknown_result_of_a_request(book: Book) -> None:
    """The act stays open; the next run finds the task, and sends nothing again."""
    machine = Machine(loses=frozenset({BIOS}))
    settled = settle(book, machine)
    assert isinstance(settled.error, OutcomeUnknownError)
    assert [act.act for act in book.state(NodeId("id-n1")).open_acts] == ["settings.firmware"]
    assert settle(book, machine).error is None
    assert machine.flashes == [BMC, BIOS, NIC]
    assert machine.versions == FLASHED


@pytest.mark.parametrize("component", [BMC, BIOS])
def test_a_bmc_that_forgot_its_tasks(book: Book, component: str) -> None:
    """The image was sent, the run killed, the task is gone: the version shows it, after a boot; nothing is sent again."""
    machine = Machine(early=True)
    sent = Seams(when=lambda: bool(machine.work) and machine.flashes[-1] == component)
    with pytest.raises(KilledError):
        settle(book, machine, seams=sent)
    with pytest.raises(KilledError):  # once more, when the journal has the task
        settle(book, machine, seams=Seams(when=lambda: len(machine.flashes) > 3, at=12))
    machine.tick_until_idle()
    machine.work.clear()
    assert settle(book, machine).error is None
    assert machine.flashes == [BMC, BIOS, NIC]
    assert machine.versions == FLASHED


def test_a_bmc_that_reports_no_task(book: Book) -> None:
    """Its end cannot be known: the machine is not switched, and the operator is asked to check."""
    machine = Machine(silent=True, versions={BIOS: "1", BMC: "2", NIC: "2"})
    settled = settle(book, machine)
    assert settled.error is not None
    assert "reports no task" in settled.error.message
    assert (machine.flashes, machine.boots) == ([BIOS], 0)


@pytest.mark.parametrize("testing", [5, 60])
def test_a_self_test_is_waited_for(book: Book, testing: int) -> None:
    """A machine that is booting may be flashing itself: it is not switched before that is over."""
    machine = Machine(testing=testing, versions=dict(FLASHED))
    assert settle(book, machine).error is None
    assert (machine.boots, machine.current) == (1, WANTED)
