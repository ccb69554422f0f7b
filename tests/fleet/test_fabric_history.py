"""Devices, links and transceivers have a history: only changes are written, and nothing is forgotten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.fabric.history import (
    FabricReading,
    changes,
    known,
    known_modules,
    link_name,
    open_faults,
    port_name,
    port_named,
)
from clusterctl.fleet.fabric.telemetry import Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.payloads.hardware import FabricFault, FabricFaultSeen, FabricTransceiverSeen
from tests import events as journal_events
from tests.events import data_of, new_event
from tests.formats.infiniband.printers import two_switches

FABRIC = two_switches()
PORT, FAR = FABRIC.links[0].a, FABRIC.links[0].b
AT = datetime(2026, 1, 1, tzinfo=UTC)


def written(new: Iterable[NewEvent]) -> list[Event]:
    return [journal_events.written(e, seq, AT) for seq, e in enumerate(new)]


def test_first_look_and_again():
    """At first everything is new; the same fabric again adds nothing."""
    first = changes({}, FabricReading(FABRIC))
    assert len(first) == len(FABRIC.devices) + len(FABRIC.links)
    assert {event.stream for event in first} == {"fabric"}
    assert changes(known(written(first)), FabricReading(FABRIC)) == ()


def test_a_link_goes_slower_goes_and_comes_back():
    """Each change of a link is one event of its own subject; a lost link is reported once."""
    events = written(changes({}, FabricReading(FABRIC)))
    slow = Fabric(FABRIC.devices, (replace(FABRIC.links[0], width=1), *FABRIC.links[1:]))
    cut = Fabric(FABRIC.devices, FABRIC.links[1:])
    data = []
    for fabric in (slow, cut, cut, FABRIC):
        new = changes(known(events), FabricReading(fabric))
        assert {event.subject for event in new} <= {link_name(FABRIC.links[0])}
        data += [data_of(event) for event in new]
        events += written(new)
    full = {"seen": True, "width": 4, "speed": "NDR"}
    assert data == [full | {"width": 1}, {"seen": False, "width": 0, "speed": ""}, full]


def test_transceivers_by_serial():
    """Both ends of a cable share its serial; a reading that knows no transceivers does not make them disappear."""
    cable = Transceiver("Mellanox", "MCP4Y10", "MT1", "46.1")
    reported = Telemetry(transceivers={PORT: cable, FAR: cable}, firmware={PORT.guid: "31.1"})
    events = written(changes({}, FabricReading(FABRIC, reported)))
    (seen,) = [event for event in events if event.kind is Kind.FABRIC_TRANSCEIVER_SEEN]
    assert (seen.subject, data_of(seen)["ports"]) == ("MT1", sorted(map(port_name, (PORT, FAR))))
    assert changes(known(events), FabricReading(FABRIC)) == ()
    moved = Telemetry(transceivers={PORT: replace(cable, serial="MT2")}, firmware={PORT.guid: "31.2"})
    assert {
        (event.subject, data_of(event)["seen"]) for event in changes(known(events), FabricReading(FABRIC, moved))
    } == {
        ("MT1", False),
        ("MT2", True),
        (PORT.guid, True),
    }


def test_modules_are_known_by_the_ports_of_the_last_reading():
    """A cable without a serial has no history, and a cable that is gone is at no port."""
    cable, unmarked = Transceiver("Mellanox", "MCP4Y10", "MT1", "46.1"), Transceiver("Mellanox", "MCP4Y10")
    events = written(changes({}, FabricReading(FABRIC, Telemetry(transceivers={PORT: cable, FAR: unmarked}))))
    assert [event.subject for event in events if event.kind is Kind.FABRIC_TRANSCEIVER_SEEN] == ["MT1"]
    assert known_modules(events) == {PORT: cable}
    other = replace(cable, serial="MT2")
    events += written(changes(known(events), FabricReading(FABRIC, Telemetry(transceivers={FAR: other}))))
    assert known_modules(known_last(events)) == {FAR: other}


def known_last(events: Iterable[Event]) -> list[Event]:
    """Return the last event of each subject, as the journal gives them."""
    return list({(event.kind, event.subject): event for event in events}.values())


def test_a_text_that_names_no_port_is_none():
    """The journal of another version may hold any."""
    assert port_named(port_name(PORT)) == PORT
    for text in ("", PORT.guid, f"{PORT.guid}/", f"{PORT.guid}/x", f"{PORT.guid}/-1"):
        assert port_named(text) is None
    strange = FabricTransceiverSeen(vendor="Mellanox", part="MCP4Y10", firmware="46.1", ports=("x", port_name(PORT)))
    (event,) = written([NewEvent(Stream.FABRIC, "MT1", strange)])
    assert list(known_modules([event])) == [PORT]


def test_what_is_no_reading_of_the_fabric_is_left_out():
    """The stream may hold other kinds: acts on ports, for one."""
    act = new_event("fabric", "port", Kind.NODE_ADDRESSED, {"address": "192.0.2.7"})
    assert known([act]) == {}


def test_open_faults_are_in_the_order_of_racks():
    """Those without a place come last."""
    faults = [FabricFault("missing_link", (rack,), "not up", "plug it in", rack, 1) for rack in ("", "B01", "A01")]
    events = written(changes({}, FabricReading(FABRIC, faults=tuple(faults))))
    assert [fault.rack for fault in open_faults(events)] == ["A01", "B01", ""]


def test_a_fault_stands_until_a_look_does_not_find_it():
    """It is written once, with a clear instruction; a reading without a plan has none of it."""
    cut = FabricFault("missing_link", ("a port 1", "b port 2"), "a – b is not up", "plug it in", "B12", 1)
    dead = FabricFault("island", ("leaf-1",), "leaf-1 is not seen", "check power", "A01", 9, ("n1", "n2"))
    events = written(changes({}, FabricReading(FABRIC, faults=(cut, dead))))
    assert open_faults(events) == (dead, cut)
    assert changes(known(events), FabricReading(FABRIC, faults=(dead, cut))) == ()
    assert changes(known(events), FabricReading(FABRIC)) == ()
    events += written(changes(known(events), FabricReading(FABRIC, faults=(dead,))))
    assert open_faults(events) == (dead,)
    (gone,) = changes(known(events), FabricReading(FABRIC, faults=()))
    assert gone.payload == FabricFaultSeen(seen=False)
    assert len({fault.subject for fault in (cut, dead)}) == 2
    assert max(len(fault.subject) for fault in (cut, dead)) < 64


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from(FABRIC.links), min_size=1), min_size=1, max_size=6))
def test_the_fold_is_the_fabric(looks):
    """After any readings, the links of the history are those of the last reading."""
    events: list[Event] = []
    for links in looks:
        events += written(changes(known(events), FabricReading(Fabric(FABRIC.devices, tuple(links)))))
    there = {subject for (kind, subject), data in known(events).items() if kind is Kind.FABRIC_LINK_SEEN and data.seen}
    assert there == {link_name(link) for link in looks[-1]}
