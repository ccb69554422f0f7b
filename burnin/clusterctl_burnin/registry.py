"""All checks and loads by name, found by convention: each module of `checks/` defines `CHECK`, each of
`loads/single_node/` and `loads/multi_node/` defines `LOAD`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import TypeVar

from clusterctl_burnin import checks
from clusterctl_burnin.check import Check
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


CHECKS: Mapping[str, Check] = MappingProxyType({check.name: check for check in _found(checks, "CHECK", Check)})
NODE_LOADS: Mapping[str, NodeLoad] = MappingProxyType(
    {load.name: load for load in _found(single_node, "LOAD", NodeLoad)}
)
"""Loads of one node."""
GROUP_LOADS: Mapping[str, GroupLoad] = MappingProxyType(
    {load.name: load for load in _found(multi_node, "LOAD", GroupLoad)}
)
"""Loads of several nodes."""
