"""`ibnetdiscover -p` (infiniband-diags): one port a line → Fabric.

    SW    30  1 0x00000000000000a1 4x NDR - CA     4  1 0x00000000000000b2 ( 'leaf-1' - 'node001 mlx5_0' )

Adapters go by their port's GUID, since the node's is not in it.
"""

from __future__ import annotations

import re

from clusterctl.fleet.fabric import DeviceKind, Fabric, PortId
from clusterctl.formats.complaints import not_understood
from clusterctl.formats.port_lines import Assembly, PortLine, guid_of

_KINDS = {"SW": DeviceKind.SWITCH, "CA": DeviceKind.CA, "RT": DeviceKind.ROUTER}
_END = r"\s+(?P<{0}lid>[0-9]{{1,5}})\s+(?P<{0}port>[0-9]{{1,5}})\s+0x(?P<{0}guid>[0-9a-fA-F]{{1,16}})\s+"
LINE = re.compile(
    rf"(?P<kind>SW|CA|RT){_END.format('')}(?P<width>[0-9]{{1,3}})x\s+(?P<speed>\S+)\s+"
    rf"(?:-\s+(?:SW|CA|RT){_END.format('peer')}\(\s'(?P<name>.*?)'\s-\s'.*'\s\)|'(?P<alone>.*)')$"
)


def parse_ibnetdiscover_ports(text: str, *, file: str = "ibnetdiscover -p") -> Fabric:
    """The fabric that the text describes; `file` is only for messages. Raises ParseError with the line."""
    assembly = Assembly(file, "ibnetdiscover -p")
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.rstrip()
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if match is None:
            raise assembly.error(number, not_understood(line))
        port = PortId(guid_of(match["guid"]), int(match["port"]))
        name = match["alone"] if match["peerguid"] is None else match["name"]
        assembly.add(PortLine(port, _KINDS[match["kind"]], name.strip(), int(match["lid"])), number)
        if match["peerguid"] is not None:
            peer = PortId(guid_of(match["peerguid"]), int(match["peerport"]))
            assembly.link(port, peer, int(match["width"]), match["speed"], number)
    return assembly.fabric()
