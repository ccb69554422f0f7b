"""`ibportstate` and `smpquery`: what they print, and the real ones against ibsim."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.edges.infiniband import IbnetdiscoverReader, IbPorts, TelemetryReader
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.fabric.topology import DeviceKind, PortState
from clusterctl.fleet.finding import Origin
from clusterctl.formats.infiniband.fabric_file import decode_fabric
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.infiniband.port_queries import parse_ibportstate, parse_nodeinfo_guid
from clusterctl.ports import Deadline
from clusterctl.steps.cable.link_health import UNREADABLE
from tests.cabling.generate.subnet import MISSING, _ibsim, _netfile, preload
from tests.formats.infiniband import printers

NOW = datetime(2026, 1, 31, 8, tzinfo=UTC)
DOWN = "Switch PortInfo:\n# Port info: Lid 2 port 3\nLinkState:.......................Down\nPhysLinkState:...................Disabled\n"
PEER = "Peer PortInfo:\n# Port info: DR path\nLinkState:.......................Active\nPhysLinkState:...................LinkUp\n"


class Clock:
    def now(self) -> datetime:
        return NOW


def test_the_ports_own_state():
    """Not its peer's, which follows."""
    assert parse_ibportstate(DOWN + PEER, file="x") == PortState("Down", "Disabled")


@pytest.mark.parametrize("text", ["", PEER, "CA/RT PortInfo:\n" + PEER, DOWN.splitlines()[0], DOWN[:80]])
def test_not_a_switch_port(text):
    """Silence, an adapter's port, and an answer cut off are errors."""
    with pytest.raises(ParseError):
        parse_ibportstate(text, file="x")


@given(st.text())
def test_any_text(text):
    """A typed error or an answer."""
    for parse in (parse_ibportstate, parse_nodeinfo_guid):
        with suppress(ParseError):
            parse(text, file="x")


def test_a_tool_that_fails():
    """No state is invented where the tool had none."""
    ports = IbPorts(Clock(), Origin.SIMULATED, ibportstate=("/bin/sh", "-c", "echo no route >&2; exit 1"))
    with pytest.raises(EdgeError, match="no route"):
        ports.state(2, 3, Deadline.after(60))


@pytest.mark.skipif(MISSING, reason="ibsim-utils or opensm is missing")
def test_the_real_tools(tmp_path: Path):
    """In ibsim a switch answers with its GUID; its port is active, then disabled, and then not any more."""
    plan = generate(shape_of(FabricSize(4, 1, 4, 2)), PortNaming(("mlx5_0",), twin_cages=False), RackLayout())
    net, sm = _netfile(plan, 4)
    (tmp_path / "net").write_text(net)
    own = {"LD_PRELOAD": preload(), "SIM_HOST": sm, "IBSIM_SOCKNAME": f"ports-{os.getpid()}"}
    env = ("env", *(f"{name}={value}" for name, value in own.items()))
    with _ibsim(tmp_path, {**os.environ, **own}):
        opensm = IbnetdiscoverReader(Clock(), Origin.SIMULATED, (*env, "/bin/sh", "-c", SWEEP.format(tmp_path)))
        fabric = parse_ibnetdiscover(opensm.ibnetdiscover(Deadline.after(60)).value, file="ibnetdiscover")
        ports = IbPorts(Clock(), Origin.SIMULATED, (*env, "ibportstate"), (*env, "smpquery"))
        link = next(one for one in fabric.links if fabric.devices[one.b.guid].kind is DeviceKind.SWITCH)
        switch = fabric.devices[link.b.guid]
        where = (switch.lids[0], link.b.number)
        assert ports.device(where[0], Deadline.after(60)).value == switch.guid
        assert not ports.state(*where, Deadline.after(60)).value.disabled
        assert ports.set_disabled(*where, True, Deadline.after(60)).value.disabled
        assert ports.state(*where, Deadline.after(60)).value.disabled
        assert not ports.set_disabled(*where, False, Deadline.after(60)).value.disabled


SWEEP = "OSM_TMP_DIR={0} OSM_CACHE_DIR={0} /usr/sbin/opensm -o -e -f {0}/osm.log >/dev/null 2>&1; exec ibnetdiscover"


def test_a_db_csv_is_read_without_the_keys_of_the_fabric(tmp_path):
    """Nothing that is stored holds the M_Key."""
    text = printers.db_csv(printers.two_switches())
    assert "0x5ec4e7" in text
    (tmp_path / "db.csv").write_text(text)
    reader = TelemetryReader(Clock(), Origin.REAL, ("cat", str(tmp_path / "db.csv")))
    found = reader.db_csv(Deadline.after(60))
    assert len(decode_fabric(found.value.encode(), file="x").links) == len(printers.two_switches().links)
    assert "0x5ec4e7" not in found.value
    assert b"0x5ec4e7" not in found.evidence[0].content
    assert found.evidence[0].at == NOW


@pytest.mark.parametrize(
    ("command", "message"),
    [(("echo", "-I- done"), "no db_csv"), (("false",), "exit"), (("no-such-ibdiagnet",), "no-such-ibdiagnet")],
)
def test_a_command_that_prints_no_db_csv_is_an_error(command, message):
    with pytest.raises(UNREADABLE) as caught:
        TelemetryReader(Clock(), Origin.REAL, command).db_csv(Deadline.after(60))
    assert message in f"{caught.value.where} {caught.value.message}"
