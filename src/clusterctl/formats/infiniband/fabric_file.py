"""Files about a fabric: a fabric or a telemetry reading of any supported tool, gzipped or not; a list of GUIDs.

The content decides which tool it is, never the file name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid
from clusterctl.formats.file_text import text_in
from clusterctl.formats.identifiers import guid_of
from clusterctl.formats.infiniband import iblinkinfo
from clusterctl.formats.infiniband import ibnetdiscover as ibnetdiscover_ports
from clusterctl.formats.infiniband import port_queries as perfquery_dump
from clusterctl.formats.infiniband.ibdiagnet import is_db_csv, parse_db_csv, without_keys
from clusterctl.formats.infiniband.iblinkinfo import parse_iblinkinfo
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover, parse_ibnetdiscover_ports
from clusterctl.formats.infiniband.ibqueryerrors import parse_ibqueryerrors
from clusterctl.formats.infiniband.port_queries import parse_perfquery
from clusterctl.formats.infiniband.terminal import tool_output
from clusterctl.formats.site.table import read_table
from clusterctl.formats.times import in_utc

_TIME = re.compile(r"#.*?\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d))", re.ASCII)
_TAKEN = re.compile(r"#.*\bread within (\d{1,6}(?:\.\d{1,6})?) s$", re.ASCII)
_HEAD_LINES = 20


def decode_fabric(data: bytes, *, file: str) -> Fabric:
    """Return the fabric of `ibnetdiscover [-p]`, `iblinkinfo [-l]`, or ibdiagnet's db_csv.

    Prompts, escape sequences and other noise of a terminal are ignored; the tool's warnings are kept in the fabric.
    Raises ParseError with file and line; UsageError where it is not text.
    """
    capture = tool_output(text_in(data, file))
    return replace(_fabric(capture.text, file), warnings=capture.warnings)


def _fabric(text: str, file: str) -> Fabric:
    if is_db_csv(text):
        return parse_db_csv(text, file=file)[0]
    first = _first(text)
    if ibnetdiscover_ports.LINE.match(first):
        return parse_ibnetdiscover_ports(text, file=file)
    if iblinkinfo.HEAD.match(first) or iblinkinfo.LINE.match(first):
        return parse_iblinkinfo(text, file=file)
    return parse_ibnetdiscover(text, file=file)


def has_fabric(data: bytes, *, file: str) -> bool:
    """Return whether a telemetry reading also holds the fabric. Raises UsageError where it is not text."""
    return is_db_csv(text_in(data, file))


def storable(data: bytes, *, file: str) -> bytes:
    """Return a reading as evidence may store it: unpacked and without keys. Raises UsageError like `has_fabric`."""
    text = text_in(data, file)
    return (without_keys(text) if is_db_csv(text) else text).encode()


def decode_telemetry(data: bytes, fabric: Fabric, *, file: str) -> Telemetry:
    """Return the telemetry of ibdiagnet's db_csv, `ibqueryerrors` or `perfquery -x`; these need the ports of `fabric`.

    `at` is the ISO 8601 time with zone in a comment among the first lines, `taken_s` as `reading_s` has it. Raises
    `UsageError` and `ParseError` like `decode_fabric`.
    """
    text = text_in(data, file)
    at, taken = _time(text), reading_s(text)
    if is_db_csv(text):
        return replace(parse_db_csv(text, file=file)[1], at=at, taken_s=taken)
    if any(perfquery_dump.HEAD.match(line) for line in text.splitlines()):
        return Telemetry(parse_perfquery(text, fabric, file=file), at=at, taken_s=taken)
    return Telemetry(parse_ibqueryerrors(text, fabric, file=file), at=at, taken_s=taken)


def reading_s(text: str) -> float:
    """Return the seconds within which all ports were read, by a comment `read within 3.2 s` among the first lines; 0
    where there is none.
    """
    found = (_TAKEN.match(line) for line in text[:4096].splitlines()[:_HEAD_LINES])
    return next((float(match[1]) for match in found if match), 0.0)


def _first(text: str) -> str:
    """Return the first line that is neither blank nor a comment."""
    lines = (line.strip() for line in text.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def _time(text: str) -> datetime | None:
    for line in text.splitlines()[:_HEAD_LINES]:
        if match := _TIME.match(line):
            try:
                return in_utc(datetime.fromisoformat(match[1]))
            except ValueError:
                return None
    return None


_GUID = re.compile(r"(?:0x)?([0-9a-fA-F]{1,16})", re.ASCII)
_GUID_COLUMNS = {("guid", "host"), ("guid", "host", "hca")}


def parse_guids(text: str, *, file: str = "guids.csv") -> dict[Guid, PortName]:
    """Return host and HCA by node or port GUID; `port` is empty where the file has no HCA.

    A GUID has 16 hex digits; colons, `0x` and lost zeros are allowed. Raises UsageError with file, line and column.
    """
    table = read_table(text, file)
    if table.headings not in _GUID_COLUMNS:
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
        name = guid_of(match[1])
        if name in known:
            raise UsageError(f"GUID {name} a second time", where=f"{file}:{line} guid", remedy="list each GUID once")
        known[name] = PortName(host, hca[0] if hca else "")
    return known
