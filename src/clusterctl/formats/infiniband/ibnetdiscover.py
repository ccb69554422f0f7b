"""`ibnetdiscover` and `ibnetdiscover -p` (infiniband-diags) → Fabric.

Text that is empty, cut off, or names one GUID twice is an error with its line, never a smaller fabric. Tabs may be lost
(`Switch41 "S-…"`); port numbers beyond the front panel and `2x` widths are normal. `-p` prints one port per line and
identifies adapters by their port GUID:

    SW    30  1 0x00000000000000a1 4x NDR - CA     4  1 0x00000000000000b2 ( 'leaf-1' - 'node001 mlx5_0' )
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import LANE_GBPS, Device, DeviceKind, Fabric, PortId
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of
from clusterctl.formats.infiniband.common import Assembly, LinkEnd, PortLine, content_lines, joined, not_understood

_KINDS = {"Switch": DeviceKind.SWITCH, "Ca": DeviceKind.CA, "Rt": DeviceKind.ROUTER}
_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=0x([0-9a-fA-F]{1,16})\b")
_DEVICE = re.compile(
    r'(Switch|Ca|Rt)\s*([0-9]{1,5})\s*"[SHR]-([0-9a-fA-F]{16})"\s*#\s*"(.*)"'
    r"(?:\s*(?:base|enhanced) port 0 lid ([0-9]{1,5}))?"
)
_PORT = re.compile(
    r"\[([0-9]{1,5})\](?:\[ext [0-9]+\])?(?:\(([0-9a-fA-F]{1,16})\))?\s*"
    r'"[SHR]-([0-9a-fA-F]{16})"\[([0-9]{1,5})\](?:\[ext [0-9]+\])?(?:\([0-9a-fA-F]+\))?\s*'
    r'#\s*(?:lid ([0-9]{1,5}) lmc [0-9]+ )?".*"\s*lid [0-9]+ ([0-9]{1,3})x([A-Z0-9?]+)\s*$'
)
_REMEDY = "read the fabric again, and keep the whole output of ibnetdiscover"


@dataclass(slots=True)
class _Reader:
    """State while the text is read."""

    file: str
    devices: dict[Guid, Device] = field(default_factory=dict)
    declared: dict[Guid, int] = field(default_factory=dict)
    seen: dict[PortId, LinkEnd] = field(default_factory=dict)
    port_guids: dict[Guid, dict[int, Guid]] = field(default_factory=dict)
    owners: dict[Guid, Guid] = field(default_factory=dict)
    lids: dict[Guid, list[int]] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    current: Guid | None = None
    cut: Guid | None = None

    def error(self, line: int, message: str) -> ParseError:
        where = f"{self.file}:{line}" if line else self.file
        return ParseError(message, where=where, remedy=_REMEDY)

    def read(self, number: int, text: str) -> None:
        """Read one line."""
        if text.startswith("["):
            self._port(number, text)
        elif match := _DEVICE.match(text):
            self._device(number, match)
        elif match := _ATTRIBUTE.match(text):
            self.attributes[match[1]] = match[2]
        else:
            raise self.error(number, not_understood(text))

    def _device(self, number: int, match: re.Match[str]) -> None:
        guid = Guid(match[3].lower())
        if guid in self.declared:
            message = f"duplicate GUID {guid}, first on line {self.declared[guid]}: links of two devices are mixed up"
            raise self.error(number, message)
        system = self.attributes.get("sysimgguid")
        self.devices[guid] = Device(
            guid=guid,
            kind=_KINDS[match[1]],
            description=match[4].strip(),
            ports=int(match[2]),
            device_id=int(self.attributes.get("devid", "0"), 16),
            system_guid=guid_of(system) if system else None,
        )
        self.declared[guid] = number
        if match[5]:
            self.lids[guid] = [int(match[5])]
        self.attributes = {}
        self.current = guid

    def _port(self, number: int, text: str) -> None:
        match = _PORT.match(text)
        if match is None:
            raise self.error(number, f"port line cut off or not understood: {text[:80]!r}")
        if self.current is None:
            raise self.error(number, "a port line before any device")
        if match[7] not in LANE_GBPS:
            raise self.error(number, f"unknown link speed {match[7]!r}; known: {', '.join(LANE_GBPS)}")
        port = PortId(self.current, int(match[1]))
        if port in self.seen:
            raise self.error(number, f"port {port.number} a second time, first on line {self.seen[port].line}")
        if match[2]:
            self._portguid_of(number, port, guid_of(match[2]))
        if match[5]:
            self.lids.setdefault(port.guid, []).append(int(match[5]))
        peer = PortId(Guid(match[3].lower()), int(match[4]))
        self.seen[port] = LinkEnd(peer, int(match[6]), match[7], number)

    def complete_cut_line(self) -> None:
        """Take the port of a cut off last line from its far end, where exactly one names a port of the device."""
        unconfirmed = [
            (end.peer, port)
            for port, end in self.seen.items()
            if end.peer.guid == self.cut and end.peer not in self.seen
        ]
        if len(unconfirmed) == 1:
            port, peer = unconfirmed[0]
            self.seen[port] = replace(self.seen[peer], peer=peer)

    def _portguid_of(self, number: int, port: PortId, guid: Guid) -> None:
        owner = self.owners.setdefault(guid, port.guid)
        if owner != port.guid:
            raise self.error(number, f"duplicate port GUID {guid}: it also belongs to device {owner}")
        self.port_guids.setdefault(port.guid, {})[port.number] = guid


def parse_ibnetdiscover(text: str, *, file: str = "ibnetdiscover") -> Fabric:
    """Return the fabric that the text describes; `file` is only for messages. Raises ParseError."""
    reader = _Reader(file)
    lines = list(content_lines(text))
    for place, (number, line) in enumerate(lines, start=1):
        if place == len(lines) and line.startswith("[") and not _PORT.match(line):
            reader.cut = reader.current
        else:
            reader.read(number, line)
    if reader.cut is not None:
        reader.complete_cut_line()
    _require_complete(reader, text)
    return Fabric(_completed(reader), joined(reader.seen, reader.devices, reader.error))


def _require_complete(reader: _Reader, text: str) -> None:
    """Raise ParseError where devices or links are missing: output that is cut off is not a smaller fabric."""
    if not reader.devices:
        raise reader.error(0, "no device in it: empty or cut off output is not an empty fabric")
    linked = {port.guid for port in reader.seen}
    for guid, number in reader.declared.items():
        if guid not in linked:
            raise reader.error(number, f"device {guid} has no link, so no sweep can have found it: output cut off")
    if reader.attributes:
        raise reader.error(len(text.splitlines()), "it ends in the middle of a device: output cut off")


def _completed(reader: _Reader) -> dict[Guid, Device]:
    """Return the devices with the port GUIDs and LIDs of their port lines."""
    return {
        guid: replace(
            device,
            port_guids=tuple(reader.port_guids.get(guid, {}).values()),
            lids=tuple(reader.lids.get(guid, ())),
        )
        for guid, device in reader.devices.items()
    }


_PORT_KINDS = {"SW": DeviceKind.SWITCH, "CA": DeviceKind.CA, "RT": DeviceKind.ROUTER}
_END = r"\s+(?P<{0}lid>[0-9]{{1,5}})\s+(?P<{0}port>[0-9]{{1,5}})\s+0x(?P<{0}guid>[0-9a-fA-F]{{1,16}})\s+"
LINE = re.compile(
    rf"(?P<kind>SW|CA|RT){_END.format('')}(?P<width>[0-9]{{1,3}})x\s+(?P<speed>\S+)\s+"
    rf"(?:-\s+(?:SW|CA|RT){_END.format('peer')}\(\s'(?P<name>.*?)'\s-\s'.*'\s\)|'?(?P<alone>.*?)'?)$"
)


def parse_ibnetdiscover_ports(text: str, *, file: str = "ibnetdiscover -p") -> Fabric:
    """Return the fabric of `-p`; `file` is only for messages. Raises ParseError with the line."""
    assembly = Assembly(file, "ibnetdiscover -p")
    for number, line in content_lines(text):
        match = LINE.match(line)
        if match is None:
            raise assembly.error(number, not_understood(line))
        port = PortId(guid_of(match["guid"]), int(match["port"]))
        name = match["alone"] if match["peerguid"] is None else match["name"]
        assembly.add(PortLine(port, _PORT_KINDS[match["kind"]], name.strip(), int(match["lid"])), number)
        if match["peerguid"] is not None:
            peer = PortId(guid_of(match["peerguid"]), int(match["peerport"]))
            assembly.link(port, peer, int(match["width"]), match["speed"], number)
    return assembly.fabric()
