"""A node's figures as JSON-able data, and back: what the journal keeps of them for comparisons with the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl_burnin.fleet_metrics import METRICS
from clusterctl_burnin.fleet_stats import Sample


def to_data(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    return [
        {"metric": one.metric.name, "subject": one.subject, "serial": one.serial, "value": one.value} for one in samples
    ]


def from_data(node: str, population: str, figures: Iterable[Mapping[str, Any]]) -> Iterator[Sample]:
    """Figures of metrics that are compared no more are left out. Raises ParseError for what are no figures."""
    for figure in figures:
        try:
            metric, value = METRICS.get(str(figure["metric"])), float(figure["value"])
            subject, serial = str(figure["subject"]), str(figure["serial"])
        except (KeyError, TypeError, ValueError) as error:
            raise ParseError(f"this is no figure of a node: {figure}") from error
        if metric is not None:
            yield Sample(node, metric, value, population, subject, serial)
