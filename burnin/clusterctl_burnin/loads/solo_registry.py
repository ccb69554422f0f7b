"""Every load of one node that there is, by name: each module of `loads/solo/` has one in `LOAD`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from clusterctl_burnin.loads import solo
from clusterctl_burnin.loads.solo_load import SoloLoad


def _loads() -> Iterator[SoloLoad]:
    for found in pkgutil.iter_modules(solo.__path__, f"{solo.__name__}."):
        load = vars(importlib.import_module(found.name)).get("LOAD")
        if not isinstance(load, SoloLoad):
            raise TypeError(f"{found.name} has no LOAD")
        yield load


SOLO_LOADS: Mapping[str, SoloLoad] = MappingProxyType({load.name: load for load in _loads()})
