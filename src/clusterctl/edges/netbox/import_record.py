"""What the last import wrote: `state/netbox/import.json`. By it an operator's own changes are known from NetBox's."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRecord:
    """source  NetBox's URL and site: with others the ids mean other machines
    nodes   the cells that were written, by NetBox's id of the device
    files   the SHA-256 of each plan that was written, by its name
    """

    source: str
    nodes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def write(self, file: Path) -> None:
        """Write whole or not at all."""
        document = {"version": VERSION, "source": self.source, "nodes": self.nodes, "files": self.files}
        write_over(file, (json.dumps(document, indent=1, sort_keys=True) + "\n").encode())


def record_file(folder: Path) -> Path:
    """Return the place of the record in a site."""
    return folder / "state" / "netbox" / "import.json"


def read_record(file: Path, source: str) -> ImportRecord:
    """Return the record; an empty one where there is none, or it is of another source. Raise `UsageError`."""
    if not file.exists():
        return ImportRecord(source=source)
    remedy = "restore it from a copy, or remove it: then every cell that differs counts as changed by hand"
    try:
        document = read_json(read_bytes(file, max_bytes=LIMITS.size), LIMITS)
    except ParseError as error:
        raise UsageError(error.message, where=str(file), remedy=remedy) from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise UsageError("is no record of an import of this version", where=str(file), remedy=remedy)
    if document.get("source") != source:
        return ImportRecord(source=source)
    nodes = {id_: _texts(cells) for id_, cells in _mapping(document.get("nodes")).items()}
    return ImportRecord(source=source, nodes=nodes, files=_texts(document.get("files")))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> Mapping[str, str]:
    return {name: one for name, one in _mapping(value).items() if isinstance(one, str)}


def digest(content: bytes) -> str:
    """Return the SHA-256 by which a file of an import is known again."""
    return hashlib.sha256(content).hexdigest()
