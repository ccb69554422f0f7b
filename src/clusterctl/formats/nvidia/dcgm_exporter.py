"""The document of the node's built-in `dcgm-metrics`: what dcgm-exporter reports, in Prometheus' text format.

Each line of a GPU carries its UUID (github.com/NVIDIA/dcgm-exporter; with MIG one GPU has several lines of a field).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import read_document

_WHERE = "dcgm-metrics"
_LINE = re.compile(r"(?P<name>DCGM_\w+)\{(?P<labels>.*)\} (?P<value>\S+)(?: -?\d+)?")
_UUID = re.compile(r'(?:^|,)UUID="(?P<uuid>[^"]*)"')


@dataclass(frozen=True, slots=True)
class ExportedMetrics:
    """`url`: empty where the site names no exporter. `error_output`: why it did not answer. `gpus`: the values of each
    GPU by its UUID, as text by field and labels.
    """

    url: str
    error_output: str
    gpus: Mapping[str, Mapping[str, str]]

    def highest(self, uuid: str, field: str) -> float | None:
        """Return the value of a GPU's field, of several lines the highest; None where no line is a number."""
        values = (text for name, text in self.gpus.get(uuid, {}).items() if name.startswith(f"{field}{{"))
        return max((value for text in values if (value := _number(text)) is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Document:
    url: str
    complaint: str
    metrics: tuple[str, ...]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def parse_dcgm_metrics(text: str) -> ExportedMetrics:
    """Return the metrics. Raises `ParseError` for another document, or a line that is no value of a field."""
    document = read_document(_Document, text, _WHERE)
    gpus: dict[str, dict[str, str]] = {}
    for line in document.metrics:
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where=_WHERE)
        uuid = _UUID.search(found["labels"])
        if uuid is not None:
            gpus.setdefault(uuid["uuid"], {})[f"{found['name']}{{{found['labels']}}}"] = found["value"]
    return ExportedMetrics(document.url, document.complaint, gpus)
