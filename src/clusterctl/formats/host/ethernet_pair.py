"""The document of the node's built-in `ethernet-pair`, and the JSON that iperf3 prints (`-J`, iperf 3.9 and later)."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import read_document, read_value

_WHERE = "ethernet-pair"
_IPERF = "iperf3 -J"
NOT_INSTALLED = 127
GIGA = 1e9


class Iperf(pydantic.BaseModel):
    """How one iperf3 ended, and what it printed."""

    code: int
    output: str
    error: str

    @property
    def failed(self) -> bool:
        """Return whether it failed: with `-J` it exits 0 all the same (iperf 3.12)."""
        return self.code != 0 or bool(self._reported)

    @property
    def complaint(self) -> str:
        """Return why it failed: the `error` of its JSON, or the last line of its output."""
        lines = (self.error.strip() or self.output.strip()).splitlines()
        return (self._reported or (lines[-1] if lines else "it printed nothing"))[:200]

    @property
    def _reported(self) -> str:
        try:
            return str(json.loads(self.output).get("error", ""))
        except (ValueError, AttributeError, RecursionError):
            return ""


class EthernetPair(pydantic.BaseModel):
    """One end of a pair: the link's speed in Mb/s (None: unknown); the client has the results of each way."""

    version: Literal[1]
    speed: Annotated[int, pydantic.Field(gt=0)] | None
    ways: tuple[tuple[Iperf, ...], ...]
    failed: tuple[Iperf, ...]


class _Sum(pydantic.BaseModel):
    bits_per_second: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


class _End(pydantic.BaseModel):
    sum_received: _Sum


class _Report(pydantic.BaseModel):
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
