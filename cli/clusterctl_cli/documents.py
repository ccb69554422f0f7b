"""What a command gives away: one JSON document on stdout, or a file that a person named."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.fleet.errors import UsageError


def print_document(document: Mapping[str, object]) -> None:
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def write_document(file: Path, text: str, *, option: str, force: bool) -> None:
    """Whole or not at all. Raises UsageError where something is there already, unless `force` replaces it."""
    if file.exists() and not force:
        remedy = f"choose another {option}, or replace it with --force"
        raise UsageError("is there already", where=str(file), remedy=remedy)
    with disk_explained("the file cannot be written", file):
        write_whole(file, text.encode(), mode=0o644, over=True)
