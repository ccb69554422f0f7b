"""Adapters' firmware in waves: what is written before the play, and what each host's outcome becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.permissions import settings_permitted
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import RebootPermits, reboot_pool, unlimited
from clusterctl.steps.settings.apply_baseline import BaselineResult
from clusterctl.steps.settings.nic_firmware import NicFirmwareWork
from lab.tests.lab_kit import eventually
from tests.events import data_of
from tests.steps.fakes import NOW, FixedClock, identified, seen

IMAGES = {"nic_firmware_images": {"MT_0000000838": {"version": "28.43.1014"}}}
PLAY = EdgeError("ansible-playbook was killed")


@dataclass
class FakePlaybooks:
    """Fails on the hosts in `bad`; records its orders, and which acts were open as it began."""

    book: SqlJournal
    bad: frozenset[str] = frozenset()
    broken: bool = False
    variables: list[Mapping[str, Any]] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]:
        self.variables.append(variables)
        for host in hosts:
            self.begun += [act.act for act in self.book.state(NodeId(f"id-{host.name}")).open_acts]
            if self.broken:
                raise PLAY
            ok = host.name not in self.bad
            words = ("", "") if ok else ("nic_firmware : Refuse another machine", "this machine's serial is S9")
            yield Observed(PlayOutcome(host.name, ok, 3, *words), seen("play"))


def address(node: NodeState) -> HostAddress | None:
    return None if node.name == "n3" else HostAddress(node.name, "10.0.0.1", "ops", "ssh-ed25519 A", "/key")


def run(
    book: SqlJournal, playbooks: FakePlaybooks, *names: str, permits: RebootPermits = unlimited
) -> dict[str, BaselineResult]:
    for name in names:
        identified(book, name, f"S-{name}")
    ids = [NodeId(f"id-{name}") for name in names]
    work = NicFirmwareWork(playbooks, book, address, IMAGES, 60.0, permits=permits)
    wave = [(book.state(node), Serial(str(book.state(node).serial))) for node in ids]
    claims = book.claim(ids, "run")
    try:
        return {one.name: one for one in work.run(wave, IntentLog(book, claims.granted), Deadline.after(60))}
    finally:
        book.release(claims.granted.values())


def test_it_is_written_before_it_is_done_and_closed_with_its_evidence(book: SqlJournal) -> None:
    """The act is open while the play runs, and over afterwards; the play's transcript is kept."""
    playbooks = FakePlaybooks(book)
    settled = run(book, playbooks, "n1", "n2")

    assert playbooks.begun == [Act.NIC_FIRMWARE_PLAY, Act.NIC_FIRMWARE_PLAY]
    assert {name: one.error for name, one in settled.items()} == {"n1": None, "n2": None}
    assert book.state(NodeId("id-n1")).open_acts == ()
    last = list(book.history(Stream.NODE, NodeId("id-n1")))[-1]
    assert (data_of(last)["act"], data_of(last)["result"]) == (Act.NIC_FIRMWARE_PLAY, "done")
    assert [book.evidence(digest) for digest in last.evidence] == list(seen("play"))


def test_the_role_gets_the_machine_of_each_host(book: SqlJournal) -> None:
    """The serials of the journal go with the site's images, so that another machine is refused."""
    playbooks = FakePlaybooks(book)
    run(book, playbooks, "n1", "n2")

    assert playbooks.variables == [{**IMAGES, "nic_firmware_serials": {"n1": "S-n1", "n2": "S-n2"}}]


def test_one_hosts_failure_is_its_own(book: SqlJournal) -> None:
    """It ends with the task and its words; the other host is done."""
    settled = run(book, FakePlaybooks(book, bad=frozenset({"n1"})), "n1", "n2")

    error = settled["n1"].error
    assert error is not None
    assert "Refuse another machine" in error.message
    assert "serial is S9" in error.message
    assert settled["n2"].error is None


def test_a_node_without_an_os_is_refused_and_nothing_is_begun_on_it(book: SqlJournal) -> None:
    """Firmware is burnt from the machine's OS: without an address there is none."""
    playbooks = FakePlaybooks(book)
    settled = run(book, playbooks, "n3")

    assert settled["n3"].error is not None
    assert "clusterctl install" in str(settled["n3"].error.remedy)
    assert playbooks.variables == []


def test_an_interrupted_act_stays_open_and_blocks_no_other_node(book: SqlJournal) -> None:
    """The act of a play that was killed is open; the same command may take the node up again, another may not."""
    with pytest.raises(EdgeError):
        run(book, FakePlaybooks(book, broken=True), "n1")
    node = book.state(NodeId("id-n1"))

    assert [act.act for act in node.open_acts] == [Act.NIC_FIRMWARE_PLAY]
    assert settings_permitted(node, NOW, from_pool=False, acts={Act.NIC_FIRMWARE_PLAY}) == "S-n1"
    with pytest.raises(Exception, match=Act.NIC_FIRMWARE_PLAY):
        settings_permitted(node, NOW, from_pool=False)


def test_a_wave_larger_than_the_cap_is_played_in_parts(book: SqlJournal) -> None:
    """As many machines at a time as may reboot at once."""
    playbooks = FakePlaybooks(book)
    settled = run(book, playbooks, "n1", "n2", "n4", permits=reboot_pool(book, 2).taken)

    assert {name: one.error for name, one in settled.items()} == {"n1": None, "n2": None, "n4": None}
    played = [sorted(each["nic_firmware_serials"]) for each in playbooks.variables]
    assert played == [["n1", "n2"], ["n4"]]


def test_the_claims_are_kept_while_a_permit_is_waited_for(tmp_path: Path) -> None:
    """Other hosts reboot for longer than the lease: no other run gets the machine meanwhile."""
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("run", lease_s=0.2))

    def expires() -> datetime:
        return next(owner.expires for owner in book.owners("id-n1"))

    @contextmanager
    def crowded(wanted: int, _deadline: Deadline) -> Iterator[int]:
        before = expires()
        assert eventually(lambda: expires() > before, 600)
        yield wanted

    assert run(book, FakePlaybooks(book), "n1", permits=crowded)["n1"].error is None
    book.close()
