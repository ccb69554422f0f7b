"""The PCI tree as `lspci -D -vvv` prints it: links, bridges, Access Control Services, IOMMU groups.

Layout: lspci of pciutils 3.7 and later (github.com/pciutils/pciutils, lspci.c and ls-ecaps.c), and a recording of
8 x H100 with ConnectX-7 (leptonai/gpud). Without privileges lspci shows no capability: what is not shown is None.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.pci import PciLink, normal_address

_DEVICE = re.compile(r"^(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:]+): (?P<name>.+)$")
_LINK = re.compile(r"^\s+Lnk(?P<kind>Cap|Sta):.*?Speed (?P<speed>[\d.]+)GT/s.*?Width x(?P<width>\d+)")
_BUS = re.compile(r"^\s+Bus: primary=[0-9a-f]+, secondary=(?P<secondary>[0-9a-f]+),")
_PORT = re.compile(r"^\s+Capabilities: \[[0-9a-f]+\] Express \(v\d\) (?P<port>[^,]+)")
_ACS = re.compile(r"^\s+ACSCtl:\s+(?P<flags>.+)$")
_GROUP = re.compile(r"^\s+IOMMU group: (?P<group>\d+)$")
REDIRECTS = ("ReqRedir", "CmpltRedir", "UpstreamFwd")
"""Those that send traffic between two devices below one switch up to the root complex and back."""


class Port(enum.Enum):
    """What end of which link a device is, by its PCI Express capability."""

    ROOT = "Root Port"
    UPSTREAM = "Upstream Port"
    DOWNSTREAM = "Downstream Port"
    OTHER = "other"


@dataclass(slots=True)
class PciNode:
    """One function. `behind` is the bus below a bridge; `redirects`: which ACS redirections are on, None without."""

    address: str
    kind: str
    name: str
    port: Port | None = None
    capable: PciLink | None = None
    current: PciLink | None = None
    behind: str | None = None
    redirects: tuple[str, ...] | None = None
    iommu_group: int | None = None

    @property
    def bus(self) -> str:
        """The bus that it is on: `0000:1b`."""
        return self.address.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class PciTree:
    devices: tuple[PciNode, ...]
    _bridges: Mapping[str, PciNode] = field(default_factory=dict)

    def above(self, device: PciNode) -> tuple[PciNode, ...]:
        """The bridges between a device and the root complex, the nearest first."""
        found: list[PciNode] = []
        bridge = self._bridges.get(device.bus)
        while bridge is not None and bridge not in found:
            found.append(bridge)
            bridge = self._bridges.get(bridge.bus)
        return tuple(found)


def parse_pci_tree(text: str) -> PciTree:
    """Read `lspci -D -vvv`; `ParseError` when there is no device in it."""
    devices: list[PciNode] = []
    for line in text.splitlines():
        if head := _DEVICE.match(line):
            devices.append(PciNode(normal_address(head["address"]), head["kind"], head["name"]))
        elif devices and line[:1].isspace():
            _detail(devices[-1], line)
    if not devices:
        raise ParseError("no PCI device in it", where="lspci -vvv")
    return PciTree(tuple(devices), {device.behind: device for device in devices if device.behind is not None})


def _detail(device: PciNode, line: str) -> None:
    """The first of each kind of line: later ones belong to further capabilities."""
    if match := _LINK.match(line):
        link = PciLink(float(match["speed"]), int(match["width"]))
        if match["kind"] == "Cap":
            device.capable = device.capable or link
        else:
            device.current = device.current or link
    elif match := _BUS.match(line):
        device.behind = f"{device.address[:4]}:{match['secondary']}"
    elif match := _PORT.match(line):
        device.port = device.port or next((port for port in Port if match["port"].startswith(port.value)), Port.OTHER)
    elif match := _ACS.match(line):
        on = {flag[:-1] for flag in match["flags"].split() if flag.endswith("+")}
        device.redirects = tuple(name for name in REDIRECTS if name in on)
    elif match := _GROUP.match(line):
        device.iommu_group = int(match["group"])
