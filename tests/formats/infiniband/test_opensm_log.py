"""Which routing engine made the tables: the log's last word."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.infiniband.opensm import parse_opensm_log

HEAD = "Jan 31 08:10:0{} 288018 [F7FCD6C0] 0x0{} -> "
FTREE = HEAD.format(1, 2) + "osm_ucast_mgr_process: ftree tables configured on all switches"
FALLEN = [
    HEAD.format(5, 1) + "fabric_validate_topology: ERR AB0A: Different number of downward port groups on switches:",
    "       GUID 0x9c05910300000300, LID 5, Index 0.12.0 - 63 port groups",
    HEAD.format(5, 2) + "Fabric topology is not a fat-tree",
    HEAD.format(5, 1) + "ucast_mgr_route: ftree: cannot build lid matrices",
    HEAD.format(7, 2) + "osm_ucast_mgr_process: minhop tables configured on all switches",
    HEAD.format(9, 2) + "SUBNET UP",
]


def test_ftree():
    """Tables by ftree, no complaint."""
    found = parse_opensm_log([FTREE, HEAD.format(2, 2) + "SUBNET UP"])
    assert (found.engine, found.failures, found.adaptive) == ("ftree", (), False)


def test_silent_fall_back():
    """First ftree, then minhop: the last routing counts, with the messages against ftree, without stamps."""
    found = parse_opensm_log([FTREE, *FALLEN])
    assert found.engine == "minhop"
    assert found.failures == (
        "ERR AB0A: Different number of downward port groups on switches:",
        "GUID 0x9c05910300000300, LID 5, Index 0.12.0 - 63 port groups",
        "Fabric topology is not a fat-tree",
        "ftree: cannot build lid matrices",
    )


def test_routing_that_was_repaired():
    """After a fall-back ftree again: the earlier messages no longer count."""
    assert parse_opensm_log([*FALLEN, FTREE]).failures == ()


def test_adaptive():
    """UFM's adaptive engines are known by their names."""
    assert parse_opensm_log([FTREE.replace("ftree", "ar_updn")]).adaptive


def test_no_routing():
    """A log without any routing is refused: it proves nothing."""
    with pytest.raises(ParseError, match=r"osm\.log: no line reports"):
        parse_opensm_log(FALLEN[:4])


@given(st.lists(st.text()))
def test_any_text(lines):
    """Any text: an outcome or a ParseError."""
    with contextlib.suppress(ParseError):
        assert parse_opensm_log(lines).engine
