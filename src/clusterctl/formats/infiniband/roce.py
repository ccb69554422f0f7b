"""Adapters in Ethernet mode: the document of the node's built-in `roce-ports`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated

from clusterctl.formats.documents import Text, Within, read_document

Priority = Annotated[int, Within(ge=0, le=7)]
_V2 = "RoCE v2"
_MAPPED = "0000:0000:0000:0000:0000:ffff:"
"""How a GID begins that is made of an IPv4 address."""
_LINK_LOCAL = "fe80:"


@dataclass(frozen=True, slots=True)
class RocePort:
    """A port. `gid_index`: that of the GID which RoCE v2 traffic uses, of an IPv4 address if there is one.

    `pfc` and `ecn`: the priorities with flow control and with ECN; None where the host does not report them.
    """

    name: str
    interface: str | None
    mtu: int | None
    gid_index: int | None
    pfc: tuple[int, ...] | None
    ecn: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class _Gid:
    index: Annotated[int, Within(ge=0, le=65535)]
    gid: str
    kind: str | None
    interface: str | None


@dataclass(frozen=True, slots=True)
class _Port:
    name: Text
    interface: str | None
    mtu: Annotated[int, Within(gt=0, le=2**20)] | None
    gids: tuple[_Gid, ...]
    pfc: tuple[Priority, ...] | None
    ecn: tuple[Priority, ...] | None


@dataclass(frozen=True, slots=True)
class _Document:
    ports: tuple[_Port, ...]


@functools.lru_cache(maxsize=16)
def parse_roce_ports(text: str) -> tuple[RocePort, ...]:
    """Return all ports in Ethernet mode. Raises `ParseError` for another document."""
    document = read_document(_Document, text, "roce-ports")
    return tuple(_port(port) for port in document.ports)


def _port(port: _Port) -> RocePort:
    routable = [gid for gid in port.gids if gid.kind == _V2 and not gid.gid.lower().startswith(_LINK_LOCAL)]
    best = min(routable, key=lambda gid: (not gid.gid.lower().startswith(_MAPPED), gid.index), default=None)
    return RocePort(port.name, port.interface, port.mtu, best.index if best else None, port.pfc, port.ecn)
