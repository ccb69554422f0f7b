"""PCI: addresses in one spelling, and link speed and width as `lspci -vv` prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
