"""PCI devices as `lspci -vv` and `lspci -vvv` print them: links, bridges, Access Control Services, IOMMU groups.

Layout: lspci of pciutils 3.7 and later (github.com/pciutils/pciutils, lspci.c and ls-ecaps.c), and a recording of
8 x H100 with ConnectX-7 (leptonai/gpud). Without privileges lspci prints no capability: such a field is None.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError

_ADDRESS = re.compile(r"^(?:(?P<domain>[0-9A-Fa-f]{4,8}):)?(?P<rest>[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)$")
_DEVICE = re.compile(r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:\n]+): (?P<name>.+)")
_NEXT = re.compile(r"\n(?=[0-9a-f])")
_LINK = r":.*?Speed (?P<speed>[\d.]+)GT/s.*?Width x(?P<width>\d+)"
_CAPABLE = re.compile("LnkCap" + _LINK)
_CURRENT = re.compile("LnkSta" + _LINK)
_BUS = re.compile(r"Bus: primary=[0-9a-f]+, secondary=(?P<secondary>[0-9a-f]+),")
_PORT = re.compile(r"\] Express \(v\d\) (?P<port>[^,\n]+)")
_ACS = re.compile(r"ACSCtl:\s+(?P<flags>.+)")
_GROUP = re.compile(r"IOMMU group: (?P<group>\d+)")
REDIRECTS = ("ReqRedir", "CmpltRedir", "UpstreamFwd")
"""ACS functions that send traffic between two devices below one switch up to the root complex and back."""


class PciPort(enum.Enum):
    """The kind of port of a device, from its PCI Express capability."""

    ROOT = "Root Port"
    UPSTREAM = "Upstream Port"
    DOWNSTREAM = "Downstream Port"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class PciLink:
    """Speed in GT/s per lane, width in lanes."""

    speed: float
    width: int

    def __str__(self) -> str:
        return f"x{self.width} at {self.speed:g} GT/s"


@dataclass(frozen=True)
class PciDevice:
    """One function of a device.

    Details are parsed on demand: a fleet's listings have 1 MB each, and the checks need a tenth of it. The first
    line of each kind counts; later ones belong to further capabilities.
    """

    address: str
    kind: str
    name: str
    details: str = field(default="", repr=False)

    @property
    def bus(self) -> str:
        """The bus that the device is on: `0000:1b`."""
        return self.address.rpartition(":")[0]

    @functools.cached_property
    def port(self) -> PciPort | None:
        """Kind of its PCI Express port."""
        found = self._first("] Express (", _PORT)
        return (
            next((port for port in PciPort if found["port"].startswith(port.value)), PciPort.OTHER) if found else None
        )

    @functools.cached_property
    def capable(self) -> PciLink | None:
        """The fastest link that it supports."""
        return _link(self._first("LnkCap:", _CAPABLE))

    @functools.cached_property
    def current(self) -> PciLink | None:
        """The link that it runs at."""
        return _link(self._first("LnkSta:", _CURRENT))

    @functools.cached_property
    def behind(self) -> str | None:
        """The bus behind a bridge."""
        found = self._first("Bus: primary=", _BUS)
        return f"{self.address[:4]}:{found['secondary']}" if found else None

    @functools.cached_property
    def redirects(self) -> tuple[str, ...] | None:
        """The enabled redirections of Access Control Services; None without ACS."""
        found = self._first("ACSCtl:", _ACS)
        if found is None:
            return None
        on = {flag[:-1] for flag in found["flags"].split() if flag.endswith("+")}
        return tuple(name for name in REDIRECTS if name in on)

    @functools.cached_property
    def iommu_group(self) -> int | None:
        """Number of its IOMMU group."""
        found = self._first("IOMMU group: ", _GROUP)
        return int(found["group"]) if found else None

    def _first(self, word: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the first match at or after `word`: plain search is faster than the pattern."""
        at = self.details.find(word)
        return pattern.search(self.details, at) if at >= 0 else None


@dataclass(frozen=True, slots=True)
class PciTree:
    """All devices of a machine, and the bridge above each bus."""

    devices: tuple[PciDevice, ...]
    _bridges: Mapping[str, PciDevice] = field(default_factory=dict)

    def above(self, device: PciDevice) -> tuple[PciDevice, ...]:
        """Return the bridges between a device and the root complex, the nearest first."""
        found: list[PciDevice] = []
        bridge = self._bridges.get(device.bus)
        while bridge is not None and bridge not in found:
            found.append(bridge)
            bridge = self._bridges.get(bridge.bus)
        return tuple(found)


def normal_address(address: str) -> str:
    """Return a PCI address in one spelling: `00000000:1B:00.0`, `1b:00.0`, `0000:1b:00` → `0000:1b:00.0`."""
    match = _ADDRESS.match(address.strip())
    if match is None:
        raise ParseError(f"not a PCI address: {address!r}")
    domain = int(match["domain"] or "0", 16)
    rest = match["rest"].lower()
    return f"{domain:04x}:{rest}" if "." in rest else f"{domain:04x}:{rest}.0"


def parse_lspci(text: str) -> tuple[PciDevice, ...]:
    """Return the devices of `lspci -vv` or more verbose. Raises `ParseError` for a text without a device."""
    devices = tuple(_devices(text))
    if text.strip() and not devices:
        raise ParseError("no PCI device in it", where="lspci -vv")
    return devices


@functools.lru_cache(maxsize=16)
def parse_pci_tree(text: str) -> PciTree:
    """Return the tree of `lspci -D -vvv`. Raises `ParseError` where it lists no device."""
    devices = parse_lspci(text)
    if not devices:
        raise ParseError("it is empty", where="lspci -vvv")
    return PciTree(devices, {device.behind: device for device in devices if device.behind is not None})


def _devices(text: str) -> Iterator[PciDevice]:
    begin = 0
    while begin >= 0:
        following = _NEXT.search(text, begin)
        end = following.start() if following else len(text)
        if head := _DEVICE.match(text, begin, end):
            yield PciDevice(normal_address(head["address"]), head["kind"], head["name"], text[head.end() : end])
        begin = end + 1 if following else -1


def _link(match: re.Match[str] | None) -> PciLink | None:
    return PciLink(float(match["speed"]), int(match["width"])) if match else None
