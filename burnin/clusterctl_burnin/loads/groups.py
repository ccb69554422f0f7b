"""Every load over several nodes that there is, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from clusterctl_burnin.loads import all_reduce, all_reduce_rail, hang_hunt, ib_write_bw
from clusterctl_burnin.loads.group_load import GroupLoad

GROUP_LOADS: Mapping[str, GroupLoad] = MappingProxyType(
    {load.name: load for load in (ib_write_bw.LOAD, all_reduce_rail.LOAD, all_reduce.LOAD, hang_hunt.LOAD)}
)
