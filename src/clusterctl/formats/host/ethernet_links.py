"""The document of the node's built-in `ethernet-links`: Ethernet ports and their counters, once or twice."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Count, Figure, Text, read_document

_WHERE = "ethernet-links"


@dataclass(frozen=True, slots=True)
class EthernetPort:
    """A port. `speed` in Mb/s; `member`: its bond uses it; `downs`: how often its carrier was lost.

    None: the kernel does not report it, or the port is in no bond.
    """

    name: Text
    up: bool
    speed: Count | None
    duplex: str | None
    bond: str
    member: bool | None
    downs: Count | None
    counters: dict[str, Count | None]


@dataclass(frozen=True, slots=True)
class EthernetReading:
    """All ports at one time, in seconds of a monotonic clock."""

    at: Figure
    ports: tuple[EthernetPort, ...]


@dataclass(frozen=True, slots=True)
class _Document:
    readings: tuple[EthernetReading, ...]


def parse_ethernet_links(text: str, count: int) -> tuple[EthernetReading, ...]:
    """Return the readings. Raises `ParseError` for another document, or another number of readings."""
    readings = read_document(_Document, text, _WHERE).readings
    if len(readings) != count:
        raise ParseError(f"{len(readings)} readings instead of {count}", where=_WHERE)
    return readings
