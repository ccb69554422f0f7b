"""What stood in a machine's event logs when they were read to their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.node import Serial


@dataclass(frozen=True, slots=True)
class LogArchive:
    """`entries`, by the log's path, are each entry's own words (id, time, message): what is in none of them is new."""

    serial: Serial
    entries: Mapping[str, frozenset[str]]

    @property
    def count(self) -> int:
        return sum(map(len, self.entries.values()))
