"""Forwarding tables from text: whole, or an error with its line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import NO_ROUTE
from clusterctl.formats.infiniband.opensm import parse_dump_fts

ONE = """\
Unicast lids [0x0-0x4] of switch DR path slid 0; dlid 0; 0,1,3 guid 0x0000000000200000 (MF0;leaf-1:MQM9700/U1):
  Lid  Out   Destination
       Port     Info
0x0001 001 : (Channel Adapter portguid 0x0000000000100001: 'node001 mlx5_0')
0x0003 000 : (Switch portguid 0x0000000000200000: 'MF0;leaf-1:MQM9700/U1')
0x0004 033 : (Channel Adapter portguid 0x0000000000100004: 'it's node002: mlx5_0')
3 valid lids dumped
"""
TWO = ONE.replace("200000 (MF0;leaf-1", "200001 (MF0;leaf-2").replace("DR path slid 0; dlid 0; 0,1,3", "Lid 7")
OPENSM = """\
Unicast lids [0-4] of switch Lid 3 guid 0x0000000000200000 ('MF0;leaf-1:MQM9700/U1'):
0x0001 001 # Channel Adapter portguid 0x0000000000100001: 'node001 mlx5_0'
0x0004 033 # Channel Adapter portguid 0x0000000000100004: 'node002 mlx5_0'
4 lids dumped
"""


def parse(text: str):
    return parse_dump_fts(text.splitlines(), file="fts")


def attempt(text: str):
    """The tables, or the ParseError."""
    try:
        return parse(text)
    except ParseError as error:
        return error


def test_tables():
    """Two switches: out ports by LID, none where there is no entry, and the device of each LID."""
    found = parse(ONE + "\n" + TWO)
    assert dict(found.tables) == {
        "0000000000200000": bytes([NO_ROUTE, 1, NO_ROUTE, 0, 33]),
        "0000000000200001": bytes([NO_ROUTE, 1, NO_ROUTE, 0, 33]),
    }
    assert dict(found.lids) == {1: "0000000000100001", 3: "0000000000200000", 4: "0000000000100004"}


def test_opensm_dump():
    """OpenSM's own dump of the same tables reads alike."""
    found = parse(OPENSM)
    assert found.tables["0000000000200000"] == bytes([NO_ROUTE, 1, NO_ROUTE, NO_ROUTE, 33])
    assert set(found.lids) == {1, 4}


def test_illegal_ports():
    """With -a, entries that lead nowhere are no routes, whatever is written next to them."""
    text = ONE.replace("0x0003 000", "0x0002 255 : (illegal port)\n0x0003 000").replace("3 valid lids", "4 lids")
    assert parse(text).tables["0000000000200000"][2] == NO_ROUTE


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (ONE, "", "fts: no forwarding table"),
        ("3 valid lids dumped\n", "", "fts: it ends in the middle"),
        ("3 valid", "4 valid", "fts:7: 3 entries instead of 4"),
        ("0x0003 000", "0x0001 000", "fts:5: LID 0x1 out of order"),
        ("0x0004 033", "0xc004 033", "fts:6: LID 0xc004 is not a unicast LID"),
        ("0x0004 033", "0x0004 333", "fts:6: there is no port 333"),
        ("0x0004 033 :", "0x0004 033 =", "fts:6: entry cut off"),
        (" : (Channel Adapter portguid 0x0000000000100001: 'node001 mlx5_0')", " :", "fts:4: no destination"),
        ("Unicast lids [0x0-0x4]", "Multicast mlids [0xc000-0xc004]", "fts:1: multicast"),
        ("Unicast", "Unikast", "fts:1: line not understood"),
        ("  Lid  Out", "  LID  Out", "fts:2: line not understood"),
    ],
)
def test_broken(old, new, message):
    """What is cut off, altered, or another kind of table is refused, with the line."""
    with pytest.raises(ParseError, match=f"^{re.escape(message)}"):
        parse(ONE.replace(old, new, 1))


def test_second_table():
    """A switch twice, or a table that begins before the last one ended: two outputs were mixed up."""
    with pytest.raises(ParseError, match="a second table of switch"):
        parse(ONE + ONE)
    with pytest.raises(ParseError, match="does not end"):
        parse(ONE.replace("3 valid lids dumped\n", "") + TWO)


def test_lids_that_moved():
    """Two switches that name different owners of a LID were read at different times."""
    with pytest.raises(ParseError, match=r"fts:13: LID 0x4 is .* LIDs changed during the dump"):
        parse(ONE + TWO.replace("100004", "100005"))


@given(st.data())
def test_fuzzed(data):
    """Cut out, doubled, overwritten: the same tables, or a ParseError with a place; never anything else."""
    text = list(ONE + TWO)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        match data.draw(st.sampled_from(("cut", "double", "write", "end"))):
            case "cut":
                del text[at : at + data.draw(st.integers(1, 90))]
            case "double":
                text[at:at] = text[at : at + data.draw(st.integers(1, 90))]
            case "write":
                text[at : at + 1] = data.draw(st.text(max_size=3))
            case _:
                del text[at:]
        text = text or ["\n"]
    found = attempt("".join(text))
    if isinstance(found, ParseError):
        assert found.where.startswith("fts")
        assert found.remedy
    else:
        assert found.tables
        assert len({len(table) for table in found.tables.values()}) == 1


@given(st.text())
def test_any_text(text):
    """Text of another kind is refused."""
    with pytest.raises(ParseError):
        parse(text)
