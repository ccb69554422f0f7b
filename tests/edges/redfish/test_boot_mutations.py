"""Boot settings and virtual media from mutated resources: a typed error or what was there, never a traceback."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.formats.redfish.boot import BootControl, Tray, bodies, read_boot, read_tray
from tests.edges.redfish.test_mutations import REPLACEMENTS, outcome, places
from tests.edges.redfish.trees import Tree, ask, recorded

READERS: dict[str, Callable[..., Any]] = {"boot": read_boot, "media": read_tray}
PXE = BootOnce(BootSource.PXE)


@cache
def seen_by(what: str, vendor: str) -> Tree:
    """The part of a recorded tree that the reader looks at; not to be changed in place."""
    whole, seen = recorded(vendor), {}

    class Noting(dict[str, Any]):
        def get(self, path: str, default: Any = None) -> Any:
            seen[path] = whole.get(path, default)
            return seen[path]

    ask(READERS[what], Noting())
    return seen


def use(found: Any) -> None:
    """What would be done with it next."""
    if isinstance(found, BootControl):
        assert bodies(found, PXE, whole=True)
        found.gives(PXE)
    elif isinstance(found, Tray):
        found.holding("http://192.0.2.1/x.iso")
        found.free()
    str(found)


@pytest.mark.parametrize("vendor", ["dell", "hpe", "supermicro"])
@pytest.mark.parametrize("what", READERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_one_field_dropped_nulled_or_retyped(vendor: str, what: str, data: st.DataObject) -> None:
    """It is used or refused, by an error that names a resource. The machine's identity stays the same; a Dell without its
    manufacturer reports its board's serial, which no node has, so that nothing would be done to it.
    """
    tree = seen_by(what, vendor)
    serial = ask(READERS[what], tree).serial
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
    found = outcome(READERS[what], {**tree, path: body})
    if isinstance(found, ClusterctlError):
        assert found.where.startswith("/redfish/v1")
        return
    assert found.serial == serial or place == ("Manufacturer",)
    with suppress(ClusterctlError):
        use(found)
