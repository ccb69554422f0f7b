"""Times of peers in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def in_utc(at: datetime) -> datetime:
    """Return a time with a zone in UTC. Raise `ValueError` where that is before the year 1 or after 9999."""
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{at} is out of range in UTC") from error
