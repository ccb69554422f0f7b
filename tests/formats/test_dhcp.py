"""DHCP messages against RFC 2131's layout, and answers that real servers gave."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.dhcp import discover, parse_offer

MAC = bytes.fromhex("0242c0000211")
COOKIE = bytes.fromhex("63825363")


def offer(transaction: int, options: bytes, *, op: int = 2, file: bytes = b"") -> bytes:
    head = bytes((op, 1, 6, 0)) + transaction.to_bytes(4, "big") + bytes(4) + bytes(4)
    addresses = bytes((192, 0, 2, 17)) + bytes((192, 0, 2, 3)) + bytes(4)
    return head + addresses + MAC.ljust(16, b"\0") + bytes(64) + file.ljust(128, b"\0") + COOKIE + options


def test_the_question_has_the_layout_of_the_rfc() -> None:
    """Op, card, transaction, broadcast flag, cookie, and the message type first of the options."""
    asked = discover(0x01020304, MAC)
    assert asked[:12] == bytes((1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0x80, 0))
    assert asked[28:34] == MAC
    assert asked[236:243] == COOKIE + bytes((53, 1, 1))
    assert asked[-1] == 255


def test_an_offer_is_read() -> None:
    """Server by its identifier, else by the next server; the file by its option, else from the head; no padding."""
    options = bytes((0, 53, 1, 2, 54, 4, 192, 0, 2, 9, 255))
    found = parse_offer(offer(7, options, file=b"pxelinux.0"), 7)
    assert found is not None
    assert (found.server, found.address, found.file) == (
        IPv4Address("192.0.2.9"),
        IPv4Address("192.0.2.17"),
        "pxelinux.0",
    )
    named = parse_offer(offer(7, bytes((53, 1, 2, 67, 5)) + b"a.efi" + bytes((255,)), file=b"pxelinux.0"), 7)
    assert named is not None
    assert named.file == "a.efi"
    unnamed = parse_offer(offer(7, bytes((53, 1, 2, 255))), 7)
    assert unnamed is not None
    assert unnamed.server == unnamed.next_server == IPv4Address("192.0.2.3")


@pytest.mark.parametrize(
    "message",
    [
        offer(8, bytes((53, 1, 2, 255))),
        offer(7, bytes((53, 1, 5, 255))),
        offer(7, bytes((53, 1, 2, 255)), op=1),
        offer(7, b""),
    ],
)
def test_what_is_not_our_offer_is_passed_over(message: bytes) -> None:
    """Another's transaction, an acknowledgement, a question, a message of no type."""
    assert parse_offer(message, 7) is None


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"short", "too few"),
        (offer(7, b"")[:-4] + b"none", "magic"),
        (offer(7, bytes((53, 9, 2))), "beyond its end"),
        (offer(7, bytes((53,))), "beyond its end"),
        (offer(7, bytes((53, 1, 2, 54, 1, 9, 255))), "no address"),
    ],
)
def test_noise_is_reported_as_noise(message: bytes, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        parse_offer(message, 7)
