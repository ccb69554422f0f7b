"""Which texts are numbers."""

from __future__ import annotations

DIGITS = 9


def is_number(text: str, most: int = DIGITS) -> bool:
    """Return whether the text is a number of at most `most` ASCII digits, which `int` reads.

    `str.isdigit` also accepts `²`, which `int` refuses, digits of other scripts, and more digits than `int` takes.
    """
    return text.isascii() and text.isdigit() and len(text) <= most
