"""What readers of InfiniBand tools share: error output in a text, lines, links from both ends, ports to a fabric."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import LANE_GBPS, Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid

_ERROR_OUTPUT = {
    "duplicate": "two devices have the same GUID, and tools silently drop one of them: repair that first",
    "ibpanic": "the tool stopped",
    "iberror": "the tool failed",
    "ibwarn": "the tool printed a warning",
    "can't": "the tool failed",
    "failed": "the tool failed",
    "err ": "an error of a log",
}


def not_understood(line: str) -> str:
    """Return the message for a line that is not understood: the tool's error output where it is that."""
    lowered = line.lower()
    why = next((why for sign, why in _ERROR_OUTPUT.items() if sign in lowered), "line not understood")
    return f"{why}: {line[:80]!r}"


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """A link as one end reports it: the far end, lanes, speed (one of `LANE_GBPS`), and the line of the text."""

    peer: PortId
    width: int
    speed: str
    line: int


def joined(
    ends: Mapping[PortId, LinkEnd], devices: Container[Guid], error: Callable[[int, str], ParseError]
) -> tuple[Link, ...]:
    """Return each link once, at its slower end's rate. Raises what `error` makes of a line and a message.

    A missing end means that the text was cut off; it is never a smaller fabric.
    """
    links = []
    for port, seen in ends.items():
        if seen.peer.guid not in devices:
            raise error(seen.line, f"the far end {seen.peer.guid} is not described: output cut off")
        other = ends.get(seen.peer)
        if other is None or other.peer != port or seen.peer == port:
            raise error(seen.line, f"{seen.peer.guid} port {seen.peer.number} does not confirm this link")
        if port < seen.peer:
            slower = min(seen, other, key=lambda end: end.width * LANE_GBPS[end.speed])
            links.append(Link(port, seen.peer, slower.width, slower.speed))
    return tuple(links)


def content_lines(text: str, comment: str = "#") -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is neither blank nor a comment (empty: no comments)."""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if line and not (comment and line.startswith(comment)):
            yield number, line


@dataclass(frozen=True, slots=True)
class PortLine:
    """A port as its line reports it. `kind` is None where the tool does not print it."""

    port: PortId
    kind: DeviceKind | None
    description: str
    lid: int


@dataclass(slots=True)
class Assembly:
    """Collects ports while they are read; `fabric` builds the result."""

    file: str
    tool: str
    lines: dict[PortId, tuple[PortLine, int]] = field(default_factory=dict)
    ends: dict[PortId, LinkEnd] = field(default_factory=dict)

    def error(self, line: int, message: str) -> ParseError:
        where = f"{self.file}:{line}" if line else self.file
        return ParseError(
            message, where=where, remedy=f"read the fabric again, and keep the whole output of {self.tool}"
        )

    def add(self, seen: PortLine, line: int) -> None:
        """Add a port, linked or not."""
        if seen.port in self.lines:
            raise self.error(line, f"port {seen.port.number} a second time, first on line {self.lines[seen.port][1]}")
        self.lines[seen.port] = seen, line

    def link(self, port: PortId, peer: PortId, width: int, speed: str, line: int) -> None:
        """Add the link that a port reports."""
        if speed not in LANE_GBPS:
            raise self.error(line, f"unknown link speed {speed!r}; known: {', '.join(LANE_GBPS)}")
        self.ends[port] = LinkEnd(peer, width, speed, line)

    def fabric(self) -> Fabric:
        """Return the fabric. Raises ParseError where there is no link, or an end of a link is missing."""
        if not self.ends:
            raise self.error(0, "no link in it: empty or cut off output is not an empty fabric")
        devices = self._devices()
        return Fabric(devices, joined(self.ends, devices, self.error))

    def _devices(self) -> dict[Guid, Device]:
        ports: dict[Guid, list[tuple[PortLine, int]]] = {}
        for seen, line in self.lines.values():
            ports.setdefault(seen.port.guid, []).append((seen, line))
        return {guid: self._device(guid, members) for guid, members in ports.items()}

    def _device(self, guid: Guid, ports: list[tuple[PortLine, int]]) -> Device:
        """Return a device. Each port of an adapter has its own GUID, so a device with several ports is a switch."""
        first, begun = ports[0]
        for seen, line in ports:
            if (seen.kind, seen.description, seen.lid) != (first.kind, first.description, first.lid):
                raise self.error(line, f"duplicate GUID {guid}: on line {begun} it belongs to another device")
        kind = first.kind or (DeviceKind.SWITCH if len(ports) > 1 else DeviceKind.CA)
        own = () if kind is DeviceKind.SWITCH else (guid,)
        most = max(seen.port.number for seen, _ in ports)
        return Device(guid, kind, first.description, most, port_guids=own, lids=(first.lid,) if first.lid else ())
