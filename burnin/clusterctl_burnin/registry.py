"""All checks and loads by name, found by convention: each module of `checks/` defines `CHECK`, each of
`loads/single_node/` and `loads/multi_node/` defines `LOAD`.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import TypeVar

from clusterctl_burnin import checks
from clusterctl_burnin.check import Check, in_order
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.loads import multi_node, single_node
from clusterctl_burnin.loads.group_load import GroupLoad
from clusterctl_burnin.loads.node_load import NodeLoad

T = TypeVar("T")


def _found(package: ModuleType, constant: str, kind: type[T]) -> Iterator[T]:
    """Yield the constant of each module of the package."""
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        value = vars(importlib.import_module(module.name)).get(constant)
        if not isinstance(value, kind):
            raise TypeError(f"{module.name} has no {constant}")
        yield value


CHECKS: Mapping[str, Check] = MappingProxyType(
    {check.name: check for check in in_order(_found(checks, "CHECK", Check))}
)
"""In the order of suites and reports: by area, and causes before consequences."""
NODE_LOADS: Mapping[str, NodeLoad] = MappingProxyType(
    {load.name: load for load in _found(single_node, "LOAD", NodeLoad)}
)
"""Loads of one node."""
GROUP_LOADS: Mapping[str, GroupLoad] = MappingProxyType(
    {load.name: load for load in _found(multi_node, "LOAD", GroupLoad)}
)
"""Loads of several nodes."""


def keys_of(name: str) -> tuple[LimitKey, ...]:
    """Return the limits that a check or load judges by; none for an unknown name."""
    judging = CHECKS.get(name) or NODE_LOADS.get(name) or GROUP_LOADS.get(name)
    return judging.limits if judging else ()


@functools.cache
def limit_keys() -> Mapping[str, LimitKey]:
    """Return all limits by name; `ValueError` where two checks declare one name differently."""
    found: dict[str, LimitKey] = {}
    for name in (*CHECKS, *NODE_LOADS, *GROUP_LOADS):
        for key in keys_of(name):
            if found.setdefault(key.name, key) != key:
                raise ValueError(f"{name} declares the limit {key.name} differently from another check")
    return MappingProxyType(found)
