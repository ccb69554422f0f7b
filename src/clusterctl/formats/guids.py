"""Whose GUID is whose: a CSV with the columns guid, host and optionally hca, as an inventory exports it."""

from __future__ import annotations

import re

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Guid
from clusterctl.fleet.wiring import PortName
from clusterctl.formats.delimited import read_table

_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})", re.ASCII)
_COLUMNS = {("guid", "host"), ("guid", "host", "hca")}


def parse_guids(text: str, *, file: str = "guids.csv") -> dict[Guid, PortName]:
    """Node or port GUID (16 hex digits; colons, `0x` and lost zeros do no harm) → host and HCA, `port` empty where the
    file has no HCA. Raises UsageError that names file, line and column.
    """
    table = read_table(text, file)
    if table.headings not in _COLUMNS:
        found = ", ".join(table.headings)
        raise UsageError(f"columns are {found}", where=f"{file}:1", remedy="name them guid,host,hca or guid,host")
    known: dict[Guid, PortName] = {}
    for line, cells in table.rows:
        if len(cells) != len(table.headings):
            message = f"{len(cells)} cells, but the header has {len(table.headings)} columns"
            raise UsageError(message, where=f"{file}:{line}", remedy="fill in or cut the row")
        guid, host, *hca = (cell.strip() for cell in cells)
        match = _GUID.fullmatch(guid.replace(":", ""))
        if match is None:
            raise UsageError(f"{guid!r} is no GUID", where=f"{file}:{line} guid", remedy="give 16 hex digits")
        if not host:
            raise UsageError("empty", where=f"{file}:{line} host", remedy="name the host")
        name = Guid(match[1].lower().zfill(16))
        if name in known:
            raise UsageError(f"GUID {name} a second time", where=f"{file}:{line} guid", remedy="list each GUID once")
        known[name] = PortName(host, hca[0] if hca else "")
    return known
