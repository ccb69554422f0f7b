"""What the exports wrote: `state/netbox/export.json`. By it a person's own changes in NetBox are known from ours.

`pending` is written before the first request of an export: a value that NetBox has of it is ours, also after a kill.
"""

from __future__ import annotations

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


@dataclass(slots=True, kw_only=True)
class ExportRecord:
    """written, pending  the values by NetBox's id of the device and our name of the field"""

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
        document = {"version": VERSION, "source": self.source, "written": self.written, "pending": pending}
        write_over(file, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())


def export_file(folder: Path) -> Path:
    """Return the place of the record in a site."""
    return folder / "state" / "netbox" / "export.json"


def read_export_record(file: Path, source: str) -> ExportRecord:
    """Return the record; an empty one where there is none, or it is of another source. Raise `UsageError`."""
    if not file.exists():
        return ExportRecord(source=source)
    remedy = "restore it from a copy, or remove it: then every value of NetBox counts as not changed by a person"
    try:
        document = read_json(read_bytes(file, max_bytes=LIMITS.size), LIMITS)
    except ParseError as error:
        raise UsageError(error.message, where=str(file), remedy=remedy) from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise UsageError("is no record of an export of this version", where=str(file), remedy=remedy)
    if document.get("source") != source:
        return ExportRecord(source=source)
    values = {name: _values(document.get(name)) for name in ("written", "pending")}
    return ExportRecord(source=source, **values)


def _values(found: Any) -> Values:
    devices: Mapping[str, Any] = found if isinstance(found, dict) else {}
    return {
        device: {name: value for name, value in values.items() if isinstance(value, str)}
        for device, values in devices.items()
        if isinstance(values, dict)
    }
