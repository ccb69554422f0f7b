"""Durations and moments as operators write them: `90s`, `12h`, `3d`; `2026-12-01`, `2026-12-01T18:00`."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from clusterctl.fleet.errors import UsageError

FORMS = "give a date (2026-12-01), a time (2026-12-01T18:00, UTC by default) or a duration (12h, 3d, 2w)"
PAST_FORMS = (
    "give a duration before now (30min, 4h, 2d), a date (2026-12-01) or a time (2026-12-01T18:00, UTC by default)"
)
_LAST_SECOND = time(23, 59, 59)
_DURATION = re.compile(r"(\d{1,6})(s|min|h|d|w)")
_UNITS = {
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}


def parse_duration(text: str) -> timedelta | None:
    """Return the duration that `text` names (`90s`, `10min`, `4h`, `1d`, `2w`); None where it names none."""
    found = _DURATION.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2]] if found else None


def parse_until(text: str, now: datetime, *, longest: timedelta | None = None) -> datetime:
    """Return the moment that `text` names, in UTC; a date means its first moment, a duration begins now.

    Raises `UsageError` for what is no moment, is not to come, or is further off than `longest`.
    """
    moment = _moment(text.strip(), now, "--until", FORMS)
    if moment <= now:
        raise UsageError(f"{text} is {utc_text(moment)}, which is past", where="--until", remedy=FORMS)
    if longest is not None and moment - now > longest:
        remedy = f"give at most {longest.days}d; it can be repeated before it ends"
        raise UsageError(f"{text} is more than {longest.days} days from now", where="--until", remedy=remedy)
    return moment


def parse_due(text: str, now: datetime, *, longest: timedelta) -> datetime:
    """Return the moment until which something is due, in UTC: a date means its last second. Raises `UsageError`."""
    try:
        day = datetime.combine(date.fromisoformat(text.strip()), _LAST_SECOND, UTC)
    except ValueError:
        return parse_until(text, now, longest=longest)
    return parse_until(day.isoformat(), now, longest=longest)


def fixed_until(text: str, now: datetime) -> str:
    """Return a duration from now as the moment at which it ends; other text as it is.

    What an operator approves has to name a moment: a duration would end later with each look at the clock.
    """
    duration = parse_duration(text)
    try:
        return text if duration is None else (now + duration).astimezone(UTC).isoformat(timespec="seconds")
    except OverflowError:
        return text


def parse_past(text: str, now: datetime, *, where: str) -> datetime:
    """Return the moment that `text` names, in UTC; a date means its first moment, a duration ends now.

    Raises `UsageError` for what is no moment, or is still to come.
    """
    duration = parse_duration(text)
    try:
        moment = now - duration if duration is not None else _moment(text.strip(), now, where, PAST_FORMS)
    except OverflowError:
        raise UsageError(f"{text!r} is no moment", where=where, remedy=PAST_FORMS) from None
    if moment > now:
        raise UsageError(f"{text} is {utc_text(moment)}, which is still to come", where=where, remedy=PAST_FORMS)
    return moment


def utc_text(moment: datetime) -> str:
    """Return the moment like `2026-12-01 18:00 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _moment(text: str, now: datetime, where: str, forms: str) -> datetime:
    try:
        duration = parse_duration(text)
        if duration is not None:
            return now + duration
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no moment", where=where, remedy=forms) from None
