"""What subiquity reports while it installs (curtin's web hook), in words for a milestone."""

from __future__ import annotations

import json
import re
from typing import Any

LONGEST = 300
_TOKEN = re.compile(r"/t/[0-9a-f]{16,}")
_ASKED = re.compile(r"_(GET|POST|PUT|DELETE)$")
"""Ends the name of what subiquity's own screen asks of its server, over and over."""


def words_of(body: bytes | str) -> str:
    """One line: `start subiquity/Late/run`; empty where the report is not understood, or tells nothing new: that a step
    which was told to begin came to a good end.

    The keys are curtin's: `event_type` (start, finish, …), `name` (where in the installer), `description` (the text of
    a command, too), `result` of what finished, `level`, `origin`, `timestamp`. Never raises: reports are best effort.
    """
    try:
        report = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(report, dict):
        return ""
    event, name, description, result = (_text(report, key) for key in ("event_type", "name", "description", "result"))
    if _ASKED.search(name) or (event, result) == ("finish", "SUCCESS"):
        return ""
    about = "" if description == name else description
    words = ": ".join(part for part in (f"{event} {name}".strip(), result, about) if part)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def _text(report: dict[str, Any], key: str) -> str:
    """The first line of a value, without what is not printable and without tokens."""
    value = report.get(key)
    lines = value.strip().splitlines() if isinstance(value, str) else []
    line = "".join(letter if letter.isprintable() else " " for letter in lines[0][: 4 * LONGEST]) if lines else ""
    return _TOKEN.sub("/t/…", line)
