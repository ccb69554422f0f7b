"""What imports from NetBox and exports to it wrote: `state/netbox/import.json` and `export.json`.

By these an operator's own changes, in the sheet or in NetBox, are known from ours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusterctl.edges.disk import write_over
from clusterctl.edges.site.textfile import read_bytes
from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.formats.peer_json import JsonLimits, read_json

VERSION = 1
LIMITS = JsonLimits(size=256 << 20, values=5_000_000)
Values = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """What the last import wrote.

    source  NetBox's URL and site: with others the ids mean other machines
    nodes   the cells that were written, by NetBox's id of the device
    files   the SHA-256 of each plan that was written, by its name
    """

    source: str
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def write(self, file: Path) -> None:
        """Write whole or not at all."""
        _write(file, {"source": self.source, "nodes": self.nodes, "files": self.files})


@dataclass(slots=True, kw_only=True)
class ExportRecord:
    """What the exports wrote.

    written  the values by NetBox's id of the device and our name of the field
    pending  the same, noted before the first request of an export: a value that NetBox has of it is ours, also after a
             kill
    """

    source: str
    written: Values = field(default_factory=dict)
    pending: Values = field(default_factory=dict)

    def base(self, device: int, name: str) -> str | None:
        """Return the value that an export has last written; None where it wrote none."""
        return self.written.get(str(device), {}).get(name)

    def is_ours(self, device: int, name: str, value: str) -> bool:
        """Return whether an export has written a value, or may have when it was killed."""
        return value in (self.base(device, name), self.pending.get(str(device), {}).get(name))

    def intend(self, device: int, name: str, value: str) -> None:
        """Note a value that is about to be written."""
        self.pending.setdefault(str(device), {})[name] = value

    def settle(self, device: int, name: str, value: str) -> None:
        """Note a value that NetBox has of us."""
        self.written.setdefault(str(device), {})[name] = value
        self.pending.get(str(device), {}).pop(name, None)

    def write(self, file: Path) -> None:
        """Write whole or not at all."""
        pending = {device: values for device, values in self.pending.items() if values}
        _write(file, {"source": self.source, "written": self.written, "pending": pending})


def import_file(folder: Path) -> Path:
    """Return the place of the record of imports in a site."""
    return folder / "state" / "netbox" / "import.json"


def export_file(folder: Path) -> Path:
    """Return the place of the record of exports in a site."""
    return folder / "state" / "netbox" / "export.json"


def read_import_record(file: Path, source: str) -> ImportRecord:
    """Return the record; an empty one where there is none, or it is of another source. Raise `UsageError`."""
    remedy = "restore it from a copy, or remove it: then every cell that differs counts as changed by hand"
    found = _read(file, source, "an import", remedy)
    return ImportRecord(source=source, nodes=_values(found.get("nodes")), files=_texts(found.get("files")))


def read_export_record(file: Path, source: str) -> ExportRecord:
    """Return the record; an empty one where there is none, or it is of another source. Raise `UsageError`."""
    remedy = "restore it from a copy, or remove it: then every value of NetBox counts as not changed by an operator"
    found = _read(file, source, "an export", remedy)
    return ExportRecord(source=source, written=_values(found.get("written")), pending=_values(found.get("pending")))


def digest(content: bytes) -> str:
    """Return the SHA-256 by which a file of an import is known again."""
    return hashlib.sha256(content).hexdigest()


def _write(file: Path, content: Mapping[str, object]) -> None:
    document = {"version": VERSION, **content}
    write_over(file, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())


def _read(file: Path, source: str, what: str, remedy: str) -> Mapping[str, Any]:
    """Return the file's document; an empty one where there is no file, or it is of another source."""
    if not file.exists():
        return {}
    try:
        document = read_json(read_bytes(file, max_bytes=LIMITS.size), LIMITS)
    except ParseError as error:
        raise UsageError(error.message, where=str(file), remedy=remedy) from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise UsageError(f"is no record of {what} of this version", where=str(file), remedy=remedy)
    return document if document.get("source") == source else {}


def _values(found: Any) -> Values:
    return {id_: _texts(values) for id_, values in _mapping(found).items()}


def _texts(found: Any) -> dict[str, str]:
    return {name: value for name, value in _mapping(found).items() if isinstance(value, str)}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
