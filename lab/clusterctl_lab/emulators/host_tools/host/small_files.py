"""Reads files without `pathlib`, whose import takes longer than the rest of a tool's run."""

from __future__ import annotations


def text_of(path: str) -> str:
    """Return the file's text, empty where there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 — see above
            return file.read()
    except FileNotFoundError:
        return ""
