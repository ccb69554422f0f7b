"""Natural order: numbers by value."""

from __future__ import annotations

import re
from functools import lru_cache

_PIECES = re.compile(r"[0-9]+|[^0-9]+")
_TEXT = -1


@lru_cache(maxsize=1 << 14)
def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key: `leaf-9` comes before `leaf-10`, and numbers of any length after nothing and after
    text.
    """
    return tuple(_piece(piece) for piece in _PIECES.findall(text))


def _piece(text: str) -> tuple[int, str]:
    """Return a sort key: numbers without leading zeros compare by their length, then by their digits."""
    number = text.lstrip("0")
    return (len(number), number) if text.isascii() and text.isdigit() else (_TEXT, text)
