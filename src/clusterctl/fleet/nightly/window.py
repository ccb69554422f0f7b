"""The hours of a site's day in which its nodes may be taken for tests. Pure: the time zone is an argument."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from clusterctl.fleet.errors import UsageError

FORM = "write it as 02:00-05:00, in the site's time zone"
_FORM = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Opening:
    """One night's window: aware moments in UTC, `end` not included."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` to `end` by the clocks of `zone`, each day; over midnight where `end` is the earlier one."""

    start: time
    end: time
    zone: tzinfo

    def at(self, now: datetime) -> Opening | None:
        """Return the opening that contains `now` (aware); None outside. Days on which clocks change have 23 or 25 h."""
        today = now.astimezone(self.zone).date()
        both = (self._of(today - timedelta(days=1)), self._of(today))
        return next((opening for opening in both if opening.start <= now < opening.end), None)

    @property
    def usual(self) -> timedelta:
        """Its length on a day without a change of clocks."""
        day = date(2000, 1, 1)
        end = day if self.end > self.start else day + timedelta(days=1)
        return datetime.combine(end, self.end) - datetime.combine(day, self.start)

    def __str__(self) -> str:
        return f"{self.start:%H:%M}-{self.end:%H:%M} {self.zone}"

    def _of(self, day: date) -> Opening:
        """Return the opening that begins on `day`."""
        last = day if self.end > self.start else day + timedelta(days=1)
        start = datetime.combine(day, self.start, self.zone)
        return Opening(start.astimezone(UTC), datetime.combine(last, self.end, self.zone).astimezone(UTC))


def parse_window(text: str, zone: tzinfo, *, where: str) -> Window:
    """Return the window of a text such as `02:00-05:00`; raise `UsageError` at `where`."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is no window", where=where, remedy=FORM)
    hours = [int(part) for part in found.groups()]
    start, end = time(hours[0], hours[1]), time(hours[2], hours[3])
    if start == end:
        raise UsageError(f"{text!r} begins where it ends", where=where, remedy=FORM)
    return Window(start, end, zone)
