"""A wipe is proven, intended, watched and resumed; what was not seen to be erased is not called erased."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClaimLostError,
    EdgeError,
    OutcomeUnknownError,
    UnreachableError,
)
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Drive, Inventory, NodeId, Serial, Stage, Unread
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline, InstallError, InstallState, InstallStatus, InstallTarget, Power
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.retire import TROUBLES, DriveWiper, check_same
from tests.events import data_of, new_event
from tests.steps.fakes import FakeBmc, FixedClock, address_of, identified, inventory, seen

NODE = NodeId("id-n1")
S = InstallState


@dataclass
class FakeEraser:
    """An installer that erases while it is looked at: `left` are the states that come, one a look; `stops` is set by a look at it."""

    state: InstallState = S.INSTALLED
    left: list[InstallState] = field(default_factory=lambda: [S.ERASING, S.RELEASING, S.READY])
    errors: list[EdgeError] = field(default_factory=list)
    lost: list[EdgeError | None] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    drives: list[tuple[Serial, ...]] = field(default_factory=list)
    root_disks: list[str] = field(default_factory=list)
    before: Callable[[], object] = lambda: None
    stops: threading.Event = field(default_factory=threading.Event)
    any_state: bool = False

    login: BmcAddress | None = None

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        return self.login

    def erases_any(self, name: str) -> bool:
        return self.any_state

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self.before()
        deadline.check("erasing")
        self.root_disks.append(target.root_disk)
        self.drives.append(target.erase)
        if self.errors:
            raise self.errors.pop(0)
        self.erased.append(target.serial)
        self.state = self.left.pop(0)
        return self._status()

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        status = self._status()
        if self.state in (S.ERASING, S.RELEASING):
            self.stops.set()
            if self.lost and (error := self.lost.pop(0)) is not None:
                raise error
            self.state = self.left.pop(0)
        return {target.name: status for target in targets}

    def _status(self) -> Observed[InstallStatus]:
        return Observed(InstallStatus(self.state, f"MAAS: {self.state.value}"), seen(self.state.value))


@dataclass
class SwitchableBmc(FakeBmc):
    """One that can be switched, by any caller that names the right serial. It rejects the user `rejects`."""

    rejects: str = ""

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        assert isinstance(self.report, Inventory)
        assert serial == self.report.serial
        self.state = power
        return Observed(power, seen("switched"))


@dataclass
class World:
    """What a wipe acts on."""

    book: SqlJournal
    eraser: FakeEraser
    bmc: SwitchableBmc

    def open(self, address: BmcAddress, deadline: Deadline) -> SwitchableBmc:
        if address.user == self.bmc.rejects:
            raise AuthenticationError("HTTP 401")
        return self.bmc

    def wipe(self, cancelled: threading.Event | None = None) -> None:
        claims = self.book.claim([NODE], "r").granted
        try:
            wiper = DriveWiper(self.eraser, self, address_of, self.book, 0.01)
            wiper.wipe(self.book.state(NODE), IntentLog(self.book, claims), "sold", Deadline.after(60, cancelled))
        finally:
            self.book.release(claims.values())

    def acts(self) -> list[str]:
        """The recorded acts and stages since the node was gold."""
        history = list(self.book.history(Stream.NODE, NODE))
        gold = max(index for index, event in enumerate(history) if event.kind is Kind.STAGE_ADVANCED)
        return [
            f"{data_of(event).get('act', '')} {data_of(event).get('result', '')}".strip() or event.kind.value
            for event in history[gold + 1 :]
        ]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    identified(book, "n1", "S1", "gold")
    yield World(book, FakeEraser(), SwitchableBmc(inventory("S1")))
    book.close()


WHOLE = [
    "node.quarantined",
    "retire.erase",
    "retire.erase begun",
    "retire.erase done",
    "retire.power_off",
    "retire.power_off done",
    "node.retired",
]


def test_erased_switched_off_retired(world: World) -> None:
    """In this order, each intent before its act, and the end rests on evidence."""
    world.wipe()
    assert world.acts() == WHOLE
    assert (world.eraser.erased, world.bmc.state) == (["S1"], Power.OFF)
    state = world.book.state(NODE)
    assert (state.stage, state.cause) == (Stage.RETIRED, "retired by alice, its drives erased: sold")
    (last,) = list(world.book.history(Stream.NODE, NODE))[-1:]
    assert {world.book.evidence(digest).content for digest in last.evidence} == {b"ready", b"switched"}


def test_nothing_is_erased_where_the_bmc_rejects_the_login_of_the_installer(world: World) -> None:
    """The login is tried once; nothing of the erase is intended then, and the node stays as it was."""
    world.eraser.login = replace(address_of("n1"), user="maas")
    world.bmc.rejects = "maas"
    with pytest.raises(InstallError, match="which the BMC rejects"):
        world.wipe()
    assert (world.eraser.erased, world.acts()) == ([], ["power.login", "power.login failed"])


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (inventory("S2"), "the machine with serial S2 answers"),
        (replace(inventory("S1"), drives=(Drive("0", "M.2", 1, Serial("OTHER")),)), "not those of its last discover"),
        (replace(inventory("S1"), drives=None), "not those of its last discover"),
        (
            replace(inventory("S1"), unread=(Unread("drives", "Drives/7", "HTTP 500"),)),
            "not those of its last discover",
        ),
    ],
)
def test_another_machine_is_not_erased(world: World, report: Inventory, words: str) -> None:
    """Its serial and its drives must be those that the operator was shown; else nothing is even intended."""
    world.bmc.report = report
    with pytest.raises(EdgeError, match=words):
        world.wipe()
    assert (world.eraser.erased, world.acts()) == ([], [])


@pytest.mark.parametrize("known", [None, replace(inventory("S1"), drives=None)])
def test_a_machine_with_unread_drives_is_not_erased(known: Inventory | None) -> None:
    """There is nothing that the operator could have seen."""
    with pytest.raises(EdgeError, match="not those of its last discover"):
        check_same(NodeState(NODE, "n1", serial=Serial("S1"), inventory=known), inventory("S1"))


@pytest.mark.parametrize("lacking", [{"serial": None}, {"inventory": None}])
def test_a_machine_that_nothing_identifies_is_not_erased(world: World, lacking: Mapping[str, None]) -> None:
    """Its serial or its network cards are not known: neither BMC nor installer is asked."""
    wiper = DriveWiper(world.eraser, world, address_of, world.book, 0.01)
    node = replace(world.book.state(NODE), **lacking)
    with pytest.raises(EdgeError, match="nothing identifies the machine"):
        wiper.wipe(node, IntentLog(world.book, {}), "sold", Deadline.after(60))
    assert world.eraser.erased == []


@pytest.mark.parametrize("state", [S.ABSENT, S.READY, S.INSTALLING, S.PREPARING, S.RELEASING])
def test_only_what_the_installer_can_erase(world: World, state: InstallState) -> None:
    """A machine that it has not installed, has given back, or is busy with is left as it is."""
    world.eraser.state = state
    world.eraser.left = [state]
    with pytest.raises(EdgeError, match=r"was not seen to erase this one|busy with it") as caught:
        world.wipe()
    assert ("wait until it has finished" in caught.value.remedy) is (state not in (S.ABSENT, S.READY))
    assert (world.eraser.erased, world.acts()) == ([], [])


@pytest.mark.parametrize("state", [S.ABSENT, S.READY])
def test_an_installer_that_needs_no_install_erases_any(world: World, state: InstallState) -> None:
    """Our own PXE: the deployer needs nothing of an earlier install; a busy machine is left alone all the same."""
    world.eraser.any_state, world.eraser.state = True, S.INSTALLING
    with pytest.raises(EdgeError, match="busy with it"):
        world.wipe()
    world.eraser.state = state
    world.wipe()
    assert (world.eraser.erased, world.acts()) == (["S1"], WHOLE)


def test_stopped_while_erasing_it_goes_on_watching(world: World) -> None:
    """Ctrl-C leaves a node in quarantine with the state of the work; the next call watches, and erases nothing again."""
    with pytest.raises(CancelledError, match="until the drives of n1 are erased"):
        world.wipe(world.eraser.stops)
    stopped = world.book.state(NODE)
    assert (stopped.stage, stopped.remedy) == (
        Stage.QUARANTINED,
        "run clusterctl retire n1 --wipe again: it goes on with the erase",
    )
    world.wipe()
    assert (world.eraser.erased, world.book.state(NODE).stage) == (["S1"], Stage.RETIRED)


def interrupted(world: World, *results: str) -> None:
    """As a run leaves it that died after its intent, with what it had seen until then."""
    acts = [new_event("node", NODE, Kind.ACT_INTENDED, {"act": "retire.erase", "target": "S1"})]
    acts += [
        new_event("node", NODE, Kind.ACT_OBSERVED, {"act": "retire.erase", "result": result}) for result in results
    ]
    world.book.append(acts)


@pytest.mark.parametrize("results", [(), ("begun",)])
def test_killed_while_erasing_it_goes_on_watching(world: World, results: tuple[str, ...]) -> None:
    """Whether or not the dead run has seen it begin: what is erasing now is watched to its end."""
    interrupted(world, *results)
    world.eraser.state = S.ERASING
    world.eraser.left = [S.RELEASING, S.READY]
    world.wipe()
    assert (world.eraser.erased, world.acts()) == ([], WHOLE[1:])
    assert world.book.state(NODE).stage is Stage.RETIRED


@pytest.mark.parametrize(("serials", "erased"), [(("D1", "D2"), ("D1", "D2")), (("D1", None), ())])
def test_the_installer_is_given_the_drives_that_were_shown(
    world: World, serials: tuple[str | None, ...], erased: tuple[str, ...]
) -> None:
    """By serial; where one has none, none is named: an installer that goes by serials erases nothing then."""
    drives = tuple(Drive(f"{slot}", "NVMe", 1, Serial(one) if one else None) for slot, one in enumerate(serials))
    found = replace(inventory("S1"), drives=drives)
    world.bmc.report = found
    claims = world.book.claim([NODE], "r").granted
    node = replace(world.book.state(NODE), inventory=found)
    wiper = DriveWiper(world.eraser, world, address_of, world.book, 0.01)
    wiper.wipe(node, IntentLog(world.book, claims), "sold", Deadline.after(60))
    assert world.eraser.drives == [erased]


@pytest.mark.parametrize("results", [("begun",), ("begun", "done")])
def test_killed_after_it_was_seen_erasing_a_released_machine_is_erased(world: World, results: tuple[str, ...]) -> None:
    """The call of a day later finds it given back."""
    interrupted(world, *results)
    world.eraser.state = S.READY
    world.wipe()
    assert (world.eraser.erased, world.bmc.state) == ([], Power.OFF)
    assert world.book.state(NODE).stage is Stage.RETIRED


@pytest.mark.parametrize("results", [(), ("failed",)])
def test_given_back_and_never_seen_erasing_is_not_erased(world: World, results: tuple[str, ...]) -> None:
    """An intent is no proof."""
    interrupted(world, *results)
    world.eraser.state = S.READY
    with pytest.raises(EdgeError, match="was not seen to erase this one"):
        world.wipe()
    assert world.book.state(NODE).stage is not Stage.RETIRED


def test_an_old_erase_is_no_proof_of_a_new_one(world: World) -> None:
    """Installed again since, and then given back by an operator: its drives hold data."""
    interrupted(world, "done")
    world.book.append([new_event("node", NODE, Kind.ACT_INTENDED, {"act": "install.start", "target": "S1"})])
    world.eraser.state = S.READY
    with pytest.raises(EdgeError, match="was not seen to erase this one"):
        world.wipe()


def test_killed_before_the_request_it_is_erased_by_the_next(world: World) -> None:
    """The installer still has it installed: the intent was not carried out."""
    interrupted(world)
    world.wipe()
    assert world.eraser.erased == ["S1"]
    assert world.book.state(NODE).stage is Stage.RETIRED


def test_a_drive_that_fails_keeps_the_machine(world: World) -> None:
    """Not retired, with the reason, and tried again by the next call."""
    world.eraser.left = [S.ERASING, S.FAILED, S.ERASING, S.READY]
    with pytest.raises(EdgeError, match="not erased") as caught:
        world.wipe()
    assert "retire n1 --wipe again" in caught.value.remedy
    assert world.acts()[-1] == "retire.erase failed"
    assert world.book.state(NODE).stage is Stage.QUARANTINED
    world.wipe()
    assert (world.eraser.erased, world.book.state(NODE).stage) == (["S1", "S1"], Stage.RETIRED)


def test_a_refusal_is_written_down(world: World) -> None:
    """An answer that was lost, and could not be settled by looking, is unknown: that is no proof of an erase."""
    world.eraser.errors = [OutcomeUnknownError("lost")]
    with pytest.raises(OutcomeUnknownError):
        world.wipe()
    assert world.acts()[-1] == "retire.erase unknown"


@pytest.mark.parametrize(("times", "stage"), [(TROUBLES, Stage.RETIRED), (TROUBLES + 1, Stage.QUARANTINED)])
def test_an_installer_that_is_away_for_a_while_is_waited_for(world: World, times: int, stage: Stage) -> None:
    """An erase takes hours: a few lost looks are none, more than that are the installer's failure."""
    world.eraser.lost = [UnreachableError("away")] * times
    with contextlib.suppress(UnreachableError):
        world.wipe()
    assert world.book.state(NODE).stage is stage


def test_a_bmc_that_is_dead_at_the_end_is_tried_again(world: World) -> None:
    """Erased but not switched off is not done; the next call finishes."""
    good = world.bmc.report
    interrupted(world, "begun")
    world.eraser.state = S.READY
    world.bmc.report = UnreachableError("no answer")
    with pytest.raises(UnreachableError):
        world.wipe()
    assert world.book.state(NODE).stage is not Stage.RETIRED
    world.bmc.report = good
    world.wipe()
    assert world.book.state(NODE).stage is Stage.RETIRED


def test_a_run_that_lost_the_node_erases_nothing(world: World) -> None:
    """The claim is looked at right before the request."""
    claims = world.book.claim([NODE], "r").granted
    acts = IntentLog(world.book, claims)
    world.book.release(claims.values())
    world.book.claim([NODE], "other")
    with pytest.raises(ClaimLostError):
        DriveWiper(world.eraser, world, address_of, world.book, 0.01).wipe(
            world.book.state(NODE), acts, "sold", Deadline.after(60)
        )
    assert world.eraser.erased == []


def test_a_claim_that_is_lost_right_before_the_request(world: World) -> None:
    """Another run took the node over after the intent was written: the installer gets no request."""
    claims = world.book.claim([NODE], "r").granted

    def take_over() -> None:
        world.book.release(claims.values())
        world.book.claim([NODE], "other")

    world.eraser.before = take_over
    with pytest.raises(ClaimLostError):
        DriveWiper(world.eraser, world, address_of, world.book, 0.01).wipe(
            world.book.state(NODE), IntentLog(world.book, claims), "sold", Deadline.after(60)
        )
    assert world.eraser.erased == []


@pytest.mark.parametrize("states", [[S.READY], [S.RELEASING, S.READY], [S.RELEASING, S.RELEASING, S.READY]])
def test_a_machine_that_is_only_given_back_is_not_erased(world: World, states: list[InstallState]) -> None:
    """An installer that ignores the erase releases the machine with its data: it is not retired as erased, also later."""
    world.eraser.left = states
    with pytest.raises(EdgeError, match="was not seen to erase"):
        world.wipe()
    assert world.acts()[-1] == "retire.erase failed"
    assert "retire.erase begun" not in world.acts()
    with pytest.raises(EdgeError, match="was not seen to erase"):
        world.wipe()
    assert (world.book.state(NODE).stage, world.bmc.state) == (Stage.QUARANTINED, Power.ON)


def test_an_erase_that_begins_after_the_answer_is_seen(world: World) -> None:
    """Its begin is in the journal as soon as it is seen, so that a later call need not see it again."""
    world.eraser.left = [S.RELEASING, S.ERASING, S.READY]
    world.wipe()
    assert world.acts() == WHOLE


def test_an_installer_that_refuses_the_login_is_not_asked_again(world: World) -> None:
    """An account would be locked out."""
    world.eraser.lost = [AuthenticationError("refused"), UnreachableError("away")]
    with pytest.raises(AuthenticationError):
        world.wipe()
    assert len(world.eraser.lost) == 1


def test_only_failures_in_a_row_count(world: World) -> None:
    """An answer in between begins the count again."""
    world.eraser.left = [S.ERASING, S.ERASING, S.READY]
    away: list[EdgeError | None] = [UnreachableError("away")] * TROUBLES
    world.eraser.lost = [*away, None, *away]
    world.wipe()
    assert world.book.state(NODE).stage is Stage.RETIRED


def test_the_request_names_the_machines_root_disk(world: World) -> None:
    """As discover knows it, not the serial that stands in where none is known."""
    world.wipe()
    assert world.eraser.root_disks == [world.book.state(NODE).root_disk]
    assert world.eraser.root_disks != ["S1"]
