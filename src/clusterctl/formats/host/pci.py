"""PCI: addresses in one spelling, and link speed and width as `lspci -vv` prints them."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError

_ADDRESS = re.compile(r"^(?:(?P<domain>[0-9A-Fa-f]{4,8}):)?(?P<rest>[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)$")
_DEVICE = re.compile(r"^(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<what>[^:]+): (?P<name>.+)$")
_LINK = re.compile(r"^\s+Lnk(?P<kind>Cap|Sta):.*?Speed (?P<speed>[\d.]+)GT/s.*?Width x(?P<width>\d+)")


@dataclass(frozen=True, slots=True)
class PciLink:
    """Speed in GT/s per lane, width in lanes."""

    speed: float
    width: int

    def __str__(self) -> str:
        return f"x{self.width} at {self.speed:g} GT/s"


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A function and its link: what it can do and what it does. None: not shown (lspci ran without privileges)."""

    address: str
    kind: str
    name: str
    capable: PciLink | None
    current: PciLink | None


def normal_address(address: str) -> str:
    """`00000000:1B:00.0`, `1b:00.0`, `0000:1b:00` → `0000:1b:00.0`."""
    match = _ADDRESS.match(address.strip())
    if match is None:
        raise ParseError(f"not a PCI address: {address!r}")
    domain = int(match["domain"] or "0", 16)
    rest = match["rest"].lower()
    return f"{domain:04x}:{rest}" if "." in rest else f"{domain:04x}:{rest}.0"


def parse_lspci(text: str) -> tuple[PciDevice, ...]:
    """Read `lspci -vv` (any verbosity above); `ParseError` when a non-empty text has no device in it."""
    devices: list[PciDevice] = []
    for line in text.splitlines():
        if head := _DEVICE.match(line):
            devices.append(PciDevice(normal_address(head["address"]), head["what"], head["name"], None, None))
        elif (link := _LINK.match(line)) and devices:
            devices[-1] = _with_link(devices[-1], link["kind"], PciLink(float(link["speed"]), int(link["width"])))
    if text.strip() and not devices:
        raise ParseError("no PCI device in it", where="lspci -vv")
    return tuple(devices)


def _with_link(device: PciDevice, kind: str, link: PciLink) -> PciDevice:
    """The device with its first LnkCap or LnkSta line; later ones are further capabilities and do not count."""
    capable = device.capable or (link if kind == "Cap" else None)
    current = device.current or (link if kind == "Sta" else None)
    return PciDevice(device.address, device.kind, device.name, capable, current)


_FUNCTION = re.compile(
    r"(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) (?P<kind>[^:\n]+): (?P<name>.+)"
)
_NEXT = re.compile(r"\n(?=[0-9a-f])")
_SPEED_WIDTH = r":.*?Speed (?P<speed>[\d.]+)GT/s.*?Width x(?P<width>\d+)"
_CAPABLE = re.compile("LnkCap" + _SPEED_WIDTH)
_CURRENT = re.compile("LnkSta" + _SPEED_WIDTH)
_BUS = re.compile(r"Bus: primary=[0-9a-f]+, secondary=(?P<secondary>[0-9a-f]+),")
_PORT = re.compile(r"\] Express \(v\d\) (?P<port>[^,\n]+)")
_ACS = re.compile(r"ACSCtl:\s+(?P<flags>.+)")
_GROUP = re.compile(r"IOMMU group: (?P<group>\d+)")
REDIRECTS = ("ReqRedir", "CmpltRedir", "UpstreamFwd")
"""Those that send traffic between two devices below one switch up to the root complex and back."""


class Port(enum.Enum):
    """What end of which link a device is, by its PCI Express capability."""

    ROOT = "Root Port"
    UPSTREAM = "Upstream Port"
    DOWNSTREAM = "Downstream Port"
    OTHER = "other"


@dataclass(frozen=True)
class PciNode:
    """One function. What lspci shows of it is looked for when it is asked: of a fleet's listings, 1 MB each, the checks
    want a tenth. The first of each kind of line counts: later ones belong to further capabilities.
    """

    address: str
    kind: str
    name: str
    details: str = field(default="", repr=False)

    @property
    def bus(self) -> str:
        """The bus that it is on: `0000:1b`."""
        return self.address.rpartition(":")[0]

    @functools.cached_property
    def port(self) -> Port | None:
        found = self._first("] Express (", _PORT)
        return next((port for port in Port if found["port"].startswith(port.value)), Port.OTHER) if found else None

    @functools.cached_property
    def capable(self) -> PciLink | None:
        return _link(self._first("LnkCap:", _CAPABLE))

    @functools.cached_property
    def current(self) -> PciLink | None:
        return _link(self._first("LnkSta:", _CURRENT))

    @functools.cached_property
    def behind(self) -> str | None:
        """The bus behind a bridge."""
        found = self._first("Bus: primary=", _BUS)
        return f"{self.address[:4]}:{found['secondary']}" if found else None

    @functools.cached_property
    def redirects(self) -> tuple[str, ...] | None:
        """Which redirections of Access Control Services are on; None without these."""
        found = self._first("ACSCtl:", _ACS)
        if found is None:
            return None
        on = {flag[:-1] for flag in found["flags"].split() if flag.endswith("+")}
        return tuple(name for name in REDIRECTS if name in on)

    @functools.cached_property
    def iommu_group(self) -> int | None:
        found = self._first("IOMMU group: ", _GROUP)
        return int(found["group"]) if found else None

    def _first(self, word: str, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """A word is found sooner than a pattern."""
        at = self.details.find(word)
        return pattern.search(self.details, at) if at >= 0 else None


def _link(match: re.Match[str] | None) -> PciLink | None:
    return PciLink(float(match["speed"]), int(match["width"])) if match else None


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


@functools.lru_cache(maxsize=16)
def parse_pci_tree(text: str) -> PciTree:
    """Read `lspci -D -vvv`; `ParseError` when there is no device in it."""
    devices = tuple(_devices(text))
    if not devices:
        raise ParseError("no PCI device in it", where="lspci -vvv")
    return PciTree(devices, {device.behind: device for device in devices if device.behind is not None})


def _devices(text: str) -> Iterator[PciNode]:
    begin = 0
    while begin >= 0:
        following = _NEXT.search(text, begin)
        end = following.start() if following else len(text)
        if head := _FUNCTION.match(text, begin, end):
            yield PciNode(normal_address(head["address"]), head["kind"], head["name"], text[head.end() : end])
        begin = end + 1 if following else -1
