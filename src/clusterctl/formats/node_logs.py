"""Lines of nodes' logs, as `journalctl -o json` and Grafana Loki print them.

Sources: systemd's JOURNAL_EXPORT_FORMATS, "Journal JSON Format": one object per line; a value is text, null where it is
larger than 4096 bytes, a list of bytes where it is no UTF-8, and a list of such values where a field stands repeatedly.
https://grafana.com/docs/loki/latest/reference/loki-http-api/#query-logs-within-a-range-of-time
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.peer_json import JsonLimits, read_json

FIELDS = "MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,_SYSTEMD_UNIT,_TRANSPORT"
"""What `--output-fields` asks for; the time is always printed."""
LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
"""Names of the priorities 0 to 7 (syslog(3))."""
LOKI_BYTES = 32 << 20
"""Of an answer of Loki."""
TOO_LARGE = "(longer than 4096 bytes: read it on the node)"
_LIMITS = JsonLimits(size=1 << 18, values=50_000, depth=4, text=1 << 17)
_RANGE = JsonLimits(size=LOKI_BYTES, values=400_000, depth=8, text=1 << 20)
_UNIT = 80
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """A line of a node's log, by the node's clock. `unit`: what wrote it; `level`: as syslog names it, or empty."""

    at: datetime
    unit: str
    level: str
    text: str


def parse_journald(text: str) -> tuple[Sequence[LogLine], int]:
    """Return the entries in the order of the output, and how many lines were not understood."""
    found: list[LogLine] = []
    unreadable = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            found.append(_entry(read_json(line, _LIMITS)))
        except ParseError:
            unreadable += 1
    return found, unreadable


def _entry(document: Any) -> LogLine:
    if not isinstance(document, dict):
        raise ParseError("is no entry")
    return LogLine(
        at=_time(document.get("__REALTIME_TIMESTAMP")),
        unit=_writer(document),
        level=_level(_text(document.get("PRIORITY"))),
        text=visible_line(TOO_LARGE if document.get("MESSAGE", "") is None else _text(document.get("MESSAGE"))),
    )


def _writer(document: dict[str, Any]) -> str:
    """Return the program's name in syslog, else the unit; `kernel` for the kernel."""
    if _text(document.get("_TRANSPORT")) == "kernel":
        return "kernel"
    named = _text(document.get("SYSLOG_IDENTIFIER")) or _text(document.get("_SYSTEMD_UNIT"))
    return visible_line(named, _UNIT) or "unknown"


def _text(value: Any) -> str:
    """Return a field as text: the first value of a field that stands repeatedly, bytes as far as they are UTF-8."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        return ""
    if all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "backslashreplace")
    return value[0] if isinstance(value[0], str) else ""


def _level(priority: str) -> str:
    return LEVELS[int(priority)] if len(priority) == 1 and priority in "01234567" else ""


def _time(value: Any) -> datetime:
    """Return microseconds since 1970 as a moment."""
    if not isinstance(value, str) or not value.isascii() or not value.isdigit() or len(value) > 17:
        raise ParseError("has no time")
    return _EPOCH + timedelta(microseconds=int(value))


def parse_range(content: bytes, *, where: str = "") -> tuple[Sequence[LogLine], int]:
    """Return the lines of Loki's answer, oldest first, and how many were not understood. Raises `ParseError`."""
    document = read_json(content, _RANGE, where=where)
    data = document.get("data") if isinstance(document, dict) else None
    streams = data.get("result") if isinstance(data, dict) and data.get("resultType") == "streams" else None
    if not isinstance(streams, list):
        raise ParseError("the answer has no streams", where=where)
    found: list[LogLine] = []
    unreadable = 0
    for stream in streams:
        labels = _labels(stream)
        for value in _values(stream):
            line = _range_line(value, labels)
            found += [line] if line is not None else []
            unreadable += line is None
    found.sort(key=lambda line: line.at)
    return found, unreadable


@dataclass(frozen=True, slots=True)
class _Labels:
    unit: str
    level: str


def _labels(stream: Any) -> _Labels:
    """Return the labels that role `log_shipping` gives: the kernel's lines have no unit."""
    labels = stream.get("stream") if isinstance(stream, dict) else None
    texts = {name: value for name, value in labels.items() if isinstance(value, str)} if labels else {}
    unit = texts.get("unit") or texts.get("service_name") or texts.get("transport") or "unknown"
    return _Labels(visible_line(unit, _UNIT), visible_line(texts.get("level", ""), _UNIT))


def _values(stream: Any) -> list[Any]:
    values = stream.get("values") if isinstance(stream, dict) else None
    return values if isinstance(values, list) else [None]


def _range_line(value: Any, labels: _Labels) -> LogLine | None:
    """Return the line of a pair of nanoseconds and text; None for what is none."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(part, str) for part in value[:2]):
        return None
    when, text = value[:2]
    if not when.isascii() or not when.isdigit() or len(when) > 20:
        return None
    try:
        at = _EPOCH + timedelta(microseconds=int(when) // 1000)
    except OverflowError:
        return None
    return LogLine(at=at, unit=labels.unit, level=labels.level, text=visible_line(text))
