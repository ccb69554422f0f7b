"""What `perfquery` and `perfquery -x` print, for one port or for many one after another → counters by port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.telemetry import HIGHEST, TRAFFIC, PortCounters
from clusterctl.fleet.fabric.topology import Fabric, PortId, PortState
from clusterctl.fleet.node import Guid
from clusterctl.formats.infiniband.common import not_understood

HEAD = re.compile(r"# Port (extended )?counters: Lid ([0-9]{1,5}) port ([0-9]{1,5})\b")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9]*):\.*(?:([0-9]{1,20})|0x[0-9a-fA-F]{1,16})$")
_LAST = {True: "PortXmitWait", False: "PortMulticastRcvPkts"}
"""What every table of PortCounters (True) has last; of an extended one, of what passes. Not every device has extended
error counters: of those that are not there nothing is known.
"""
_EVERY = 255
"""The port number that stands for the sum of all ports."""
_REMEDY = "run perfquery -x for each port again, as root, and keep all that it prints"


@dataclass(frozen=True, slots=True)
class _Table:
    port: PortId
    narrow: bool
    line: int
    values: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Reader:
    file: str
    devices: Mapping[int, Guid]
    tables: dict[PortId, _Table] = field(default_factory=dict)
    current: _Table | None = None

    def error(self, line: int, message: str) -> ParseError:
        return ParseError(message, where=f"{self.file}:{line}" if line else self.file, remedy=_REMEDY)

    def read(self, number: int, line: str) -> None:
        if head := HEAD.match(line):
            self._begin(number, head)
        elif (match := _FIELD.match(line)) and self.current is not None:
            if match[1] in self.current.values:
                raise self.error(number, f"{match[1]} a second time")
            if match[2] is not None:
                self.current.values[match[1]] = int(match[2])
        elif not line.startswith("# ") or line.startswith("# Port"):
            raise self.error(number, not_understood(line))

    def _begin(self, number: int, head: re.Match[str]) -> None:
        lid, port = int(head[2]), int(head[3])
        if port == _EVERY:
            raise self.error(number, "the sum of all ports: it names no link")
        if lid not in self.devices:
            raise self.error(
                number, f"the fabric has no LID {lid}: it was read at another time, or by a tool without LIDs"
            )
        self.current = _Table(PortId(self.devices[lid], port), head[1] is None, number)
        earlier = self.tables.setdefault(self.current.port, self.current)
        if earlier is not self.current:
            raise self.error(number, f"LID {lid} port {port} a second time, first on line {earlier.line}")


def parse_perfquery(text: str, fabric: Fabric, *, file: str = "perfquery") -> dict[PortId, PortCounters]:
    """The counters of the ports in it, whose LIDs `fabric` knows. Raises ParseError with the line."""
    lids = {lid: guid for guid, device in fabric.devices.items() for lid in device.lids}
    reader = _Reader(file, lids)
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line:
            reader.read(number, line)
    if not reader.tables:
        raise reader.error(0, "no port in it: nothing was read")
    for table in reader.tables.values():
        if _LAST[table.narrow] not in table.values:
            raise reader.error(table.line, f"{_LAST[table.narrow]} is missing: cut off")
    known = {*HIGHEST, *TRAFFIC}
    return {
        port: PortCounters({name: count for name, count in table.values.items() if name in known}, table.narrow)
        for port, table in reader.tables.items()
    }


_STATE_FIELD = re.compile(r"(\w+):\.*(.*)")
_NODE_GUID = re.compile(r"^Guid:\.+0x([0-9a-f]{1,16})$", re.MULTILINE)
_STATE_HEAD = "Switch PortInfo:"
_RUN_BY_HAND = "run the command by hand, and look at what it prints"


def parse_ibportstate(text: str, *, file: str) -> PortState:
    """The switch port's own states; its peer's, which follow where it answers, are not looked at. Raises ParseError."""
    lines = text.splitlines()
    if _STATE_HEAD not in lines:
        raise ParseError("it tells of no switch port", where=file, remedy=_RUN_BY_HAND)
    fields: dict[str, str] = {}
    for line in lines[lines.index(_STATE_HEAD) + 1 :]:
        match = _STATE_FIELD.fullmatch(line)
        if match is not None:
            fields.setdefault(match[1], match[2].strip())
        elif not line.startswith("#"):
            break
        if line == "Peer PortInfo:":
            break
    logical, physical = fields.get("LinkState", ""), fields.get("PhysLinkState", "")
    if not logical or not physical:
        raise ParseError("LinkState or PhysLinkState is missing: output cut off", where=file, remedy=_RUN_BY_HAND)
    return PortState(logical, physical)


def parse_nodeinfo_guid(text: str, *, file: str) -> Guid:
    """Which device answered. Raises ParseError."""
    match = _NODE_GUID.search(text)
    if match is None:
        raise ParseError("it tells no node GUID", where=file, remedy=_RUN_BY_HAND)
    return Guid(f"{int(match[1], 16):016x}")
