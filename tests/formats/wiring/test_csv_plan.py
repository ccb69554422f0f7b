"""Wiring plans: what they may hold, and errors that name file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Location
from clusterctl.formats.wiring.plan import decode_plan, parse_topo, parse_wiring_csv

CSV = (Path(__file__).parents[1] / "infiniband/data/two_hosts.csv").read_text(encoding="utf-8")
HEADER = CSV.splitlines()[0]
SHORT = "source_device,source_port,destination_device,destination_port"


def test_all_columns():
    """Every column of the plan is kept; rack and unit belong to the host."""
    plan = parse_wiring_csv(CSV)
    first = plan.cables[0]
    assert (first.source, first.destination) == (PortName("leaf-1", "1"), PortName("node001", "mlx5_0"))
    assert (first.cage, first.serial, first.length_m, first.line) == ("1/1", "CBL001", 1.5, 2)
    assert plan.hosts == {"node001", "node002"}
    assert plan.locations == {"node001": Location("A01", 4), "node002": Location("A01", 12)}


def test_host_may_be_the_source():
    """The rack is the host's, and the cage the switch's, whichever end comes first."""
    plan = parse_wiring_csv(f"{HEADER}\nnode001,mlx5_0,leaf-1,7,A02,4,4/1,,\n")
    assert plan.locations == {"node001": Location("A02", 4)}
    assert plan.cables[0].labelled == PortName("leaf-1", "7")


def test_only_required_columns_and_leading_zeros():
    """The four columns suffice; `01` is port 1; blank rows and a byte order mark are no matter."""
    plan = decode_plan(f"\ufeff{SHORT}\nleaf-1,01,node001,mlx5_0\n,,,\n".encode(), file="wiring.csv")
    assert plan.cables[0].source == PortName("leaf-1", "1")


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", "wiring.csv:1", "is empty"),
        (f"{SHORT},colour\n", "wiring.csv:1 colour", "unknown or repeated"),
        (f"{SHORT}\n", "wiring.csv", "no cable"),
        (f"{SHORT}\nleaf-1,1,node001\n", "wiring.csv:2", "but the header has 4 columns"),
        (f"{SHORT}\nleaf-1,1,node001,mlx5_0,5\n", "wiring.csv:2", "but the header has 4 columns"),
        (f"{SHORT}\nleaf-1,,node001,mlx5_0\n", "wiring.csv:2 source_port", "empty"),
        (f"{SHORT}\nleaf-1,1,a,x\nleaf-1,1,b,x\n", "wiring.csv:3 source_port", "already planned on line 2"),
        (f"{SHORT}\nleaf-1,1,a,x\nleaf-1,2,a,x\n", "wiring.csv:3 destination_port", "already planned on line 2"),
        (f"{SHORT},length_m\nleaf-1,1,a,x,long\n", "wiring.csv:2 length_m", "no cable length"),
        (f"{SHORT},length_m\nleaf-1,1,a,x,-1\n", "wiring.csv:2 length_m", "no cable length"),
        (f"{SHORT},rack,unit\nleaf-1,1,a,x,A1,top\n", "wiring.csv:2 unit", "no rack unit"),
        (f"{SHORT},rack\nleaf-1,1,a,x,A1\nleaf-2,1,a,y,A2\n", "wiring.csv:3 rack", "stands in"),
        (f'{SHORT}\nleaf-1,1,"a"b,x\n', "wiring.csv:2", "is no CSV"),
    ],
)
def test_errors_name_file_line_and_column(text, where, message):
    """Each mistake has what, where, and a remedy for the operator."""
    with pytest.raises(UsageError, match=message) as caught:
        parse_wiring_csv(text)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding):
    """A spreadsheet gives the same in every encoding that Windows writes."""
    plan = decode_plan(f"{SHORT}\r\nK\u00f6ln-1,1,a,x\r\n".encode(encoding), file="plan.csv")
    assert plan.cables[0].source == PortName("K\u00f6ln-1", "1")


def test_topo():
    """A .topo gives the same cables; a cable listed from both ends counts once."""
    text = "QM9700 spine\n  P1 -4x-25G-> QM9700 leaf P2\n\nQM9700 leaf # here\n P1 -> CX7 node001 P1\n P2 -> QM9700 spine P1\n"
    plan = decode_plan(text.encode(), file="plan.topo")
    assert [sorted(map(str, cable.ends)) for cable in plan.cables] == [
        ["leaf port 2", "spine port 1"],
        ["leaf port 1", "node001 port 1"],
    ]
    assert plan.hosts == {"node001"}


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("P1 -> CX7 a P1\n", "p.topo:1", "before any device"),
        ("SW a\nP1 => CX7 b P1 x\n", "p.topo:2", "not understood"),
        ("SW a\nP1 -> CX7 b P1\nP1 -> CX7 c P1\n", "p.topo:3", "already planned on line 2"),
        ("", "p.topo", "no cable"),
    ],
)
def test_topo_errors(text, where, message):
    """Mistakes in a .topo name file and line."""
    with pytest.raises(UsageError, match=message) as caught:
        parse_topo(text, file="p.topo")
    assert caught.value.where == where
