"""Files that an operator names on a command line, and text without secrets."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.redaction import KNOWN
from clusterctl.fleet.errors import UsageError


def redacted(text: str) -> str:
    """Return the text without any secret that this process has read."""
    return KNOWN(text)


def write_document(file: Path, text: str, *, option: str, force: bool) -> None:
    """Write a file whole or not at all. Raises `UsageError` where it exists, unless `force` replaces it."""
    if file.exists() and not force:
        remedy = f"choose another {option}, or replace it with --force"
        raise UsageError("the file exists already", where=str(file), remedy=remedy)
    with disk_explained("the file cannot be written", file):
        write_whole(file, text.encode(), mode=0o644, over=True)
