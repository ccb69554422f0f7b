"""What `ibportstate … query` and `smpquery nodeinfo` print."""

from __future__ import annotations

import re

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric import PortState
from clusterctl.fleet.node import Guid

_FIELD = re.compile(r"(\w+):\.*(.*)")
_GUID = re.compile(r"^Guid:\.+0x([0-9a-f]{1,16})$", re.MULTILINE)
_HEAD = "Switch PortInfo:"
_REMEDY = "run the command by hand, and look at what it prints"


def parse_ibportstate(text: str, *, file: str) -> PortState:
    """The switch port's own states; its peer's, which follow where it answers, are not looked at. Raises ParseError."""
    lines = text.splitlines()
    if _HEAD not in lines:
        raise ParseError("it tells of no switch port", where=file, remedy=_REMEDY)
    fields: dict[str, str] = {}
    for line in lines[lines.index(_HEAD) + 1 :]:
        match = _FIELD.fullmatch(line)
        if match is not None:
            fields.setdefault(match[1], match[2].strip())
        elif not line.startswith("#"):
            break
        if line == "Peer PortInfo:":
            break
    logical, physical = fields.get("LinkState", ""), fields.get("PhysLinkState", "")
    if not logical or not physical:
        raise ParseError("LinkState or PhysLinkState is missing: output cut off", where=file, remedy=_REMEDY)
    return PortState(logical, physical)


def parse_nodeinfo_guid(text: str, *, file: str) -> Guid:
    """Which device answered. Raises ParseError."""
    match = _GUID.search(text)
    if match is None:
        raise ParseError("it tells no node GUID", where=file, remedy=_REMEDY)
    return Guid(f"{int(match[1], 16):016x}")
