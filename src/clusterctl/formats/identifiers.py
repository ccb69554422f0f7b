"""Hardware addresses in the ways that people and tools write them."""

from __future__ import annotations

import re

from clusterctl.fleet.node import Mac

_WRITTEN = re.compile(
    r"(?:[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}|[0-9a-f]{12})", re.IGNORECASE
)
_NOBODY = frozenset({"000000000000", "ffffffffffff"})


def read_mac(text: str) -> Mac:
    """`AA:BB:CC:DD:EE:FF`, `aa-bb-…`, `aabb.ccdd.eeff` or 12 digits → lower case with colons. Raises ValueError."""
    stripped = text.strip()
    digits = re.sub(r"[^0-9a-f]", "", stripped.lower())
    if not _WRITTEN.fullmatch(stripped) or digits in _NOBODY:
        raise ValueError("must be a MAC address, like 5c:ed:8c:34:c2:94")
    return Mac(":".join(digits[at : at + 2] for at in range(0, 12, 2)))
