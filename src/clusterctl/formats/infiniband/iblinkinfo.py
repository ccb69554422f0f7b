"""`iblinkinfo` and `iblinkinfo -l` (infiniband-diags) → Fabric.

    0x00000000000000a1 "    leaf-1"   30    1[  ] ==( 4X  106.25 Gbps Active/  LinkUp)==>  0x00000000000000b2    4 …

Without `-l` a device precedes its ports, and far ends have a LID only. Adapters are identified by their port GUID.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, PortId
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of
from clusterctl.formats.infiniband.common import Assembly, PortLine, content_lines, not_understood

_SPEEDS = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "10.0 Gbps (FDR10)": "FDR10",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}
"""Signalling rate of a lane in Gb/s; FDR10 is printed by name."""
_KINDS = {"Switch": DeviceKind.SWITCH, "CA": DeviceKind.CA, "Router": DeviceKind.ROUTER}
HEAD = re.compile(r"(Switch|CA|Router):\s(?:0x([0-9a-fA-F]{1,16})\s)?(.*):$")
_GUID = r"0x(?P<{0}guid>[0-9a-fA-F]{{1,16}})"
_PORT = r"(?P<{0}lid>[0-9]{{1,5}})\s+(?P<{0}port>[0-9]{{1,5}})"
LINE = re.compile(
    rf'(?:{_GUID.format("")}\s+)?(?:"(?P<name>.*)"\s+)?{_PORT.format("")}\[[\s0-9]*\]\s+==\(\s*'
    r"(?:(?P<width>[0-9]{1,3})X\s+(?P<speed>[0-9.]+)\sGbps(?P<fdr10>\s\(FDR10\))?\s+)?(?P<state>\w+)/[^)]*\)==>\s*"
    rf'(?:(?:{_GUID.format("peer")}\s+)?{_PORT.format("peer")})?\s*\[[\s0-9]*\]\s+"(?P<peername>.*)"\s+\(.*\)$'
)


@dataclass(frozen=True, slots=True)
class _Linked:
    """A port with its link up; the far end by GUID, or only by LID."""

    port: PortId
    peer_guid: Guid | None
    peer_lid: int
    peer_port: int
    width: int
    speed: str
    line: int


@dataclass(slots=True)
class _Reader:
    assembly: Assembly
    owners: dict[int, Guid] = field(default_factory=dict)
    linked: list[_Linked] = field(default_factory=list)
    head: re.Match[str] | None = None

    def read(self, number: int, line: str) -> None:
        if head := HEAD.match(line):
            self.head = head
        elif match := LINE.match(line):
            self._port(match, number)
        else:
            raise self.assembly.error(number, not_understood(line))

    def _port(self, match: re.Match[str], number: int) -> None:
        guid, kind, name = match["guid"], None, match["name"]
        if name is None:
            if self.head is None:
                raise self.assembly.error(number, "a port line before any device")
            kind, name, guid = _KINDS[self.head[1]], self.head[3], guid or self.head[2]
        if guid is None:
            raise self.assembly.error(number, "a port line without a GUID")
        port, lid = PortId(guid_of(guid), int(match["port"])), int(match["lid"])
        owner = self.owners.setdefault(lid, port.guid)
        if lid and owner != port.guid:
            raise self.assembly.error(number, f"LID {lid} also belongs to {owner}")
        self.assembly.add(PortLine(port, kind, name.strip(), lid), number)
        if match["state"] != "Down":
            self._link(port, match, number)

    def _link(self, port: PortId, match: re.Match[str], number: int) -> None:
        if match["peerport"] is None or match["speed"] is None:
            message = f"port {port.number} is up but its far end was not found: the output is incomplete"
            raise self.assembly.error(number, message)
        speed = _SPEEDS.get(match["speed"] + (" Gbps (FDR10)" if match["fdr10"] else ""), match["speed"])
        peer_guid = guid_of(match["peerguid"]) if match["peerguid"] else None
        lid, far, width = int(match["peerlid"]), int(match["peerport"]), int(match["width"])
        self.linked.append(_Linked(port, peer_guid, lid, far, width, speed, number))

    def finish(self) -> Fabric:
        for link in self.linked:
            peer = link.peer_guid or self.owners.get(link.peer_lid)
            if peer is None:
                raise self.assembly.error(
                    link.line, f"the far end, LID {link.peer_lid}, is not described: output cut off"
                )
            self.assembly.link(link.port, PortId(peer, link.peer_port), link.width, link.speed, link.line)
        return self.assembly.fabric()


def parse_iblinkinfo(text: str, *, file: str = "iblinkinfo") -> Fabric:
    """Return the fabric of either layout; `file` is only for messages. Raises ParseError with the line."""
    reader = _Reader(Assembly(file, "iblinkinfo"))
    for number, line in content_lines(text):
        reader.read(number, line)
    return reader.finish()
