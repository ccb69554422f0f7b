"""What all parts of a machine tell in the same fields: serial number, label beside the socket, health."""

from __future__ import annotations

from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.resource import Resource

PLACEHOLDERS = frozenset(
    {
        "0123456789",
        "default string",
        "n/a",
        "na",
        "no dimm",
        "none",
        "not specified",
        "null",
        "to be filled by o.e.m.",
        "unknown",
    }
)
"""What firmware writes where nobody has programmed the field."""


def programmed(text: str) -> bool:
    return bool(text) and text.lower() not in PLACEHOLDERS


def serial_number(item: Resource) -> Serial | None:
    """None where not told, or where a placeholder stands in its place."""
    told = item.text("SerialNumber")
    return Serial(told) if programmed(told) else None


def service_label(item: Resource) -> str:
    """What is printed beside the part; empty where the BMC does not know."""
    return item.text("Location", "PartLocation", "ServiceLabel")


def well(item: Resource) -> bool | None:
    """The part's own health, never its roll-up; None where the BMC does not tell."""
    told = item.text("Status", "Health")
    return told == "OK" if told else None
