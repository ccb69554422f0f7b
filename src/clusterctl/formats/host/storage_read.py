"""The document of the node's built-in `storage-read`: how much each reader read from the site's storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterctl.formats.documents import Count, Figure, read_document

_BITS = 8
_GIGA = 1e9


@dataclass(frozen=True, slots=True)
class StorageReader:
    """One reader: the bytes that it read, how long it read, and why it could not go on (empty: it could)."""

    bytes: Count
    seconds: Figure
    trouble: str


@dataclass(frozen=True, slots=True)
class StorageRead:
    """All readers. `source` is empty where the site names no storage; `least_gbps` is the rate that it asks for."""

    version: Literal[1]
    source: str
    least_gbps: Figure
    readers: tuple[StorageReader, ...]

    @property
    def trouble(self) -> str:
        """Return why a reader could not read, or not to the end; empty where all could."""
        return next((one.trouble for one in self.readers if one.trouble), "")

    @property
    def gbps(self) -> float:
        """Return the rate of all readers together in Gb/s (10**9 bits); 0 where nothing was read."""
        seconds = max((one.seconds for one in self.readers), default=0.0)
        return sum(one.bytes for one in self.readers) * _BITS / _GIGA / seconds if seconds else 0.0


def parse_storage_read(text: str) -> StorageRead:
    """Return the document. Raises `ParseError` for another one."""
    return read_document(StorageRead, text, "storage-read")
