"""Who else answers DHCP in the provisioning network: asked as an unknown machine that boots over the network."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Iterator

from clusterctl.fleet.errors import EnvironmentBrokenError, ParseError
from clusterctl.formats.dhcp import DhcpOffer, discover, parse_offer

SERVER_PORT, CLIENT_PORT = 67, 68
ASKED_TIMES = 2
PATIENCE_S = 2.0
"""Seconds in which servers answer one question; they may ping the address first, for a second."""
LARGEST = 65535
_LOCAL = 0x02


def offers(interface: str, *, patience_s: float = PATIENCE_S) -> tuple[DhcpOffer, ...]:
    """One offer of each server that offers an address to a card that nobody knows; no address is taken.

    Raises `EnvironmentBrokenError` where the network cannot be asked: no root, or no such interface.
    """
    mac = bytes((_LOCAL, *secrets.token_bytes(5)))
    try:
        with _client(interface) as client:
            found = [offer for _ in range(ASKED_TIMES) for offer in _ask(client, mac, patience_s)]
    except OSError as error:
        raise EnvironmentBrokenError(
            f"DHCP servers cannot be asked for: {error.strerror}", where=interface, remedy="run it as root (sudo)"
        ) from error
    return tuple({offer.server: offer for offer in found}.values())


def _client(interface: str) -> socket.socket:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        client.bind(("", CLIENT_PORT))
    except OSError:
        client.close()
        raise
    return client


def _ask(client: socket.socket, mac: bytes, patience_s: float) -> Iterator[DhcpOffer]:
    transaction = secrets.randbits(32)
    client.sendto(discover(transaction, mac), ("255.255.255.255", SERVER_PORT))
    until = time.monotonic() + patience_s
    while (left := until - time.monotonic()) > 0:
        client.settimeout(left)
        try:
            offer = parse_offer(client.recv(LARGEST), transaction)
        except (TimeoutError, ParseError):  # nobody more, or somebody's noise
            continue
        if offer is not None:
            yield offer
