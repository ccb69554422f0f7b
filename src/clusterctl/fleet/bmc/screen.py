"""What a machine shows, as its BMC gives it: a picture of its screen, or the last lines of its serial console.

Both come from a peer: they are kept as evidence and decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_PICTURE = 4 << 20
"""Bytes: a screen of 1920 x 1200 as PNG or JPEG has a quarter of it at most; longer ones are refused."""
MAX_CONSOLE = 64 << 10
TEXT = "text"
_KINDS = {b"\x89PNG\r\n\x1a\n": "PNG", b"\xff\xd8\xff": "JPEG", b"BM": "BMP"}
"""Kind of a picture by the first bytes of its file."""


@dataclass(frozen=True, slots=True)
class Screen:
    """`kind` is PNG, JPEG, BMP or `text`; `content` the picture's file, or UTF-8."""

    kind: str
    content: bytes


def kind_of(content: bytes) -> str:
    """Return the kind of a picture by its first bytes; empty where it is none."""
    return next((kind for begin, kind in _KINDS.items() if content.startswith(begin)), "")


def picture(content: bytes) -> Screen | None:
    """Return the picture; None where it is none, or is too large."""
    kind = kind_of(content) if len(content) <= MAX_PICTURE else ""
    return Screen(kind, content) if kind else None


def console(lines: list[str]) -> Screen | None:
    """Return the last lines of a console, as many as may be kept; None where there are none."""
    text = "\n".join(lines).encode("utf-8", "replace")[-MAX_CONSOLE:]
    return Screen(TEXT, text) if text.strip() else None
