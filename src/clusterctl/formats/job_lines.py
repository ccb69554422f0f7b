"""Lines of job logs: the prefixes of launchers, the rank and the time that a line names.

Times mostly have no zone and often no year: `TimeReader` holds what is known of both. Launchers: srun --label (`7: `),
Open MPI (`[1,7]<stdout>:`), PyTorch (`[rank7]:`, `[default7]:`). Times: glog as PyTorch prints it (`E321 02:07:08.4`,
month without zero), ISO 8601, ctime, syslog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from clusterctl.formats.times import in_utc

_ESCAPE = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_LABEL = re.compile(r"\s{0,8}(\d{1,6}): ")
_MPI = re.compile(r"\s{0,8}\[\d{1,3},(\d{1,6})\]<std(?:out|err)>:\s?")
_TORCH = re.compile(r"\s{0,8}\[(?:rank|default)(\d{1,6})\]:\s?")
_NAMED = re.compile(r"\b[Rr]ank (\d{1,6})[\]:]")
_NCCL = re.compile(r"(?:\[[\d :-]{8,30}\] )?([A-Za-z0-9][\w.-]{0,252}):\d{1,8}:\d{1,8} \[-?\d{1,3}\] ")
_TIMES = re.compile(
    r"(?P<iso>(?P<y>\d{4})-(?P<mo>\d\d)-(?P<d>\d\d)[T _]"
    r"(?P<iso_t>\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)(?P<zone>Z|[+-]\d\d:?\d\d)?)"
    r"|\b[EWIF](?P<g_mo>\d{1,2})(?P<g_d>\d\d) (?P<g_t>\d\d:\d\d:\d\d\.\d{1,9})"
    r"|\b(?P<c_mo>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<c_d>\d{1,2}) "
    r"(?P<c_t>\d\d:\d\d:\d\d)(?: (?P<c_y>\d{4}))?"
)
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_READ = 200
"""Characters of a line in which its time is looked for: what stands behind is text of the program."""
STALE = timedelta(days=2)
"""A time without a year may be so much later than the reference: clocks differ."""


@dataclass(frozen=True, slots=True)
class JobLine:
    """A line without escape codes and launcher prefixes; `rank` is None where it names none.

    `task`: the number with which srun --label marks it. A task may start several ranks.
    """

    text: str
    rank: int | None
    task: int | None = None


def read_line(raw: str) -> JobLine:
    """Return the line's own text and the rank that wrote it. The rank of PyTorch outranks that of the launcher."""
    text, rank = _ESCAPE.sub("", raw) if "\x1b" in raw else raw, None
    label = _LABEL.match(text)
    for prefix in (_LABEL, _MPI, _TORCH):
        if match := prefix.match(text):
            text, rank = text[match.end() :], int(match[1])
    if rank is None and (match := _NAMED.search(text[:_READ])):
        rank = int(match[1])
    return JobLine(text, rank, int(label[1]) if label is not None else None)


def nccl_host(text: str) -> str:
    """Return the host that a line of NCCL names (`node7:4711:4790 [0] NCCL WARN …`); empty where it is none."""
    match = _NCCL.match(text)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Reads times. `reference`: a moment at or after all lines, which gives the year; `zone` of times without one."""

    reference: datetime
    zone: tzinfo = UTC

    def read(self, line: str) -> datetime | None:
        """Return the first time of the line's beginning in UTC; None where it has none that can be read."""
        match = _TIMES.search(line[:_READ])
        if match is None:
            return None
        try:
            return self._iso(match) if match["iso"] else self._without_zone(match)
        except ValueError:
            return None

    def _iso(self, match: re.Match[str]) -> datetime:
        found = _at(int(match["y"]), int(match["mo"]), int(match["d"]), match["iso_t"])
        return in_utc(found.replace(tzinfo=self._zone(match["zone"])))

    def _zone(self, text: str | None) -> tzinfo:
        if not text:
            return self.zone
        if text == "Z":
            return UTC
        hours, minutes = int(text[1:3]), int(text[-2:])
        return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1))

    def _without_zone(self, match: re.Match[str]) -> datetime:
        if match["g_mo"]:
            month, day, clock, year = int(match["g_mo"]), int(match["g_d"]), match["g_t"], None
        else:
            month, day = _MONTHS.index(match["c_mo"]) + 1, int(match["c_d"])
            clock, year = match["c_t"], match["c_y"]
        if year:
            return in_utc(_at(int(year), month, day, clock).replace(tzinfo=self.zone))
        local = self.reference.astimezone(self.zone)
        found = _at(local.year, month, day, clock).replace(tzinfo=self.zone)
        if found - local > STALE:
            found = _at(local.year - 1, month, day, clock).replace(tzinfo=self.zone)
        return in_utc(found)


def _at(year: int, month: int, day: int, clock: str) -> datetime:
    hours, minutes, *rest = clock.replace(",", ".").split(":")
    seconds = float(rest[0]) if rest else 0.0
    return datetime(year, month, day, int(hours), int(minutes), tzinfo=None) + timedelta(seconds=seconds)  # noqa: DTZ001 — the caller adds the zone
