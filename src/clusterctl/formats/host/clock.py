"""What sets a node's clock: the JSON document of the built-in `clock-sync`.

It carries the CSV of `chronyc -c tracking` and `chronyc -c sources`, whose fields are those of chronyc(1) in the order
of its reports (https://chrony-project.org/doc/4.5/chronyc.html), and the properties of `timedatectl show` (systemd).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import read_document

_WHERE = "clock-sync"
NOT_INSTALLED = 127
OWN_CLOCK = "7F7F0101"
"""Reference ID of chronyd that follows its own clock (`local stratum`)."""
NOT_SYNCHRONISED = "Not synchronised"
_TRACKING_FIELDS, _SOURCE_FIELDS = 14, 10
_DIGITS = 9
_LEAPS = frozenset({"Normal", "Insert second", "Delete second", NOT_SYNCHRONISED})


@dataclass(frozen=True, slots=True)
class Tracking:
    """What chronyd knows of the clock.

    reference   ID of the source that it follows, eight hexadecimal digits; zeros for none
    stratum     distance to a reference clock; 0 for none
    offset      seconds between the system clock and its estimate of the true time, without sign
    error       upper bound of the estimate's own error in seconds: root dispersion and half the root delay
    leap        `Normal`, `Insert second`, `Delete second` or `Not synchronised`
    """

    reference: str
    stratum: int
    offset: float
    error: float
    leap: str


@dataclass(frozen=True, slots=True)
class TimeSource:
    """A server, peer or reference clock. `state`: `*` followed, `+` combined, `-` not combined, `x` contradicts the
    others, `~` too variable, `?` unusable. `reach` has a bit for each of the last eight polls that was answered.
    """

    name: str
    state: str
    stratum: int
    reach: int


@dataclass(frozen=True, slots=True)
class ClockSync:
    """Which service sets the clock.

    tracking, sources   by chronyd; None where chronyd does not answer, `chrony_output` is the reason
    chrony              whether chronyc is installed
    service             whether systemd knows an active time service; None where timedatectl does not answer
    synchronised        the kernel's flag; None where timedatectl does not answer
    """

    chrony: bool
    tracking: Tracking | None
    sources: tuple[TimeSource, ...] | None
    chrony_output: str
    service: bool | None
    synchronised: bool | None


@dataclass(frozen=True, slots=True)
class _Answer:
    code: int
    output: str


@dataclass(frozen=True, slots=True)
class _Document:
    tracking: _Answer
    sources: _Answer
    timedatectl: _Answer


def parse_clock_sync(text: str) -> ClockSync:
    """Return what sets the clock. Raises `ParseError` for another document, or a report with other fields."""
    document = read_document(_Document, text, _WHERE)
    tracking, sources = document.tracking, document.sources
    flags = _flags(document.timedatectl.output) if document.timedatectl.code == 0 else {}
    return ClockSync(
        chrony=tracking.code != NOT_INSTALLED,
        tracking=parse_tracking(tracking.output) if tracking.code == 0 else None,
        sources=tuple(parse_sources(sources.output)) if sources.code == 0 else None,
        chrony_output=next((one.output for one in (tracking, sources) if one.code != 0), ""),
        service=flags.get("NTP"),
        synchronised=flags.get("NTPSynchronized"),
    )


def parse_tracking(text: str) -> Tracking:
    """Return the one line of `chronyc -c tracking`. Raises `ParseError`."""
    rows = _rows(text)
    if len(rows) != 1 or len(rows[0]) != _TRACKING_FIELDS or rows[0][13] not in _LEAPS:
        raise ParseError("chronyc tracking did not print one line of 14 fields", where=_WHERE)
    row = rows[0]
    error = _seconds(row[11]) + _seconds(row[10]) / 2
    return Tracking(row[0], _count(row[2]), abs(_seconds(row[4])), error, row[13])


def parse_sources(text: str) -> Iterator[TimeSource]:
    """Yield the lines of `chronyc -c sources`; none where none is configured. Raises `ParseError`."""
    for number, row in enumerate(_rows(text), start=1):
        if len(row) != _SOURCE_FIELDS or row[0] not in ("^", "=", "#") or row[1] not in tuple("*+-?x~"):
            raise ParseError(
                "chronyc sources printed another line than one of 10 fields", where=f"{_WHERE} sources, line {number}"
            )
        yield TimeSource(row[2], row[1], _count(row[3]), _count(row[5]))


def _rows(text: str) -> list[list[str]]:
    try:
        return list(csv.reader(text.splitlines()))
    except csv.Error:
        raise ParseError("chronyc printed what is no CSV", where=_WHERE) from None


def _flags(text: str) -> dict[str, bool]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value == "yes" for name, _, value in pairs if value in ("yes", "no")}


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
        raise ParseError("a field of chronyc is no count", where=_WHERE)
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ParseError("a field of chronyc is no number of seconds", where=_WHERE)
    return value
