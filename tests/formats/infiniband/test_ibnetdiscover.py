"""ibnetdiscover's text becomes a fabric, or an error: never a smaller fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import DeviceKind, PortId
from clusterctl.fleet.node import Guid
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover

TEXT = (Path(__file__).parent / "data/two_hosts.ibnetdiscover").read_text(encoding="utf-8")


def test_devices_and_links():
    """Kinds, trimmed descriptions, port counts, GUIDs, widths and speeds come through; switch engines are no cables."""
    fabric = parse_ibnetdiscover(TEXT)
    leaf, host = fabric.devices[Guid("00000000000000a1")], fabric.devices[Guid("00000000000000b2")]
    assert (leaf.kind, leaf.ports, leaf.device_id) == (DeviceKind.SWITCH, 65, 0xD2F2)
    assert (host.kind, host.description, host.port_guids) == (
        DeviceKind.CA,
        "node002 mlx5_0",
        (Guid("00000000000000b2"),),
    )
    assert len(fabric.links) == 3
    cables = {link.b: link for link in fabric.cables()}
    assert {link.rate for link in cables.values()} == {"4xNDR", "2xNDR"}
    assert cables[PortId(host.guid, 1)].gbps == 200


def test_lost_tabs():
    """Text that lost its tabs on the way (`Switch65 "S-…"`) gives the same."""
    assert parse_ibnetdiscover(TEXT.replace("\t", "")) == parse_ibnetdiscover(TEXT)


def test_every_cut_is_noticed():
    """However many lines are cut off at the end, the rest is refused."""
    lines = TEXT.splitlines()
    whole = parse_ibnetdiscover(TEXT)
    for count in range(len(lines)):
        with pytest.raises(ParseError):
            parse_ibnetdiscover("\n".join(lines[:count]))
    assert whole.devices


@pytest.mark.parametrize("text", ["", "\n\n", "# Topology file: generated\n"])
def test_empty_is_an_error(text):
    """No device is an error, not an empty fabric."""
    with pytest.raises(ParseError, match="no device"):
        parse_ibnetdiscover(text)


def test_duplicate_guid():
    """One GUID twice is refused with both lines."""
    again = TEXT + TEXT[TEXT.index("Ca\t1") :].split("\n\n")[0]
    with pytest.raises(ParseError, match=r"duplicate GUID 00000000000000b1, first on line 19") as caught:
        parse_ibnetdiscover(again, file="fabric.txt")
    assert caught.value.where.startswith("fabric.txt:")


def test_duplicate_port_guid():
    """Two devices with one port GUID are refused: the tool that wrote this would have dropped links."""
    with pytest.raises(ParseError, match="duplicate port GUID"):
        parse_ibnetdiscover(TEXT.replace("[1](b2) ", "[1](b1) "))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4xNDR\n[2]", "4xABC\n[2]", "unknown link speed 'ABC'"),
        ("[2]\t", "[1]\t", "a second time"),
        ('"S-00000000000000a1"[2]', '"S-00000000000000a1"[3]', "does not confirm"),
        ("devid=0xcf09", "surprise", "not understood"),
    ],
)
def test_nonsense_is_named_with_its_line(old, new, message):
    """What contradicts itself or is unknown is refused, and the line is named."""
    with pytest.raises(ParseError, match=message) as caught:
        parse_ibnetdiscover(TEXT.replace(old, new, 1))
    assert caught.value.where.split(":")[1].isdigit()


def test_the_slower_end_counts():
    """Where the two ends of a link disagree on its width, the narrower one is taken."""
    fabric = parse_ibnetdiscover(TEXT.replace('"node001 mlx5_0" lid 2 4xNDR', '"node001 mlx5_0" lid 2 1xNDR'))
    assert "1xNDR" in {link.rate for link in fabric.links}
