"""Regular expressions that an operator writes."""

from __future__ import annotations

import re


def compiled(text: object, flags: int = 0) -> re.Pattern[str]:
    """Return the expression. Raise `ValueError` for whatever is none: too deep, too large, and what is no text."""
    if not isinstance(text, str):
        raise ValueError("no regular expression: it is no text")  # noqa: TRY004 — pydantic reports a ValueError
    try:
        return re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from error
