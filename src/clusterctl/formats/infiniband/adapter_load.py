"""The document of the node's built-in `adapter-load`: adapters that wrote to themselves, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clusterctl.formats.documents import read_document


@dataclass(frozen=True, slots=True)
class AdapterFlowEnd:
    """How one end of a flow ended, and what it printed."""

    code: int
    output: str
    error: str

    @property
    def error_output(self) -> str:
        """Return the last line that it printed."""
        printed = (self.error.strip() or self.output).splitlines()
        lines = [line.strip() for line in printed if any(map(str.isalnum, line))]
        return lines[-1][:200] if lines else "it printed nothing"


@dataclass(frozen=True, slots=True)
class LoadedAdapter:
    """One adapter, and both ends of its flow."""

    name: str
    server: AdapterFlowEnd
    client: AdapterFlowEnd


@dataclass(frozen=True, slots=True)
class AdapterLoad:
    """All adapters with an active port. `trouble`: why none could be listed."""

    version: Literal[1]
    trouble: str
    adapters: tuple[LoadedAdapter, ...]


def parse_adapter_load(text: str) -> AdapterLoad:
    """Return the document. Raises `ParseError` for another one."""
    return read_document(AdapterLoad, text, "adapter-load")
