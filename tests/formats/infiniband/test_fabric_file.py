"""Whatever tool printed a fabric, it is the same fabric; what is not whole is refused, never smaller."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import ClusterctlError, ParseError
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.formats.infiniband.fabric_file import decode_fabric
from tests.formats.infiniband import printers

PRINTERS: dict[str, Callable[[Fabric], str]] = {
    "ibnetdiscover": printers.ibnetdiscover,
    "ibnetdiscover -p": printers.ibnetdiscover_p,
    "iblinkinfo": lambda fabric: printers.iblinkinfo(fabric, line_mode=False),
    "iblinkinfo -l": lambda fabric: printers.iblinkinfo(fabric, line_mode=True),
    "db_csv": printers.db_csv,
}
tools = pytest.mark.parametrize("tool", PRINTERS)
FABRIC = printers.two_switches(((4, "NDR"), (2, "HDR"), (1, "FDR10")))


def read(text: str) -> Fabric:
    return decode_fabric(text.encode(), file="fabric.txt")


def attempt(data: bytes) -> Fabric | ClusterctlError:
    try:
        return decode_fabric(data, file="fabric.txt")
    except ClusterctlError as error:
        return error


def plain(fabric: Fabric) -> tuple[object, object]:
    """What every tool reports."""
    devices = {(d.guid, d.kind, d.description, d.ports, d.port_guids, d.lids) for d in fabric.devices.values()}
    return devices, frozenset(fabric.links)


@tools
@given(
    rates=st.lists(st.tuples(st.sampled_from([1, 2, 4, 8, 12]), st.sampled_from(list(printers.LANES))), min_size=1),
    name=st.sampled_from(["node", "MT4129 ConnectX7", "a;b:c/U1", "ärger", "it's", "MF0;x (spare)"]),
)
@settings(max_examples=40, deadline=None)
def test_every_tool_gives_the_same(tool, rates, name):
    """Devices, kinds, LIDs, links and rates come through from each tool's text, whatever the names."""
    fabric = printers.two_switches(tuple(rates), name)
    assert plain(read(PRINTERS[tool](fabric))) == plain(fabric)


@tools
def test_gzipped(tool):
    """A gzipped file gives the same."""
    text = PRINTERS[tool](FABRIC)
    assert decode_fabric(gzip.compress(text.encode()), file="x") == read(text)


@tools
def test_every_cut_is_noticed(tool):
    """However many of the last lines are lost, what is left is refused, or has every link."""
    lines = PRINTERS[tool](FABRIC).splitlines()
    for count in range(len(lines)):
        found = attempt("\n".join(lines[:count]).encode())
        if isinstance(found, Fabric):
            assert found.links == read("\n".join(lines)).links
        else:
            assert found.where.startswith("fabric.txt")


@tools
def test_one_guid_twice(tool):
    """A GUID that two devices have is refused."""
    host = list(FABRIC.devices.values())[-1]
    text = PRINTERS[tool](replace(FABRIC, devices={**FABRIC.devices, "x": replace(host, description="other mlx5_0")}))
    with pytest.raises(ParseError):
        read(text)


@tools
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_text(tool, data):
    """Lines lost, doubled, cut or overwritten: a typed error that names the file, or a fabric, never a traceback; and
    a lost line never makes it smaller.
    """
    lines = PRINTERS[tool](FABRIC).splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    how = data.draw(st.sampled_from(["lose", "double", "cut", "overwrite"]))
    line = lines[number]
    at = data.draw(st.integers(0, len(line)))
    rubbish = data.draw(st.text(max_size=12))
    lines[number : number + 1] = {
        "lose": [],
        "double": [line, line],
        "cut": [line[:at]],
        "overwrite": [line[:at] + rubbish + line[at + len(rubbish) :]],
    }[how]
    found = attempt("\n".join(lines).encode("utf-8", "replace"))
    if isinstance(found, ClusterctlError):
        assert found.where.startswith("fabric.txt")
        assert found.remedy
    elif how == "lose":
        assert len(found.links) == len(FABRIC.links)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace"))))
def test_anything(data):
    """Bytes of any kind are refused in words, file named."""
    with pytest.raises(ClusterctlError) as caught:
        decode_fabric(data, file="fabric.txt")
    assert caught.value.where.startswith("fabric.txt")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no device in it"),
        ("src/ibnetdisc.c:99; Duplicate Port: Port with guid 0x1 already exists", "two devices have the same GUID"),
        ("ibwarn: [7] mad_rpc: failed; dport (Lid 1)", "the tool"),
        ("START_NODES\nNodeGUID\n", "has no end"),
        ("START_NODES\nNodeGUID\n0x1\nEND_NODES\n", "section PORTS is missing"),
        ("CA: x:\n", "no link in it"),
    ],
)
def test_no_fabric(text, why):
    """Nothing, a tool's complaint, a file cut off: each is refused for what it is."""
    with pytest.raises(ParseError, match=why):
        read(text)


def test_far_end_not_found():
    """A port that is up while its far end did not answer means that the reading is not whole."""
    text = printers.iblinkinfo(FABRIC, line_mode=True).splitlines()
    text[0] = text[0].split("==>")[0] + '==>             [  ] "" ( )'
    with pytest.raises(ParseError, match="far end was not found"):
        read("\n".join(text))


def test_no_m_key_in_messages():
    """A db_csv's rows hold M_Keys: no message shows one."""
    text = printers.db_csv(FABRIC)
    for damage in (",1\n", ",x,x\n", "\n"):
        with pytest.raises(ParseError) as caught:
            read(text.replace(",2,2048,4\n", damage))
        assert "5ec4e7" not in str(caught.value)
