"""What InfiniBand tools print in place of what they were asked for, or on their stderr, in our words."""

from __future__ import annotations

_MISTAKES = {
    "duplicate": "two devices have one GUID, of which tools silently drop one: mend that first",
    "ibpanic": "the tool gave up",
    "iberror": "the tool failed",
    "ibwarn": "the tool complained",
    "can't": "the tool failed",
    "failed": "the tool failed",
    "err ": "a log's complaint",
}


def not_understood(line: str) -> str:
    """Why a line is refused."""
    lowered = line.lower()
    why = next((why for sign, why in _MISTAKES.items() if sign in lowered), "line not understood")
    return f"{why}: {line[:80]!r}"
