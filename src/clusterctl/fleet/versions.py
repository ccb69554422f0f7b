"""Which of two versions is the later one: only where both are plain numbers with dots, never guessed."""

from __future__ import annotations

import re

_NUMBERS = re.compile(r"v?(\d{1,9}(?:\.\d{1,9}){0,9})", re.IGNORECASE)


def compare(one: str, other: str) -> int | None:
    """Below, at or above 0 as `one` is earlier, the same or later; None where that cannot be told."""
    a, b = (_NUMBERS.fullmatch(text.strip()) for text in (one, other))
    if a is None or b is None:
        return None
    left, right = ([int(number) for number in found[1].split(".")] for found in (a, b))
    length = max(len(left), len(right))
    left, right = (numbers + [0] * (length - len(numbers)) for numbers in (left, right))
    return (left > right) - (left < right)


def comparable(text: str) -> bool:
    return _NUMBERS.fullmatch(text.strip()) is not None
