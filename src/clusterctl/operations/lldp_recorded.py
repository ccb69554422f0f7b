"""What devices hear by LLDP, from files that were recorded on them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.lldp import LldpReport
from clusterctl.formats.file_text import text_in
from clusterctl.formats.host.lldp import parse_lldpctl
from clusterctl.operations.documents import as_usage, content


def recorded_reports(recorded: Iterable[Path]) -> dict[str, LldpReport]:
    """By device. A device may have two files: `node001.json` what it hears, `node001.interfaces.json` its own ports."""
    reports: dict[str, LldpReport] = {}
    for file in _files(recorded):
        with as_usage():
            report = parse_lldpctl(text_in(content(file), str(file)), file=str(file))
        device = _device(file)
        known = reports.get(device, LldpReport(()))
        neighbours = tuple(dict.fromkeys((*known.neighbours, *report.neighbours)))
        reports[device] = LldpReport(neighbours, {**known.interfaces, **report.interfaces})
    return reports


def _files(recorded: Iterable[Path]) -> list[Path]:
    files: list[Path] = []
    for path in recorded:
        found = sorted([*path.glob("*.json"), *path.glob("*.json.gz")]) if path.is_dir() else [path]
        if not found:
            remedy = "put what `lldpctl -f json0` printed on each device there, as DEVICE.json"
            raise UsageError("no *.json in it", where=str(path), remedy=remedy)
        files += found
    return files


def _device(file: Path) -> str:
    name = file.name
    for suffix in (".gz", ".json", ".interfaces"):
        name = name.removesuffix(suffix)
    return name
