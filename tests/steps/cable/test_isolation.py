"""Ports taken out of use and back: identity first, intent first, the world looked at first."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import EdgeError, UnreachableError, UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.port_acts import CLAIM, DisabledPort, disabled_ports, intended
from clusterctl.fleet.fabric.topology import Fabric, Link, PortId, PortState
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Guid
from clusterctl.ports import Deadline
from clusterctl.steps.cable.isolation import Isolator
from clusterctl.steps.executor.lease import sole_claim
from tests.events import data_of
from tests.fake_timer import FakeTimer
from tests.formats.infiniband import printers

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
FABRIC = printers.two_switches()
LINK = FABRIC.links[-1]
OUT = DisabledPort(LINK.a, LINK.b, "leaf-1 port 5", "bit errors", sure=False)
SWITCHES = {device.lids[0]: guid for guid, device in FABRIC.devices.items()}


class Clock:
    def now(self) -> datetime:
        return NOW


class World:
    """A fabric whose disabled ports take their links down; meets FabricReader and PortAdmin."""

    def __init__(self, links: tuple[Link, ...] = FABRIC.links) -> None:
        self.links = links
        self.disabled: set[PortId] = set()
        self.acts: list[tuple[PortId, bool]] = []

    def ibnetdiscover(self, deadline):
        up = tuple(link for link in self.links if self.disabled.isdisjoint((link.a, link.b)))
        return self._seen("ibnetdiscover", printers.ibnetdiscover(Fabric(FABRIC.devices, up)))

    def device(self, lid, deadline):
        return self._seen("smpquery", SWITCHES[lid])

    def state(self, lid, port, deadline):
        out = PortId(SWITCHES[lid], port) in self.disabled
        return self._seen("ibportstate", PortState("Down" if out else "Active", "Disabled" if out else "LinkUp"))

    def set_disabled(self, lid, port, disabled, deadline):
        one = PortId(SWITCHES[lid], port)
        self.acts.append((one, disabled))
        (self.disabled.add if disabled else self.disabled.discard)(one)
        return self.state(lid, port, deadline)

    def _seen(self, command, value):
        return Observed(value, (Evidence(command, "controller", NOW, Origin.SIMULATED, str(value).encode()),))


@pytest.fixture
def journal(tmp_path):
    opened = open_journal(f"sqlite:///{tmp_path / 'j.db'}", Clock(), Holder("r1", "me", "cable disable"))
    yield opened
    opened.close()


def hands(world: World, journal) -> Isolator:
    return Isolator(world, world, journal, journal.claim([CLAIM], "r1").granted[CLAIM])


def test_intent_then_act_then_look(journal):
    """The journal has both, with the proof of the peer that the port led to; the port is out, by its own report."""
    world = World()
    assert hands(world, journal).disable(OUT, Deadline.after(60))
    assert world.disabled == {LINK.a}
    first, second = journal.history(Stream.FABRIC, f"{LINK.a.guid}/{LINK.a.number}")
    assert (first.kind, second.kind) == (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)
    assert data_of(second)["message"] == "Disabled"
    assert any(b"Switch" in journal.evidence(digest).content for digest in first.evidence)
    (out,) = disabled_ports(journal.latest(Stream.FABRIC))
    assert (out.port, out.peer, out.sure) == (LINK.a, LINK.b, True)


def test_another_cable_is_left_alone(journal):
    """A port that leads elsewhere by now is not touched, and nothing is written."""
    moved = Link(LINK.a, PortId(LINK.b.guid, 6), 4, "NDR")
    world = World((*FABRIC.links[:-1], moved))
    with pytest.raises(EdgeError, match="it leads to"):
        hands(world, journal).disable(OUT, Deadline.after(60))
    assert world.acts == []
    assert disabled_ports(journal.latest(Stream.FABRIC)) == ()


def test_another_switch_at_that_lid_is_left_alone(journal):
    """LIDs are assigned again; a switch that answers with another GUID is not acted on."""

    class Moved(World):
        def device(self, lid, deadline):
            return self._seen("smpquery", Guid("00000000000000ff"))

    world = Moved()
    with pytest.raises(EdgeError, match="answers as"):
        hands(world, journal).disable(OUT, Deadline.after(60))
    assert world.acts == []


def test_after_a_kill_it_looks_first(journal):
    """A run killed between act and look: the next one sees the port out, writes that, and does not act again."""
    world = World()
    journal.append([intended(Act.PORT_DISABLE, OUT)])
    assert [out.sure for out in disabled_ports(journal.latest(Stream.FABRIC))] == [False]
    world.disabled.add(LINK.a)
    assert not hands(world, journal).disable(OUT, Deadline.after(60))
    assert world.acts == []
    assert [out.sure for out in disabled_ports(journal.latest(Stream.FABRIC))] == [True]


def test_a_disabled_port_stays_listed_though_an_enable_was_begun(journal):
    """A run is killed between its intent to enable and the act; the next one finds the port disabled. It is no port in
    use: it is listed until an enable has its proof.
    """
    world = World()
    isolator = hands(world, journal)
    isolator.disable(OUT, Deadline.after(60))
    journal.append([intended(Act.PORT_ENABLE, OUT)])
    assert [(out.sure, out.enabling) for out in disabled_ports(journal.latest(Stream.FABRIC))] == [(False, True)]
    assert not isolator.disable(OUT, Deadline.after(60))
    assert [(out.sure, out.enabling) for out in disabled_ports(journal.latest(Stream.FABRIC))] == [(True, False)]
    (out,) = disabled_ports(journal.history(Stream.FABRIC, f"{LINK.a.guid}/{LINK.a.number}"))
    assert (out.port, out.peer, out.label) == (OUT.port, OUT.peer, OUT.label)
    isolator.enable(out, Deadline.after(60))
    isolator.proven(out, "BER below 1e-14", ())
    assert disabled_ports(journal.latest(Stream.FABRIC)) == ()


def test_in_use_only_once_proven(journal):
    """An enabled port still counts as out until its proof is written."""
    world = World()
    isolator = hands(world, journal)
    isolator.disable(OUT, Deadline.after(60))
    isolator.enable(OUT, Deadline.after(60))
    assert world.disabled == set()
    assert [out.sure for out in disabled_ports(journal.latest(Stream.FABRIC))] == [False]
    isolator.proven(OUT, "BER below 1e-14", ())
    assert disabled_ports(journal.latest(Stream.FABRIC)) == ()


def test_a_wrong_cable_after_repair(journal):
    """What now leads elsewhere is disabled again."""
    world = World()
    isolator = hands(world, journal)
    isolator.disable(OUT, Deadline.after(60))
    world.links = (*FABRIC.links[:-1], Link(LINK.a, PortId(LINK.b.guid, 6), 4, "NDR"))
    with pytest.raises(EdgeError, match="disabled again"):
        isolator.enable(OUT, Deadline.after(60))
    assert world.disabled == {LINK.a}
    assert [out.sure for out in disabled_ports(journal.latest(Stream.FABRIC))] == [True]


def test_a_link_that_stays_down(journal):
    """It is waited for until the deadline, and is not in use."""
    world = World(FABRIC.links[:-1])
    with pytest.raises(UnreachableError, match="waiting for the link"):
        hands(world, journal).enable(OUT, Deadline.after(60, timer=FakeTimer()))


def test_one_run_at_a_time(journal, tmp_path):
    """While another run holds the fabric, nothing is done."""
    journal.claim([CLAIM], "other")
    other = open_journal(f"sqlite:///{tmp_path / 'j.db'}", Clock(), Holder("r2", "you", "cable enable"))
    with pytest.raises(UsageError, match="another run"), sole_claim(other, CLAIM, "r2"):
        pytest.fail("acted")
    other.close()
