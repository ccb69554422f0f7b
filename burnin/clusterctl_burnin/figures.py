"""A node's figures as the journal keeps them, for comparisons with the nodes of its SKU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from clusterctl.fleet.payloads.node import Figure
from clusterctl_burnin.fleet_metrics import METRICS
from clusterctl_burnin.fleet_stats import Sample


def to_payload(samples: Iterable[Sample]) -> tuple[Figure, ...]:
    """Return the samples as an event's payload has them."""
    return tuple(
        Figure(metric=one.metric.name, subject=one.subject, serial=one.serial, value=one.value) for one in samples
    )


def from_payload(node: str, population: str, figures: Iterable[Figure]) -> Iterator[Sample]:
    """Yield the samples of a node. Figures of metrics that are no longer compared are left out."""
    for figure in figures:
        metric = METRICS.get(figure.metric)
        if metric is not None:
            yield Sample(node, metric, figure.value, population, figure.subject, figure.serial)
