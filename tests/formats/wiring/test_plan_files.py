"""Plan files of every kind: read as meant, or refused with file, line and remedy; nothing else is ever raised."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Location
from clusterctl.formats.file_text import text_in
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl.formats.wiring.ndt import read_ndt
from clusterctl.formats.wiring.plan import decode_draft, decode_plan, parse_wiring_csv
from clusterctl.formats.wiring.topo import read_topo
from tests.refusals import refused_in_words

SHORT = "source_device,source_port,destination_device,destination_port"
NDT = """rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,Cable Length,State,Domain
B12,U38,MF0;leaf-1:MQM9700/U1,Port 1,,node001 mlx5_0,Port 1,2.5m,Active,In-Scope
B12,38,MF0;leaf-1:MQM9700/U1,Port 33,,MF0;spine-1:MQM9700/U1,Port 1,,Active,In-Scope
,,MF0;spine-1:MQM9700/U1,Port 1,,MF0;leaf-1:MQM9700/U1,Port 33,,Active,In-Scope
,,MF0;spine-1:MQM9700/U1,Port 2,,director,Blade 2_Port 1/1,,Active,Boundary
,,MF0;leaf-1:MQM9700/U1,Port 64,,,,,Disabled,Disconnected
"""
TOPO = "QM9700 leaf-1\n  P1 -4x-100G-> CX7 node001 mlx5_0/P1\n  P33 -> QM9700 spine-1 U1/P1\n"
ETHERNET = f"{SHORT},source_mac,destination_mac\nsw-1,Ethernet1,node001,ens1f0,,0c:42:a1:00:00:01\n"
BRIEF = "StartDevice,StartPort,EndDevice,EndPort,State,Domain\nleaf-1,Port 1,node001 mlx5_0,Port 2,Active,In-Scope\n"


def test_ndt():
    """UFM's columns: devices by description, hosts with their adapter; second mentions and unconnected ports are none."""
    draft = decode_draft(NDT.encode(), file="fabric.ndt")
    assert [(str(cable.source), str(cable.destination)) for cable in draft.cables] == [
        ("leaf-1 port 1", "node001 mlx5_0"),
        ("leaf-1 port 33", "spine-1 port 1"),
        ("spine-1 port 2", "director L02/U1 port 1"),
    ]
    assert draft.hosts == {"node001"}
    assert draft.models["leaf-1"] == "MQM9700"
    assert draft.cables[0].length_m == 2.5
    assert decode_plan(NDT.encode(), file="fabric.ndt").locations == {"leaf-1": Location("B12", 38)}


def test_ndt_with_interface_names():
    """A host's port may be written as a site's label and the interface's name: the name counts, and it is a host."""
    text = BRIEF.replace("node001 mlx5_0,Port 2", "node001,SAT011 ibp12s0")
    draft = decode_draft(text.encode(), file="fabric.ndt")
    assert draft.cables[0].destination == PortName("node001", "ibp12s0")
    assert draft.hosts == {"node001"}


def test_ndt_by_its_header():
    """A brief NDT in a .csv is recognised by its columns; the second port of an adapter keeps its number."""
    (cable,) = decode_draft(BRIEF.encode(), file="fabric.csv").cables
    assert cable.destination == PortName("node001", "mlx5_0/2")


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("StartDevice,StartPort,EndDevice\n", "f.ndt:1 EndPort", "missing"),
        ("StartDevice,#StartDevice,StartPort,EndDevice,EndPort\n", "f.ndt:1 StartDevice", "repeated"),
        (BRIEF.replace("Port 2", ""), "f.ndt:2 EndPort", "empty"),
        (BRIEF.replace(",In-Scope\n", "\n"), "f.ndt:2", "5 cells"),
        (NDT.replace("2.5m", "long"), "f.ndt:2 Cable Length", "no cable length"),
        (NDT.replace("U38", "top"), "f.ndt:2 U height", "no rack unit"),
        (BRIEF.splitlines()[0] + "\n", "f.ndt", "no cable"),
    ],
)
def test_ndt_errors(text, where, message):
    """Each names file, line and column."""
    with pytest.raises(UsageError, match=message) as caught:
        decode_plan(text.encode(), file="f.ndt")
    assert caught.value.where == where


def test_topo_with_boards_and_adapters():
    """A switch's board U1 is the switch; an adapter's first port is the adapter; the models are kept."""
    draft = decode_draft(TOPO.encode(), file="plan.txt")
    assert [cable.destination for cable in draft.cables] == [PortName("node001", "mlx5_0"), PortName("spine-1", "1")]
    assert draft.models == {"leaf-1": "QM9700", "node001": "CX7", "spine-1": "QM9700"}


def test_racks_of_both_ends():
    """A row may hold the place of each of its devices."""
    text = f"{SHORT},source_rack,source_unit,destination_rack,destination_unit,rail\nleaf,1,node,mlx5_4,N1,U40,A1,8,5\n"
    plan = parse_wiring_csv(text)
    assert plan.locations == {"leaf": Location("N1", 40), "node": Location("A1", 8)}
    assert plan.cables[0].rail == "5"


def test_ethernet_plan():
    """The source is a switch; what is never a source is a host; addresses are written one way."""
    text = ETHERNET + "sw-1,Ethernet49,sw-2,Ethernet1,,\nsw-2,Ethernet2,node001,bmc,,0C-42-A1-00-00-02\n"
    draft = read_ethernet_csv(text, "ethernet.csv")
    assert draft.hosts == {"node001"}
    assert draft.macs[PortName("node001", "bmc")] == "0c:42:a1:00:00:02"
    with pytest.raises(UsageError, match="no MAC address") as caught:
        read_ethernet_csv(text.replace("00-02", "00-0z"), "ethernet.csv")
    assert caught.value.where == "ethernet.csv:4 destination_mac"


def test_gzip():
    """Gzipped plans are read, also of several members; what is cut off, broken or too large is refused."""
    packed = gzip.compress(TOPO.encode())
    assert decode_plan(packed, file="plan.topo.gz") == decode_plan(TOPO.encode(), file="plan.topo")
    assert text_in(gzip.compress(b"a") + gzip.compress(b"b"), "f") == "ab"
    for data, message in (
        (packed[:-9], "cut off"),
        (packed[:20] + b"!" + packed[21:], "gzip"),
        (b"\x1f\x8b", "cut off"),
    ):
        with pytest.raises(UsageError, match=message):
            text_in(data, "f.gz")
    with pytest.raises(UsageError, match="too large"):
        text_in(gzip.compress(bytes(5000)), "f.gz", limit=1000)


READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "ndt": (NDT, lambda text: read_ndt(text, "f")),
    "topo": (TOPO, lambda text: read_topo(text, "f")),
    "ethernet": (ETHERNET, lambda text: read_ethernet_csv(text, "f")),
    "any": (BRIEF, lambda text: decode_plan(text.encode(errors="replace"), file="f")),
}
PIECES = st.text("-=>/P,;\"'#\t\n\r\0\ufeff 0159²eEmU:xFdisabled", max_size=12)


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_right_file_with_something_in_it(kind: str, data: st.DataObject) -> None:
    """Characters put in or in the place of others: understood, or refused with the place."""
    right, read = READERS[kind]
    start = data.draw(st.integers(0, len(right)))
    end = data.draw(st.integers(start, min(len(right), start + 20)))
    refused_in_words(lambda: read(right[:start] + data.draw(PIECES) + right[end:]), "f")


@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=40, deadline=None)
@given(text=st.text() | PIECES)
def test_any_text(kind: str, text: str) -> None:
    """A file that is no plan at all."""
    refused_in_words(lambda: READERS[kind][1](text), "f")


@settings(max_examples=80, deadline=None)
@given(data=st.binary(max_size=200), packed=st.booleans(), name=st.sampled_from(["f.csv", "f.topo.gz", "f.ndt", "f"]))
def test_any_bytes(data: bytes, packed: bool, name: str) -> None:
    """Bytes that are no text, gzipped or not."""
    refused_in_words(lambda: decode_plan(gzip.compress(data) if packed else data, file=name), name)
