"""Times, ports and GUIDs as UFM writes them."""

from __future__ import annotations

import re
from datetime import datetime, tzinfo

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid
from clusterctl.formats.times import in_utc

_PORT_NAMES = re.compile(r"(?<![0-9a-f])([0-9a-f]{16})_([0-9]{1,4})(?![0-9])")
_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{16})")
_LABEL = re.compile(r"(?:[0-9]{1,2}/)?([0-9]{1,3})/([12])")
_SERIAL = re.compile(r"cable S/N: ([A-Za-z0-9-]{4,40})")


def time_of(text: str, zone: tzinfo, where: str = "") -> datetime:
    """Return a time in UTC. UFM writes its host's local time, without a zone. Raise `ParseError`."""
    try:
        found = datetime.fromisoformat(text)
        return in_utc(found if found.tzinfo is not None else found.replace(tzinfo=zone))
    except ValueError:
        raise ParseError(f"{text[:40]!r} is no time", where=where) from None


def guid_or_none(text: str) -> Guid | None:
    """Return a GUID that is the whole text; None for another text."""
    found = _GUID.fullmatch(text.strip())
    return Guid(found[1].lower()) if found else None


def port_names(*texts: str) -> tuple[PortId, ...]:
    """Return the ports that the texts name as `GUID_NUMBER`, each once; 0 is the switch itself, no port."""
    found = (PortId(Guid(guid), int(number)) for text in texts for guid, number in _PORT_NAMES.findall(text))
    return tuple(dict.fromkeys(port for port in found if port.number))


def port_number(label: str) -> int | None:
    """Return the number of a port by its number or its label; None for another text.

    NDR switches have labels: `1/17/1`, ASIC, cage and half of it, is port 33 (UFM's log names both).
    """
    label = label.strip()
    if label.isascii() and label.isdigit() and len(label) <= 4:
        return int(label)
    found = _LABEL.fullmatch(label)
    return 2 * int(found[1]) - 2 + int(found[2]) if found else None


def cable_serial(text: str) -> str:
    """Return the serial of the cable that a text names; empty where it names none."""
    found = _SERIAL.search(text)
    return found[1] if found else ""
