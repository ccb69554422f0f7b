"""BMCs send anything: whatever one field becomes, nothing breaks and nothing is lost silently."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Inventory
from clusterctl.formats.redfish.evidence import render
from clusterctl.formats.redfish.inventory import Reading, read_inventory
from clusterctl.formats.redfish.logs import read_logs
from clusterctl.formats.redfish.reset import read_power
from clusterctl.formats.redfish.tree import Answers, Unreadable, Wanted
from tests.redfish.trees import Tree, ask, recorded, small

T = TypeVar("T")
VENDORS = ["small", "dell", "hpe", "supermicro"]
REPLACEMENTS: list[Any] = [None, 7, -1.5, float("nan"), "", "x", [], ["x"], {}, {"@odata.id": 3}, True]
LISTS = ("gpus", "hcas", "nics", "drives")


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every field below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*at, key)
        yield from places(below, (*at, key))


@cache
def machine(vendor: str) -> tuple[Tree, Inventory]:
    """The part of a tree that an inventory is made from, and that inventory; not to be changed in place."""
    whole = small() if vendor == "small" else recorded(vendor)
    seen: Tree = {}

    class Noting(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            seen[path] = whole.get(path, default)
            return seen[path]

    return seen, ask(read_inventory, Noting()).inventory


def outcome(read: Callable[[Answers], T | Wanted], tree: Tree) -> T | ClusterctlError:
    """What came out; an error of ours is an outcome too, any other is not caught."""
    try:
        return ask(read, tree)
    except ClusterctlError as error:
        return error


def acceptable(before: Inventory, found: Reading | ClusterctlError) -> None:
    """An error that names a resource, or an inventory that has lost nothing silently."""
    if isinstance(found, ClusterctlError):
        assert found.where.startswith("/redfish/v1")
    else:
        never_less(before, found.inventory)


def never_less(before: Inventory, after: Inventory) -> None:
    """Every list is None or at least as long as it was; who the machine is has not changed."""
    for name in LISTS:
        was, now = getattr(before, name), getattr(after, name)
        assert now is None or len(now) >= len(was), name
    assert after.cpu_count in (None, before.cpu_count)
    assert (after.manufacturer, after.model, after.serial) == (before.manufacturer, before.model, before.serial)


@pytest.mark.parametrize("vendor", VENDORS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_one_field_dropped_nulled_or_retyped(vendor: str, data: st.DataObject) -> None:
    """The right inventory, None for what it touches, or a typed error: never a traceback, never a shorter list."""
    tree, before = machine(vendor)
    path = data.draw(st.sampled_from(sorted(tree)), label="path")
    place = data.draw(st.sampled_from(list(places(tree[path]))), label="place")
    body = copy.deepcopy(tree[path])
    holder = body
    for key in place[:-1]:
        holder = holder[key]
    if data.draw(st.booleans(), label="drop"):
        del holder[place[-1]]
    else:
        others = [value for value in REPLACEMENTS if type(value) is not type(holder[place[-1]])]
        holder[place[-1]] = data.draw(st.sampled_from(others), label="value")
    acceptable(before, outcome(read_inventory, {**tree, path: body}))
    render({path: body})


@pytest.mark.parametrize("vendor", VENDORS)
def test_any_one_resource_lost(vendor: str) -> None:
    """Each resource that the BMC does not give leaves its lists unmeasured, and says so, or is a typed error."""
    tree, before = machine(vendor)
    for path in tree:
        found = outcome(read_inventory, {**tree, path: Unreadable("HTTP 500")})
        acceptable(before, found)
        assert isinstance(found, ClusterctlError) or found.problems


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_logs_and_power_from_mutated_resources(data: st.DataObject) -> None:
    """Also the event log and the power state end in a value or a typed error."""
    tree = small()
    path = data.draw(st.sampled_from(sorted(tree)), label="path")
    place = data.draw(st.sampled_from(list(places(tree[path]))), label="place")
    holder = tree[path]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = data.draw(st.sampled_from(REPLACEMENTS), label="value")
    for read in (read_logs, read_power):
        found = outcome(read, tree)
        assert not isinstance(found, ClusterctlError) or found.where.startswith("/redfish/v1")
