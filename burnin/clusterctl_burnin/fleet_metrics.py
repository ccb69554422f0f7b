"""The figures that are compared over the fleet, as checks and loads of one node declare them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl_burnin.check import MALFORMED, Check
from clusterctl_burnin.fleet_stats import Sample
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.registry import CHECKS, NODE_LOADS

_DECLARING: tuple[Check | NodeLoad, ...] = (*CHECKS.values(), *NODE_LOADS.values())
METRICS = {metric.name: metric for one in _DECLARING for metric in one.metrics}


def _is_number(sample: Sample) -> bool:
    """Return whether the value can be compared and kept: a host may print any digits."""
    return abs(sample.value) <= sys.float_info.max


def samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    """Yield the samples of a node; what could not be measured is left out, since its check reports that."""
    for one in _DECLARING:
        try:
            yield from (sample for sample in tuple(one.samples(node, population, readings)) if _is_number(sample))
        except (UnmeasuredError, ParseError, *MALFORMED):
            continue
