"""The record of the nights, as files: `state/nightly.json`, and metrics where the site wants them."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.nightly.record import NightRecord, metrics

FILE = "nightly.json"


def read_record(state: Path) -> NightRecord | None:
    """Return the record; None before the first night. Raise `EnvironmentBrokenError` for a file of another program."""
    file = state / FILE
    try:
        with disk_explained("the record of the nights cannot be read", file):
            return TypeAdapter(NightRecord).validate_json(file.read_bytes()) if file.exists() else None
    except ValidationError:
        remedy = "remove it: the next night writes it again"
        raise EnvironmentBrokenError("it is no record of nights", where=str(file), remedy=remedy) from None


def write_record(state: Path, record: NightRecord, metrics_file: Path | None) -> None:
    """Write whole or not at all; the metrics are readable for the collector."""
    file = state / FILE
    with disk_explained("the record of the nights cannot be written", file):
        write_whole(file, TypeAdapter(NightRecord).dump_json(record), mode=0o600, over=True)
    if metrics_file is not None:
        with disk_explained("the metrics cannot be written", metrics_file):
            write_whole(metrics_file, metrics(record).encode(), mode=0o644, over=True)
