"""Files as a tool reads them: without `pathlib`, whose import would cost every tool more than its own work."""

from __future__ import annotations


def text_of(path: str) -> str:
    """Empty where there is no such file."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 — see above
            return file.read()
    except FileNotFoundError:
        return ""
