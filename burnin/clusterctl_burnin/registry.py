"""Every check that there is, by name: each module of `checks/` has one in `CHECK`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from clusterctl_burnin import checks
from clusterctl_burnin.check import Check


def _checks() -> Iterator[Check]:
    for found in pkgutil.iter_modules(checks.__path__, f"{checks.__name__}."):
        check = vars(importlib.import_module(found.name)).get("CHECK")
        if not isinstance(check, Check):
            raise TypeError(f"{found.name} has no CHECK")
        yield check


CHECKS: Mapping[str, Check] = MappingProxyType({check.name: check for check in _checks()})
