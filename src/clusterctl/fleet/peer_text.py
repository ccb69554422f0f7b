"""Text from peers (BMCs, hosts, MAAS, networks, files) and how it is shown: what a terminal would act on, or a reader
would not see, is visible; the length is bounded.

Text passes here where it enters, and once more where it leaves: an older journal, a file or an error may hold any text.
"""

from __future__ import annotations

import functools
import re
import unicodedata

MAX_LINE = 1000
"""Characters of a line that is shown."""
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1, but tabulator and line end
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # without width
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"  # zero width, bidi
    "\ud800-\udfff"  # surrogates
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff"  # tags, selectors, private use
)
_MARKS = 4
"""Combining marks that one letter may have; more would cover the lines above and below."""
_MAY_BE_MARKS = "\u0300-\u1fff\u20d0-\u20ff\u2cef-\u2fff\u302a-\u309f\ua66f-\U0010ffff"
"""The ranges that have combining marks. Most text has no row of more than `_MARKS` of these characters."""
_LINES = str.maketrans("\t\n", "  ")


@functools.cache
def _row_of(characters: str, length: int = 1) -> re.Pattern[str]:
    """Return the pattern of so many of these characters. Compiled at its first use: it takes a millisecond, and most
    commands print plain ASCII.
    """
    return re.compile(f"[{characters}]{{{length}}}")


def visible(text: str, limit: int | None = None) -> str:
    r"""Return the text with escapes (`\x1b`, `\u202e`) for control, bidi, zero-width and surrogate characters.

    Tabulators and line ends stay. A text longer than `limit` ends in `…`.
    """
    if limit is not None and len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isascii() and (text.isprintable() or text.translate(_LINES).isprintable()):
        return text
    shown = _row_of(_HIDDEN).sub(_escape, _row_of(_SPACES).sub(" ", text.replace("\r\n", "\n")))
    return shown if shown.isascii() else _without_stacks(shown)


def visible_line(text: str, limit: int = MAX_LINE) -> str:
    """Return the text as one line: `visible`, with each run of blanks as one space."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text and text.strip(" ") == text:
        return text  # nearly always: tables of a fleet have tens of thousands of cells
    text = text if len(text) <= 2 * limit else text[: 2 * limit] + "…"
    return visible(" ".join(visible(text).split()), limit)


def visible_json(document: str) -> str:
    r"""Return a JSON document with the same values, in which each character that `visible` escapes is `\uXXXX`."""
    if document.isascii() and "\x7f" not in document:
        return document
    return _row_of(_HIDDEN + _SPACES).sub(_json_escape, document)


def has_unseen(text: str) -> bool:
    """Return whether the text has a character that `visible` escapes."""
    return _row_of(_HIDDEN).search(text) is not None


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _json_escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if found[0] in "\n\t\r" or number < 0x20:
        return found[0]  # between values: inside of strings JSON has escaped them
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"


def _without_stacks(text: str) -> str:
    """Return the text without more than `_MARKS` combining marks on one letter."""
    if _row_of(_MAY_BE_MARKS, _MARKS + 1).search(text) is None:
        return text
    kept: list[str] = []
    marks = 0
    for letter in text:
        marks = marks + 1 if unicodedata.combining(letter) else 0
        if marks <= _MARKS:
            kept.append(letter)
    return "".join(kept)
