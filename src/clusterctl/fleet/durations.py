"""Until when a person's word counts: `2026-12-01`, `2026-12-01T18:00`, `12h`, `3d`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.errors import UsageError

FORMS = "give a date (2026-12-01), a time (2026-12-01T18:00, UTC unless it says otherwise) or a span (12h, 3d, 2w)"
_SPAN = re.compile(r"(\d{1,4})(min|h|d|w)")
_UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_until(text: str, now: datetime, *, longest: timedelta | None = None) -> datetime:
    """The moment that `text` names, in UTC; a date means its first moment.

    Raises `UsageError` for what is no moment, is not to come, or lies further off than `longest`.
    """
    moment = _moment(text.strip(), now)
    if moment <= now:
        raise UsageError(f"{text} is {in_words(moment)}, which is past", where="--until", remedy=FORMS)
    if longest is not None and moment - now > longest:
        remedy = f"give at most {longest.days}d; it can be said again before it ends"
        raise UsageError(f"{text} is more than {longest.days} days from now", where="--until", remedy=remedy)
    return moment


def in_words(moment: datetime) -> str:
    """`2026-12-01 18:00 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _moment(text: str, now: datetime) -> datetime:
    span = _SPAN.fullmatch(text)
    if span is not None:
        return now + int(span[1]) * _UNITS[span[2]]
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is no moment", where="--until", remedy=FORMS) from None
