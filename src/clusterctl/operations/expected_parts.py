"""What monitoring has to see of an installed node: GPUs and adapters by its SKU, the ZFS pool by its roles.

Series of a part that has gone vanish. Only a number that does not come from the node shows that they are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.edges.site import Site
from clusterctl.edges.site.roles import shipped_roles, wanted
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Location, Stage
from clusterctl.fleet.roles.selection import GroupMember, RequestedRoles
from clusterctl.operations.scrape_targets import has_targets

_POOL_ROLE, _POOL_NAME = "zfs_pool", "zfs_pool_name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedParts:
    """The parts of one node. `counts`: by kind, only kinds that the node has; `zpools`: names of its ZFS pools."""

    counts: Mapping[str, int] = field(default_factory=dict)
    zpools: tuple[str, ...] = ()


NOTHING = ExpectedParts()


class PlacedNode(Protocol):
    """A node, as far as its expected parts depend on it."""

    @property
    def name(self) -> str: ...
    @property
    def stage(self) -> Stage: ...
    @property
    def sku(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def location(self) -> Location: ...


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a site's SKUs and roles promise of each node."""

    skus: Mapping[str, Sku]
    requested: RequestedRoles
    pool: str

    def of(self, node: PlacedNode) -> ExpectedParts:
        """Return the parts of a node that Prometheus scrapes; nothing of another one."""
        if not has_targets(node):
            return NOTHING
        sku = self.skus.get(node.sku)
        counts = {"gpu": sku.gpu_count, "adapter": sku.hca_count} if sku is not None else {}
        return ExpectedParts(counts={part: count for part, count in counts.items() if count}, zpools=self._zpools(node))

    def _zpools(self, node: PlacedNode) -> tuple[str, ...]:
        choice = self.requested.choose(GroupMember(node.name, node.location.rack, node.sku))
        if _POOL_ROLE not in choice.roles:
            return ()
        name = str(choice.variables.get(_POOL_NAME, self.pool))
        return () if "{" in name else (name,)  # a template: Ansible alone knows its value on the node


def expectations(site: Site) -> Expectations:
    """Return what is expected of the nodes of a site."""
    pool = str(shipped_roles()[_POOL_ROLE].variables[_POOL_NAME].default)
    return Expectations({sku.name: sku for sku in site.skus}, wanted(site), pool)
