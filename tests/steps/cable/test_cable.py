"""cable: every reading is kept; what is wrong with the fabric itself holds no node that it does not name."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.fabric.history import FabricReading, changes, open_faults
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.step import Cable, Wiring
from clusterctl.steps.executor.pipeline import Pipeline
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step_queue import StepLimits
from tests.cabling.bench import Bench, plan, port
from tests.events import data_of
from tests.formats.infiniband import printers
from tests.steps.fakes import NOW, FixedClock, identified

NAMES = ("node001", "node002", "node003")


@dataclass
class FakeReader:
    """Reads what is plugged in on the bench; with `text`, that instead. Counts its readings."""

    bench: Bench
    text: str | None = None
    readings: int = 0

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        self.readings += 1
        text = printers.ibnetdiscover(addressed(self.bench.fabric())) if self.text is None else self.text
        return Observed(text, (Evidence("ibnetdiscover", "controller", NOW, Origin.REAL, text.encode()),))


def addressed(fabric: Fabric) -> Fabric:
    """With LIDs and port GUIDs, which the tool prints."""
    devices = {
        guid: replace(device, lids=(lid,), port_guids=(guid,))
        for lid, (guid, device) in enumerate(fabric.devices.items(), start=1)
    }
    return Fabric(devices, fabric.links)


@dataclass
class Site:
    """Nodes that stand before cabling, and the fabric that they are on."""

    book: SqlJournal
    reader: FakeReader = field(default_factory=lambda: FakeReader(Bench()))

    def run(self) -> dict[str, NodeState]:
        """All nodes that still have to, through the step, under the gate."""
        wiring = Wiring(plan(), dict, most_broken_percent=10.0)
        step = Cable(self.reader, FabricRecord(self.book), wiring, {}, settle_s=0.01)
        policy = Policy(required={Step.CABLE: frozenset({"cable", "link_rate"})})
        recorder = Recorder(self.book, policy, FixedClock())
        pipeline = Pipeline([step], recorder, {Step.CABLE: StepLimits(8, 20.0)}, threading.Event())
        nodes = [state for state in self.book.states() if state.next_step is Step.CABLE]
        pipeline.run(nodes, self.book.claim([node.id for node in nodes], "r1").granted)
        return {state.name: state for state in self.book.states()}

    def written(self) -> list[Event]:
        return list(self.book.latest(Stream.FABRIC))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r1"))
    for name in NAMES:
        identified(book, name, f"S-{name}", "configured")
    yield Site(book)
    book.close()


def test_a_reading_is_kept_once(site: Site) -> None:
    """Each device and link once, with the proof; a second run on the same fabric writes nothing more."""
    states = site.run()
    assert {state.stage for state in states.values()} == {Stage.CABLED}
    events = site.written()
    seen = site.reader.bench.fabric()
    assert len(events) == len(seen.devices) + len(seen.links)
    assert all(site.book.evidence(digest) is not None for event in events for digest in event.evidence)
    assert all(event.evidence for event in events)
    identified(site.book, "node004", "S-node004", "configured")
    site.run()
    assert [event.seq for event in site.written()] == [event.seq for event in events]


def test_a_broken_trunk_holds_no_node_and_is_reported(site: Site) -> None:
    """A cable between switches that is missing is the fabric's fault until a reading finds it again."""
    trunk = port("leaf-0", 33)
    far = site.reader.bench.far(trunk)
    site.reader.bench.unplug(trunk)
    assert {state.stage for state in site.run().values()} == {Stage.CABLED}
    (fault,) = open_faults(site.written())
    assert (fault.kind, fault.nodes, fault.links) == ("missing_link", (), 1)
    assert set(fault.subjects) == {str(trunk), str(far)}
    assert "leaf-0 port 33" in fault.action
    site.reader.bench.plug(trunk, far)
    identified(site.book, "node004", "S-node004", "configured")
    site.run()
    assert open_faults(site.written()) == ()


def test_a_slow_trunk_is_the_fabrics_too(site: Site) -> None:
    """It is reported with its rate, and no node waits for it."""
    site.reader.bench.rates = {port("leaf-0", 33): (4, "HDR")}
    assert {state.stage for state in site.run().values()} == {Stage.CABLED}
    (fault,) = open_faults(site.written())
    assert fault.kind == "down_speed"
    assert "200 Gb/s" in fault.cause


def test_a_hosts_cable_is_the_nodes(site: Site) -> None:
    """One that is missing stops that node, is no fault of the fabric, and the others go on."""
    site.reader.bench.unplug(port("node002", "mlx5_1"))
    states = site.run()
    assert states["node002"].stage is Stage.QUARANTINED
    assert {states[name].stage for name in ("node001", "node003")} == {Stage.CABLED}
    assert open_faults(site.written()) == ()


def test_a_broken_fabric_holds_all_nodes_and_blames_none(site: Site) -> None:
    """A leaf that is cut off breaks half of the links: all nodes are held, none is quarantined, and the leaf is named.

    Once it is back, the same nodes go on.
    """
    whole = set(site.reader.bench.cables)
    for number in range(33, 39):
        site.reader.bench.unplug(port("leaf-1", number))
    states = site.run()
    assert {state.stage for state in states.values()} == {Stage.CONFIGURED}
    assert all(state.stopped_at is Step.CABLE for state in states.values())
    assert all("12 of 24 links are bad (50.0 %, at most 10 %)" in state.cause for state in states.values())
    (fault,) = open_faults(site.written())
    assert (fault.kind, fault.subjects) == ("island", ("leaf-1",))
    site.reader.bench.cables = whole
    assert {state.stage for state in site.run().values()} == {Stage.CABLED}


def test_hosts_that_are_off_break_no_fabric(site: Site) -> None:
    """All other hosts of the plan show nothing yet: who is there is judged by its own cables."""
    for name in ("node004", "node005", "node006"):
        site.reader.bench.unplug_device(name)
    assert {state.stage for state in site.run().values()} == {Stage.CABLED}
    assert open_faults(site.written()) == ()


def test_what_is_not_understood_is_not_written(site: Site) -> None:
    """A reading cut short proves nothing: the nodes are held, and the fabric's history stays as it was."""
    text = printers.ibnetdiscover(addressed(site.reader.bench.fabric()))
    site.reader.text = text[: text.index("4xNDR")]
    states = site.run()
    assert {state.stage for state in states.values()} == {Stage.CONFIGURED}
    assert all("the fabric could not be read" in state.cause for state in states.values())
    assert site.written() == []


def test_half_a_reading_is_completed(site: Site) -> None:
    """A run that was killed while it wrote is made good by the next one: each device and link once."""
    seen = site.reader.bench.fabric()
    first = changes({}, FabricReading(seen))
    site.book.append(first[: len(first) // 2])
    site.run()
    events = [event for one in site.written() for event in site.book.history(Stream.FABRIC, one.subject)]
    assert len(events) == len({(event.kind, event.subject) for event in events}) == len(first)


def test_an_older_reading_proves_nothing() -> None:
    """Two batches read at once: who writes last wrote what was read last."""
    book = open_journal("sqlite://", FixedClock())
    record, seen = FabricRecord(book), Bench().fabric()
    late = Evidence("ibnetdiscover", "controller", NOW, Origin.REAL, b"late")
    early = replace(late, at=NOW - timedelta(seconds=1), content=b"early")
    assert record.write(FabricReading(seen), (late,))
    assert record.write(FabricReading(Fabric(seen.devices, ())), (early,)) == ()
    gone = [event for event in book.latest(Stream.FABRIC, Kind.FABRIC_LINK_SEEN) if not data_of(event)["seen"]]
    assert gone == []
    book.close()
