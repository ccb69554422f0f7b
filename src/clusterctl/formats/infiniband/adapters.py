"""InfiniBand adapters of a host: `ibstat`, and the PSIDs of the node's built-in `adapter-boards`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.formats.documents import read_document

_CA = re.compile(r"^CA '(?P<name>[^']+)'$")
_RATE = re.compile(r"[0-9]{1,6}")
_PORT = re.compile(r"^\s+Port (?P<number>\d+):$")
_FIELD = re.compile(r"^\s+(?P<key>[A-Za-z][A-Za-z ]*): *(?P<value>.*)$")
_WHERE = "ibstat"


@dataclass(frozen=True, slots=True)
class IbPort:
    """A port: logical state (Active, Initializing, Armed, Down), physical state (LinkUp, Polling …), rate in Gb/s."""

    number: int
    state: str
    physical: str
    rate: int
    guid: str
    link_layer: str

    @property
    def up(self) -> bool:
        return self.state == "Active" and self.physical == "LinkUp"


@dataclass(frozen=True, slots=True)
class Adapter:
    """A channel adapter: `name` as perftest's `-d` takes it, `model` the Mellanox part (`MT4129` is ConnectX-7)."""

    name: str
    model: str
    firmware: str
    node_guid: str
    ports: tuple[IbPort, ...]

    @property
    def infiniband(self) -> bool:
        """False for an adapter in Ethernet mode (a storage or management NIC)."""
        return any(port.link_layer == "InfiniBand" for port in self.ports)


@functools.lru_cache(maxsize=16)
def parse_ibstat(text: str) -> tuple[Adapter, ...]:
    """Return all adapters. Raises `ParseError` for truncated output, or a missing or unknown line or field."""
    blocks: list[tuple[str, list[str]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _CA.match(line):
            blocks.append((head["name"], []))
        elif blocks and (_PORT.match(line) or _FIELD.match(line)):
            blocks[-1][1].append(line)
        elif line.strip():
            raise ParseError(f"line not understood: {line.strip()[:100]!r}", where=f"{_WHERE}:{number}")
    if not blocks:
        raise ParseError("no adapter in it", where=_WHERE)
    return tuple(sorted((_adapter(name, lines) for name, lines in blocks), key=lambda a: natural_key(a.name)))


def _adapter(name: str, lines: list[str]) -> Adapter:
    head, *ports = _split_ports(lines)
    fields = _fields(head)
    declared = int(_need(fields, "Number of ports", name))
    if declared != len(ports):
        raise ParseError(f"{name} has {declared} ports, {len(ports)} are listed", where=_WHERE)
    return Adapter(
        name=name,
        model=fields.get("CA type", ""),
        firmware=fields.get("Firmware version", ""),
        node_guid=_guid(_need(fields, "Node GUID", name)),
        ports=tuple(_port(name, lines) for lines in ports),
    )


def _split_ports(lines: list[str]) -> Iterator[list[str]]:
    """Yield the adapter's own lines, then those of each port, which begin with `Port n:`."""
    block: list[str] = []
    for line in lines:
        if _PORT.match(line):
            yield block
            block = []
        block.append(line)
    yield block


def _port(adapter: str, lines: list[str]) -> IbPort:
    head = _PORT.match(lines[0])
    fields = _fields(lines[1:])
    rate = _need(fields, "Rate", adapter)
    if head is None or not _RATE.fullmatch(rate):
        raise ParseError(f"{adapter} has the rate {rate!r}, not a number", where=_WHERE)
    return IbPort(
        number=int(head["number"]),
        state=_need(fields, "State", adapter),
        physical=_need(fields, "Physical state", adapter),
        rate=int(rate),
        guid=_guid(_need(fields, "Port GUID", adapter)),
        link_layer=_need(fields, "Link layer", adapter),
    )


def _fields(lines: list[str]) -> dict[str, str]:
    return {m["key"]: m["value"].strip() for m in map(_FIELD.match, lines) if m}


def _need(fields: dict[str, str], key: str, adapter: str) -> str:
    if key not in fields:
        raise ParseError(f"{adapter} lacks the line {key!r}: output cut off", where=_WHERE)
    return fields[key]


def _guid(text: str) -> str:
    return text.removeprefix("0x").lower()


@dataclass(frozen=True, slots=True)
class _Adapter:
    name: str
    psid: str | None


@dataclass(frozen=True, slots=True)
class _Document:
    adapters: tuple[_Adapter, ...]


def parse_adapter_boards(text: str) -> Mapping[str, str | None]:
    """Return the PSID by adapter (`mlx5_0`), None where unknown. Raises `ParseError` for another document."""
    document = read_document(_Document, text, "adapter-boards")
    return {adapter.name: adapter.psid for adapter in document.adapters}
