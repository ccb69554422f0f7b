"""Requests, previews, events and results as JSON: a web page or a queue carries them to a worker and back."""

from __future__ import annotations

import collections.abc
import dataclasses
import importlib
import json
import pkgutil
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterctl import operations
from clusterctl.operations.serial import from_data, to_data

WORKING = {
    "BadLink",
    "Control",  # callbacks
    "DisablePlan",
    "Expectations",
    "ExpectedParts",
    "Feature",
    "FleetMetrics",
    "FleetSnapshot",
    "GoldPool",
    "ImportPlan",
    "KnownHosts",
    "KnownSerials",
    "LinkBurner",
    "NOTHING",
    "NightRun",
    "NodeChanger",
    "NodeOperation",
    "PartnerLender",
    "RunPart",
    "SharedLimits",
    "Rollout",
    "Selection",
    "SiteContext",
    "StepEnds",
    "SwitchServices",
    "SwitchSoftware",
    "UfmRestart",
    "WavePlan",
    "WaveRun",
    "Work",
    "Worker",
}
"""Objects that an operation works with."""

JSON = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=5)


def mappings(kind: type) -> st.SearchStrategy[dict[object, object]]:
    keys, values = typing.get_args(kind)
    return st.dictionaries(st.from_type(keys), JSON if values is typing.Any else st.from_type(values), max_size=2)


def tuples(kind: type) -> st.SearchStrategy[tuple[object, ...]]:
    """A report has tuples of tuples of tuples: two of each are enough."""
    match typing.get_args(kind):
        case (values, end) if end is ...:
            return st.lists(st.from_type(values), max_size=2).map(tuple)
        case values:
            return st.tuples(*map(st.from_type, values))


st.register_type_strategy(collections.abc.Mapping, mappings)
st.register_type_strategy(tuple, tuples)
st.register_type_strategy(Path, st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8})?", fullmatch=True).map(Path))
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))


def carried() -> Iterator[type]:
    """Yield each dataclass that a front end sends to an operation or receives from one."""
    for module in pkgutil.iter_modules(operations.__path__):
        found = importlib.import_module(f"{operations.__name__}.{module.name}")
        for name, kind in vars(found).items():
            public = dataclasses.is_dataclass(kind) and kind.__module__ == found.__name__ and not name.startswith("_")
            if public and name not in WORKING:
                yield kind


@pytest.mark.parametrize("kind", list(carried()), ids=lambda kind: kind.__name__)
def test_what_is_carried_comes_back_as_it_was(kind: type) -> None:
    """Through JSON text, whatever its fields hold."""

    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.from_type(kind))
    def check(value: object) -> None:
        assert from_data(kind, json.loads(json.dumps(to_data(value)))) == value

    check()
