"""MAC addresses and GUIDs in the spellings of tools and spreadsheets; host names and IP addresses."""

from __future__ import annotations

import re
from ipaddress import ip_address

from clusterctl.fleet.node import Guid, Mac

_WRITTEN = re.compile(
    r"(?:[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}|[0-9a-f]{12})", re.IGNORECASE
)
_HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PLACEHOLDERS = frozenset({"000000000000", "ffffffffffff"})


def read_mac(text: str) -> Mac:
    """Return `AA:BB:…`, `aa-bb-…`, `aabb.ccdd.eeff` or 12 digits in lower case with colons. Raises ValueError."""
    stripped = text.strip()
    digits = re.sub(r"[^0-9a-f]", "", stripped.lower())
    if not _WRITTEN.fullmatch(stripped) or digits in _PLACEHOLDERS:
        raise ValueError("must be a MAC address, like 5c:ed:8c:34:c2:94")
    return Mac(":".join(digits[at : at + 2] for at in range(0, 12, 2)))


def guid_of(digits: str) -> Guid:
    """Return up to 16 hex digits as a GUID, lost zeros restored."""
    return Guid(digits.lower().zfill(16))


def is_host_name(text: str) -> bool:
    """Return whether the text is the name of a node: lower-case letters, digits and dashes, 63 at most."""
    return _HOST_NAME.fullmatch(text) is not None


def is_address(text: str) -> bool:
    """Return whether the text is an IP address, as opposed to a name."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
