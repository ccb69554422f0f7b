"""`ibqueryerrors` (infiniband-diags): error counters of a fabric's ports; with `--counters` what passed them.

Without a subnet manager it prints one line on stderr and exits with 0: only its `## Summary` proves that ports were
read. Ports that it does not list have zeros, provided that it checked all devices of the fabric. A suppressed counter,
or one with a threshold, is unknown for a port that does not show it.

Each call prints its own summary. Both outputs may follow each other in one text. The output of `--counters` has each
port and no error counter: what it does not show is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.telemetry import HIGHEST, PortCounters
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of
from clusterctl.formats.infiniband.common import content_lines, not_understood

_DEVICE = re.compile(r"Errors for .*")
_TRAFFIC = re.compile(r"Data Counters for .*")
_PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port (ALL|[0-9]{1,5}):(.*)$")
_COUNTER = re.compile(r"\s*\[(\w+) == ([0-9]{1,20})(?: \([^)]*\))?\]")
_DETAIL = re.compile(r"\s*(?:\[?\w+ == [0-9]{1,20}|Link info:)")
_SUMMARY = re.compile(r"## Summary: ([0-9]{1,9}) nodes checked, ([0-9]{1,9}) bad nodes found")
_PORTS = re.compile(r"##\s+([0-9]{1,9}) ports checked, ([0-9]{1,9}) ports have errors beyond threshold")
_SILENT = re.compile(r"##\s+([0-9]{1,9}) (?:PMA )?query failures")
_HIDES = re.compile(r"## (?:Thresholds|Suppressed):(.*)")
_REMEDY = "run ibqueryerrors on the whole fabric again, as root, and keep all that it prints"


@dataclass(slots=True)
class _Reader:
    file: str
    owners: Mapping[Guid, Guid]
    counters: dict[PortId, Mapping[str, int]] = field(default_factory=dict)
    traffic: dict[PortId, Mapping[str, int]] = field(default_factory=dict)
    in_traffic: bool = False
    errors_read: bool = False
    nodes: int | None = None
    ports: int | None = None
    bad: int = 0
    hidden: set[str] = field(default_factory=set)

    def error(self, line: int, message: str) -> ParseError:
        return ParseError(message, where=f"{self.file}:{line}" if line else self.file, remedy=_REMEDY)

    def read(self, number: int, line: str) -> None:
        if match := _PORT.match(line):
            self._port(number, match)
        elif _TRAFFIC.match(line):
            self.in_traffic = True
        elif match := _SUMMARY.match(line):
            found = int(match[1])
            self.nodes = found if self.nodes is None else min(found, self.nodes)
            self.errors_read = self.errors_read or not self.in_traffic
            self.in_traffic = False
        elif match := _PORTS.match(line):
            self.ports, self.bad = int(match[1]), max(self.bad, int(match[2]))
        elif match := _SILENT.match(line):
            raise self.error(number, f"{match[1]} queries failed: the counters of those ports are unknown")
        elif match := _HIDES.match(line):
            self.hidden |= {name for name in HIGHEST if name in match[1]}
        elif not _is_skipped(line):
            raise self.error(number, not_understood(line))

    def _port(self, number: int, match: re.Match[str]) -> None:
        if match[2] == "ALL":  # the sum over a switch's ports, which follow
            return
        values, rest = {}, match[3]
        while found := _COUNTER.match(rest):
            values[found[1]] = int(found[2])
            rest = rest[found.end() :]
        if rest.strip() or not values:
            raise self.error(number, f"counters not understood: {rest.strip()[:60]!r}")
        guid = guid_of(match[1])
        owner = self.owners.get(guid)
        if owner is None:
            raise self.error(number, f"the fabric has no device {guid}: the two readings are not of the same time")
        port = PortId(owner, int(match[2]))
        section = self.traffic if self.in_traffic else self.counters
        if port in section:
            raise self.error(number, f"port {port.number} of {guid} a second time: duplicate GUID?")
        section[port] = values


def _is_skipped(line: str) -> bool:
    comment = line.startswith("#") and not line.startswith("##")
    return comment or _DEVICE.match(line) is not None or _DETAIL.match(line) is not None


def parse_ibqueryerrors(text: str, fabric: Fabric, *, file: str = "ibqueryerrors") -> dict[PortId, PortCounters]:
    """Return the counters of every linked port, as far as they were read. Raises ParseError with the line."""
    reader = _Reader(file, owners(fabric))
    for number, line in content_lines(text, comment=""):
        reader.read(number, line)
    _require_complete(reader, fabric)
    zeros = {name: 0 for name in HIGHEST if name not in reader.hidden} if reader.errors_read else {}
    ports = {end for link in fabric.links for end in (link.a, link.b)} | reader.counters.keys()
    return {
        port: PortCounters({**zeros, **reader.traffic.get(port, {}), **reader.counters.get(port, {})})
        for port in sorted(ports)
    }


def _require_complete(reader: _Reader, fabric: Fabric) -> None:
    """Raise ParseError where the summary, a port or a device is missing."""
    if reader.nodes is None or reader.ports is None or reader.in_traffic:
        raise reader.error(
            0, "no `## Summary`: nothing was read (is a subnet manager running?), or the output is cut off"
        )
    if reader.bad > len(reader.counters):
        message = f"{reader.bad} ports have errors, {len(reader.counters)} are listed: output cut off"
        raise reader.error(0, message)
    if reader.nodes < len(fabric.devices):
        message = f"it checked {reader.nodes} of the fabric's {len(fabric.devices)} devices: the others are unknown"
        raise reader.error(0, message)


def owners(fabric: Fabric) -> dict[Guid, Guid]:
    """Return the device GUID of each device and port GUID."""
    found = {guid: guid for guid in fabric.devices}
    for device in fabric.devices.values():
        for guid in device.port_guids:
            found.setdefault(guid, device.guid)
    return found
