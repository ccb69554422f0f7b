"""`nv-fabricmanager --version`: `Fabric Manager version is : 550.127.08` (NVIDIA's fabric manager user guide)."""

from __future__ import annotations

import re

from clusterctl.fleet.errors import ParseError

_VERSION = re.compile(r"version is\s*:\s*(\d+(?:\.\d+)+)\s*$", re.MULTILINE)


def parse_fabric_manager_version(text: str) -> str:
    """The version; `ParseError` where it tells none."""
    match = _VERSION.search(text)
    if match is None:
        raise ParseError(f"no version in it: {text.strip()[:100]!r}", where="nv-fabricmanager --version")
    return match[1]
