"""DHCPv4 messages (RFC 2131, options of RFC 2132), as far as they are needed to find the DHCP servers of a network."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address

from clusterctl.fleet.errors import ParseError

_HEAD = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s4s")
_MAGIC = bytes((99, 130, 83, 99))
_REQUEST, _REPLY = 1, 2
_ETHERNET = 1
_BROADCAST = 0x8000
_MESSAGE_TYPE, _SERVER, _WANTED, _CLASS, _FILE, _PAD, _END = 53, 54, 55, 60, 67, 0, 255
_DISCOVER, _OFFER = 1, 2
_ROUTER_DNS_TFTP_FILE = (3, 6, 66, _FILE)
_WHERE = "a DHCP message"


@dataclass(frozen=True, slots=True)
class DhcpOffer:
    """The offer of a server: an address for the requester, and the file to boot, where it names one (`file`)."""

    server: IPv4Address
    address: IPv4Address
    next_server: IPv4Address
    file: str


def discover(transaction: int, mac: bytes) -> bytes:
    """Return a DHCPDISCOVER of the card `mac` (6 bytes) as a PXE client of UEFI; it asks for answers by broadcast."""
    addresses = [bytes(4)] * 4
    head = _HEAD.pack(
        _REQUEST, _ETHERNET, len(mac), 0, transaction, 0, _BROADCAST, *addresses, mac, b"", b"", _MAGIC
    )  # fmt: skip
    options = (
        (_MESSAGE_TYPE, bytes((_DISCOVER,))),
        (_CLASS, b"PXEClient:Arch:00007:UNDI:003000"),
        (_WANTED, bytes(_ROUTER_DNS_TFTP_FILE)),
    )
    return head + b"".join(bytes((code, len(value))) + value for code, value in options) + bytes((_END,))


def parse_offer(message: bytes, transaction: int) -> DhcpOffer | None:
    """Return the offer; None where it is none for that transaction. Raise `ParseError` where it is no DHCP message."""
    if len(message) < _HEAD.size:
        raise ParseError(f"{len(message)} bytes are too few", where=_WHERE)
    op, _, _, _, number, _, _, _, offered, following, _, _, _, file, magic = _HEAD.unpack_from(message)
    if magic != _MAGIC:
        raise ParseError("it has no magic cookie", where=_WHERE)
    options = dict(_options(message[_HEAD.size :]))
    if op != _REPLY or number != transaction or options.get(_MESSAGE_TYPE) != bytes((_OFFER,)):
        return None
    server = options.get(_SERVER, following)
    if len(server) != len(following):
        raise ParseError("its server identifier is no address", where=_WHERE)
    named = options.get(_FILE, file).partition(b"\0")[0].decode("ascii", "replace")
    return DhcpOffer(IPv4Address(server), IPv4Address(offered), IPv4Address(following), named)


def _options(rest: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(rest) and rest[position] != _END:
        if rest[position] == _PAD:
            position += 1
            continue
        if position + 2 > len(rest) or position + 2 + rest[position + 1] > len(rest):
            raise ParseError("an option goes beyond its end", where=_WHERE)
        length = rest[position + 1]
        yield rest[position], rest[position + 2 : position + 2 + length]
        position += 2 + length
