"""configure: a reboot that roles ask for is journaled before it happens, done once, and proven; wherever a run dies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.journal.journal import SqlJournal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import ClaimLostError
from clusterctl.fleet.event import Kind, Payload, Stream
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl.steps.configure.step import Configure, ConfigureServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import RebootPermits, reboot_pool, unlimited
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from tests.events import data_of, new_event
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FakeBmc, FakeBmcs, FixedClock, address_of, identified, inventory, seen

NODE = NodeId("id-n1")


class Killed(BaseException):
    """The controller is gone: nothing of it runs on."""


@dataclass
class World:
    """One host. Its role needs a reboot until it has had one (`content`), or whatever it gets; `dies_after`: the
    controller is killed after so many things that it does.
    """

    content: bool = True
    comes_back: bool = True
    boots: int = 0
    dies_after: int = -1
    playbooks: list[str] = field(default_factory=list)
    variables: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def boot_id(self) -> str:
        return f"00000000-0000-0000-0000-{self.boots:012d}"

    def tick(self) -> None:
        if self.dies_after == 0:
            raise Killed
        self.dies_after -= 1

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        self.tick()
        self.playbooks.append(playbook)
        self.variables.append(variables)
        outcome = self._reboot(variables) if playbook == "reboot.yml" else self._configure()
        self.tick()
        for _host in hosts:
            yield Observed(outcome, seen(playbook))

    def _configure(self) -> PlayOutcome:
        if self.content and self.boots:
            return PlayOutcome("n1", ok=True, changed=0)
        return PlayOutcome("n1", ok=True, changed=3, reboot_for=("ofed",), boot_id=self.boot_id)

    def _reboot(self, variables: Mapping[str, Any]) -> PlayOutcome:
        """As reboot.yml: only where the host still runs the boot that is to end."""
        if not self.comes_back:
            return PlayOutcome("n1", ok=False, changed=0, message="Timed out", unreachable=True)
        if variables["reboot_from"]["n1"] == self.boot_id:
            self.boots += 1
        return PlayOutcome("n1", ok=True, changed=1)


@dataclass
class Written(IntentLog):
    """Acts whose every line in the journal is one more thing that the controller does."""

    def __init__(self, book: SqlJournal, world: World) -> None:
        super().__init__(book, book.claim([NODE], "r").granted)
        self._world = world

    def note_each(self, payloads: Mapping[NodeId, Payload]) -> Mapping[NodeId, ClaimLostError]:
        if not payloads:
            return {}
        self._world.tick()
        lost = super().note_each(payloads)
        self._world.tick()
        return lost


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SqlJournal]:
    journal = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r"))
    identified(journal, "n1", "S1", "installed")
    journal.append(
        [
            new_event("node", NODE, Kind.NODE_ADDRESSED, {"address": "10.0.0.1"}),
            new_event("node", NODE, Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 A"}),
        ]
    )
    yield journal
    journal.close()


def run(
    book: SqlJournal, world: World, *, reboots: bool = True, permits: RebootPermits = unlimited, seconds: float = 60
) -> Finding:
    """One run of the step; the finding `configure`."""
    probe = BmcProbe(FakeBmcs({"n1": FakeBmc(inventory("S1"))}), address_of)
    step = Configure(
        ConfigureServices(world, SshAccess("ops", "/key"), probe, permits=permits),
        "configure.yml",
        lambda _: {},
        reboots=reboots,
    )
    deadline = Deadline.after(seconds, timer=FakeTimer())
    (outcome,) = step.run([book.state(NODE)], Written(book, world), deadline)
    return next(finding for finding in outcome.findings if finding.check == "configure")


def acts(book: SqlJournal) -> list[tuple[str, ...]]:
    """What was intended of reboots, and what came of it."""
    events = [event for event in book.history(Stream.NODE, NODE) if data_of(event).get("act") == Act.CONFIGURE_REBOOT]
    data = [(event.kind.value, data_of(event)) for event in events]
    return [
        (kind, one["target"], one["details"]["boot_id"]) if "target" in one else (kind, one["result"], one["message"])
        for kind, one in data
    ]


def test_a_node_is_rebooted_once_and_proven(book: SqlJournal) -> None:
    """Intended with machine and boot, rebooted, configured again: that passes, and names the roles it was rebooted for."""
    world = World()
    finding = run(book, world)
    assert (finding.verdict, finding.cause) == (Verdict.PASS, "configured, 3 changes, rebooted for ofed")
    assert world.playbooks == ["configure.yml", "reboot.yml", "configure.yml"]
    assert acts(book) == [
        ("act.intended", "S1", "00000000-0000-0000-0000-000000000000"),
        ("act.observed", "done", "rebooted, and nothing more is asked for"),
    ]


def test_a_role_that_asks_again_has_failed(book: SqlJournal) -> None:
    """In words that name it; for good, until an operator has repaired it: then it may ask again."""
    world = World(content=False)
    finding = run(book, world)
    assert (finding.verdict, finding.deterministic, finding.subject) == (Verdict.FAIL, True, "ofed")
    assert "ofed asks for a reboot again" in finding.cause
    assert run(book, world).verdict is Verdict.FAIL
    assert world.boots == 1
    book.append([new_event("node", NODE, Kind.NODE_RELEASED, {"to": "installed", "reason": "repaired"})])
    run(book, world)
    assert world.boots == 2


def test_a_site_may_leave_reboots_to_a_person(book: SqlJournal) -> None:
    """Nothing is rebooted or intended; the node waits, with the reason."""
    world = World()
    finding = run(book, world, reboots=False)
    assert (finding.verdict, world.boots, acts(book)) == (Verdict.INCONCLUSIVE, 0, [])
    assert "needs a reboot for ofed" in finding.cause


def test_a_node_that_does_not_come_back_is_found_by_the_next_run(book: SqlJournal) -> None:
    """Its BMC is asked; the act stays open, so that the next run sees that it was rebooted and does not do it again."""
    world = World(comes_back=False)
    finding = run(book, world)
    assert finding.verdict is Verdict.FAIL
    assert "did not come back" in finding.cause
    assert "power is on" in finding.cause
    world.boots, world.comes_back = 1, True
    assert run(book, world).verdict is Verdict.PASS
    assert world.boots == 1


def test_a_reinstalled_node_may_ask_again(book: SqlJournal) -> None:
    """Its last boot was another system's."""
    world = World(comes_back=False)
    run(book, world)
    book.append([new_event("node", NODE, Kind.ACT_INTENDED, {"act": "install.start", "target": "S1"})])
    world.boots, world.comes_back, world.content = 7, True, False
    world.playbooks.clear()
    run(book, world)
    assert "reboot.yml" in world.playbooks


@pytest.mark.parametrize("content", [True, False])
@pytest.mark.parametrize("dies_after", range(20))
def test_killed_anywhere_there_is_one_reboot(book: SqlJournal, dies_after: int, *, content: bool) -> None:
    """At each of the things that a run does: no reboot without an intent, none twice; the next run proves that it was
    enough, or that it was not.
    """
    world = World(dies_after=dies_after, content=content)
    try:
        finding = run(book, world)
    except Killed:
        assert world.boots <= len(acts(book))
        world.dies_after = -1
        finding = run(book, world)
    assert finding.verdict is (Verdict.PASS if content else Verdict.FAIL)
    assert world.boots == 1
    assert [act.act for act in book.state(NODE).open_acts] == ([] if content else [Act.CONFIGURE_REBOOT])


def test_a_node_without_a_permit_is_left_for_the_next_run(book: SqlJournal) -> None:
    """Other hosts reboot until the deadline: it is inconclusive, not rebooted, and nothing is intended."""
    world, pool = World(), reboot_pool(book, 1)
    with pool.taken(1, Deadline.after(60)):
        finding = run(book, world, permits=pool.taken)
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.REBOOT_POSTPONED)
    assert "fabric.reboots" in finding.remedy
    assert (world.boots, acts(book)) == (0, [])
    assert run(book, world, permits=pool.taken).verdict is Verdict.PASS
