"""BMCs send anything: whatever one field becomes, nothing breaks and nothing is lost silently."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Inventory
from clusterctl.formats.redfish.evidence import render
from clusterctl.formats.redfish.inventory import InventoryReading, read_inventory
from clusterctl.formats.redfish.logs import read_logs
from clusterctl.formats.redfish.power import read_power
from clusterctl.formats.redfish.system import read_post
from clusterctl.formats.redfish.tree import Answers, ReadRequest, Unreadable
from clusterctl_burnin.bmc_log.judge import judge_log
from tests.edges.redfish.trees import Manner, Tree, ask, asked, dgx, recorded, small

T = TypeVar("T")
VENDORS = ["small", "dgx", "dell", "hpe", "supermicro"]
REPLACEMENTS: list[Any] = [None, 7, -1.5, float("nan"), "", "x", [], ["x"], {}, {"@odata.id": 3}, True]
LISTS = ("gpus", "hcas", "nics", "drives", "cpus", "dimms")
MANNERS = [Manner.PLAIN, Manner.EXPANDS]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every field below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*at, key)
        yield from places(below, (*at, key))


@cache
def machine(vendor: str) -> tuple[Tree, Inventory]:
    """The part of a tree that an inventory is made from, and that inventory; not to be changed in place."""
    own = {"small": small, "dgx": dgx}
    whole = own[vendor]() if vendor in own else recorded(vendor)
    found, paths = asked(read_inventory, whole)
    return {path: whole[path] for path in paths if path in whole}, found.inventory


def of_each_kind(tree: Tree) -> list[str]:
    """The first and the last path of those that differ in their numbers only."""
    kinds: dict[str, list[str]] = {}
    for path in tree:
        kinds.setdefault(re.sub(r"\d+", "#", path), []).append(path)
    return [path for alike in kinds.values() for path in dict.fromkeys((alike[0], alike[-1]))]


def outcome(
    read: Callable[[Answers], T | ReadRequest], tree: Tree, manner: Manner = Manner.PLAIN
) -> T | ClusterctlError:
    """What came out; an error of ours is an outcome too, any other is not caught."""
    try:
        return ask(read, tree, manner)
    except ClusterctlError as error:
        return error


def acceptable(before: Inventory, found: InventoryReading | ClusterctlError) -> None:
    """An error that names a resource, or an inventory that has lost nothing silently."""
    if isinstance(found, ClusterctlError):
        assert found.where.startswith("/redfish/v1")
    else:
        never_less(before, found)


def never_less(before: Inventory, found: InventoryReading) -> None:
    """Every list is None or at least as long as it was, or there is a reason; the machine's identity has not changed.

    Model and manufacturer come from the chassis where the System no longer has them.
    """
    after = found.inventory
    for name in LISTS:
        was, now = getattr(before, name) or (), getattr(after, name)
        message = name == "nics" and any(problem.startswith("nics: ") for problem in found.problems)
        assert now is None or len(now) >= len(was) or message or not after.complete(name), name
    assert after.cpu_count in (None, before.cpu_count) or not after.complete("cpu_count")
    assert after.is_machine(before.serial)


@pytest.mark.parametrize("vendor", VENDORS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_one_field_dropped_nulled_retyped_or_nested(vendor: str, data: st.DataObject) -> None:
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
        was = holder[place[-1]]
        others = [value for value in REPLACEMENTS if type(value) is not type(was)]
        holder[place[-1]] = data.draw(st.sampled_from([*others, [was], {"Value": was}]), label="value")
    manner = data.draw(st.sampled_from(MANNERS), label="$expand")
    acceptable(before, outcome(read_inventory, {**tree, path: body}, manner))
    render({path: body})


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_any_one_resource_lost(vendor: str, manner: Manner) -> None:
    """Each resource that the BMC does not give leaves its lists unmeasured, with a reason, or is a typed error."""
    tree, before = machine(vendor)
    for path in of_each_kind(tree):
        found = outcome(read_inventory, {**tree, path: Unreadable("HTTP 500")}, manner)
        acceptable(before, found)
        assert isinstance(found, ClusterctlError) or found.problems


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("tree", [small, dgx])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_logs_power_and_self_test_from_mutated_resources(
    tree: Callable[[], Tree], manner: Manner, data: st.DataObject
) -> None:
    """Also event logs, power state and self-test end in a value or a typed error; every log can be judged."""
    mutated = tree()
    path = data.draw(st.sampled_from(sorted(mutated)), label="path")
    place = data.draw(st.sampled_from(list(places(mutated[path]))), label="place")
    holder = mutated[path]
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = data.draw(st.sampled_from([*REPLACEMENTS, [holder[place[-1]]]]), label="value")
    for read in (read_logs, read_power, read_post):
        found = outcome(read, mutated, manner)
        assert not isinstance(found, ClusterctlError) or found.where.startswith("/redfish/v1")
        if isinstance(found, tuple):
            assert judge_log(found, machine("small")[1], (), datetime(2026, 5, 1, tzinfo=UTC))


@pytest.mark.parametrize("manner", MANNERS)
def test_a_lost_log_is_reported(manner: Manner) -> None:
    """Of two logs one that cannot be read stands as an entry of its own; an XID is not lost with it."""
    tree = dgx()
    tree["/redfish/v1/Systems/DGX/LogServices/SEL/Entries"] = Unreadable("HTTP 500")
    first, *others = ask(read_logs, tree, manner)
    assert (first.message_id, first.log) == (UNREAD, "/redfish/v1/Systems/DGX/LogServices/SEL")
    assert [(entry.origin, entry.message[:6]) for entry in others] == [("HGX_GPU_SXM_3", "XID 79")]
