"""The document of the node's built-in `ethernet-links`: Ethernet ports and their counters, once or twice."""

from __future__ import annotations

from typing import Annotated

import pydantic

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import read_document

_WHERE = "ethernet-links"
Count = Annotated[int, pydantic.Field(ge=0)]


class EthernetPort(pydantic.BaseModel):
    """A port. `speed` in Mb/s; `member`: its bond uses it; `downs`: how often its carrier was lost.

    None: the kernel does not report it, or the port is in no bond.
    """

    name: Annotated[str, pydantic.Field(min_length=1)]
    up: bool
    speed: Count | None
    duplex: str | None
    bond: str
    member: bool | None
    downs: Count | None
    counters: dict[str, Count | None]


class EthernetReading(pydantic.BaseModel):
    """All ports at one time, in seconds of a monotonic clock."""

    at: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
    ports: tuple[EthernetPort, ...]


class _Document(pydantic.BaseModel):
    readings: tuple[EthernetReading, ...]


def parse_ethernet_links(text: str, count: int) -> tuple[EthernetReading, ...]:
    """Return the readings. Raises `ParseError` for another document, or another number of readings."""
    readings = read_document(_Document, text, _WHERE).readings
    if len(readings) != count:
        raise ParseError(f"{len(readings)} readings instead of {count}", where=_WHERE)
    return readings
