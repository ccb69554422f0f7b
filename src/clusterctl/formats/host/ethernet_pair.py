"""The document of the node's built-in `ethernet-pair`, and the JSON that iperf3 prints (`-J`, iperf 3.9 and later)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Figure, Within, read_document, read_value

_WHERE = "ethernet-pair"
_IPERF = "iperf3 -J"
NOT_INSTALLED = 127
GIGA = 1e9


@dataclass(frozen=True, slots=True)
class Iperf:
    """How one iperf3 ended, and what it printed."""

    code: int
    output: str
    error: str

    @property
    def failed(self) -> bool:
        """Return whether it failed: with `-J` it exits 0 all the same (iperf 3.12)."""
        return self.code != 0 or bool(self._reported)

    @property
    def error_output(self) -> str:
        """Return why it failed: the `error` of its JSON, or the last line of its output."""
        lines = (self.error.strip() or self.output.strip()).splitlines()
        return (self._reported or (lines[-1] if lines else "it printed nothing"))[:200]

    @property
    def _reported(self) -> str:
        try:
            return str(json.loads(self.output).get("error", ""))
        except (ValueError, AttributeError, RecursionError):
            return ""


@dataclass(frozen=True, slots=True)
class EthernetPair:
    """One end of a pair: the link's speed in Mb/s (None: unknown); the client has the results of each way."""

    version: Literal[1]
    speed: Annotated[int, Within(gt=0)] | None
    ways: tuple[tuple[Iperf, ...], ...]
    failed: tuple[Iperf, ...]


@dataclass(frozen=True, slots=True)
class _Sum:
    bits_per_second: Figure


@dataclass(frozen=True, slots=True)
class _End:
    sum_received: _Sum


@dataclass(frozen=True, slots=True)
class _Report:
    end: _End


def parse_ethernet_pair(text: str) -> EthernetPair:
    """Return the document. Raises `ParseError` for another one."""
    return read_document(EthernetPair, text, _WHERE)


def received_gbps(text: str) -> float:
    """Return the rate (Gb/s) that the receiving end counted. Raises `ParseError`."""
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        raise ParseError("no JSON", where=_IPERF) from None
    return read_value(_Report, report, _IPERF).end.sum_received.bits_per_second / GIGA
