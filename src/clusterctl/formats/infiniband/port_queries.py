"""Queries of ports: `perfquery [-x]` for one or many ports, `ibportstate … query`, `smpquery nodeinfo`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.telemetry import HIGHEST, TRAFFIC, PortCounters
from clusterctl.fleet.fabric.topology import Fabric, PortId, PortState
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of
from clusterctl.formats.infiniband.common import content_lines, not_understood

HEAD = re.compile(r"# Port (extended )?counters: Lid ([0-9]{1,5}) port ([0-9]{1,5})\b")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9]*):\.*(?:([0-9]{1,20})|0x[0-9a-fA-F]{1,16})$")
_LAST = {True: "PortXmitWait", False: "PortMulticastRcvPkts"}
"""Last counter of a table, by whether it is a plain PortCounters; of an extended one, the last traffic counter. Devices
without extended error counters do not print them: they are unknown.
"""
_EVERY = 255
"""Port number of the sum over all ports."""
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
            raise self.error(number, "the sum over all ports belongs to no link")
        if lid not in self.devices:
            raise self.error(
                number,
                f"the fabric has no LID {lid}: the readings are not of the same time, or the tool prints no LIDs",
            )
        self.current = _Table(PortId(self.devices[lid], port), head[1] is None, number)
        earlier = self.tables.setdefault(self.current.port, self.current)
        if earlier is not self.current:
            raise self.error(number, f"LID {lid} port {port} a second time, first on line {earlier.line}")


def parse_perfquery(text: str, fabric: Fabric, *, file: str = "perfquery") -> dict[PortId, PortCounters]:
    """Return the counters of all ports in the text; `fabric` maps LIDs. Raises ParseError with the line."""
    lids = {lid: guid for guid, device in fabric.devices.items() for lid in device.lids}
    reader = _Reader(file, lids)
    for number, line in content_lines(text, comment=""):
        reader.read(number, line)
    if not reader.tables:
        raise reader.error(0, "no port in it: nothing was read")
    for table in reader.tables.values():
        if _LAST[table.narrow] not in table.values:
            raise reader.error(table.line, f"{_LAST[table.narrow]} is missing: output cut off")
    known = {*HIGHEST, *TRAFFIC}
    return {
        port: PortCounters({name: count for name, count in table.values.items() if name in known}, table.narrow)
        for port, table in reader.tables.items()
    }


_STATE_FIELD = re.compile(r"(\w+):\.*(.*)")
_NODE_GUID = re.compile(r"^Guid:\.+0x([0-9a-f]{1,16})$", re.MULTILINE)
_STATE_HEAD = "Switch PortInfo:"
_RUN_BY_HAND = "run the command by hand and check its output"


def parse_ibportstate(text: str, *, file: str) -> PortState:
    """Return the states of the switch port itself; those of a peer are ignored. Raises ParseError."""
    lines = text.splitlines()
    if _STATE_HEAD not in lines:
        raise ParseError("no switch port in it", where=file, remedy=_RUN_BY_HAND)
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
    """Return the GUID of the device that answered. Raises ParseError."""
    match = _NODE_GUID.search(text)
    if match is None:
        raise ParseError("no node GUID in it", where=file, remedy=_RUN_BY_HAND)
    return guid_of(match[1])
