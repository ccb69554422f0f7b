"""Facts about a MAAS host: each is requested once, when it is first needed. All requests only read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clusterctl.edges.maas.api import MaasAnswer, MaasApi
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.matching import DEFAULT_POOL
from clusterctl.edges.maas.rights import PoolRights, pool_rights
from clusterctl.edges.maas.settings import StateLimits
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.maas import machines as machine_formats
from clusterctl.formats.maas import region as formats
from clusterctl.formats.maas.machines import MaasMachine
from clusterctl.formats.maas.region import BootResource, IpRange, MaasRack, RackImages, Subnet
from clusterctl.ports import Deadline


@dataclass(frozen=True, slots=True)
class SiteNeeds:
    """What the site needs from its MAAS.

    nodes      number of the site's machines; `at_once` of them are installed at a time
    subnet     the provisioning network; empty: every subnet where MAAS serves DHCP
    names      of the machines that MAAS shall install
    pool       the pool that they shall be in; empty: any. `move_from_pools`: those out of which they may be moved
    """

    series: str
    architecture: str
    nodes: int
    at_once: int
    limits: StateLimits
    subnet: str = ""
    names: tuple[str, ...] = ()
    pool: str = ""
    move_from_pools: tuple[str, ...] = ()


class HostFacts:
    """MAAS's answers as values. Every property raises what `MaasApi.get` raises, or `ParseError`."""

    def __init__(self, api: MaasApi, deadline: Deadline, needs: SiteNeeds) -> None:
        self._api = api
        self._deadline = deadline
        self.needs = needs

    @property
    def where(self) -> str:
        """The root of MAAS's API."""
        return self._api.where

    @cached_property
    def version(self) -> str:
        """MAAS's version, as MAAS writes it."""
        return formats.version(self._version.body)

    @cached_property
    def offset_s(self) -> float | None:
        """Seconds by which MAAS's clock is ahead of ours; None where MAAS sends no time."""
        date = self._version.date
        return None if date is None else (date - self._version.evidence.at).total_seconds()

    @cached_property
    def user(self) -> str:
        """The user of our API key."""
        return machine_formats.user_name(self._whoami.body)

    @cached_property
    def admin(self) -> bool:
        """Whether that user is an administrator."""
        return formats.is_admin(self._whoami.body)

    @cached_property
    def local(self) -> bool:
        """Whether MAAS itself keeps that user and his rights."""
        return formats.is_local(self._whoami.body)

    @cached_property
    def rights(self) -> PoolRights:
        """Whether our key may administer the machines of the site's pools, tried on one machine of each.

        Those of the site that MAAS knows; where an external service gives the rights, also one of each pool that the
        site's machines will be in.
        """
        ours = (self.needs.pool or DEFAULT_POOL, DEFAULT_POOL, *self.needs.move_from_pools)
        pools = () if self.local else [pool for pool in ours if pool in self.pools]
        return pool_rights(Machines(self._api), pools, self.machines, self._deadline)

    @cached_property
    def images(self) -> tuple[BootResource, ...]:
        """The region's boot images."""
        return formats.boot_resources(self._get("boot-resources/").body)

    def images_of(self, release: str) -> tuple[BootResource, ...]:
        """Return the region's boot images of a release, for the site's architecture."""
        return tuple(image for image in self.images if image.is_of(release, self.needs.architecture))

    def is_complete(self, resource: BootResource) -> bool:
        """Return whether the region has fetched the whole image."""
        return formats.is_complete(self._get(f"boot-resources/{resource.id}/").body)

    @cached_property
    def racks(self) -> tuple[MaasRack, ...]:
        """The rack controllers."""
        return formats.racks(self._get("rackcontrollers/").body)

    def rack_images(self, rack: MaasRack) -> RackImages:
        """Return the images that a rack controller holds itself."""
        return formats.rack_images(self._get(f"rackcontrollers/{rack.system_id}/", ("op", "list_boot_images")).body)

    @cached_property
    def all_subnets(self) -> tuple[Subnet, ...]:
        """All subnets that MAAS knows."""
        return formats.subnets(self._get("subnets/").body)

    @cached_property
    def subnets(self) -> tuple[Subnet, ...]:
        """The subnets of the provisioning network. Raises `UsageError` where MAAS lacks the subnet that was named."""
        found = self.all_subnets
        if not self.needs.subnet:
            return tuple(subnet for subnet in found if subnet.dhcp)
        named = tuple(subnet for subnet in found if str(subnet.network) == self.needs.subnet)
        if not named:
            listed = ", ".join(str(subnet.network) for subnet in found) or "none"
            raise UsageError(
                f"MAAS has no subnet {self.needs.subnet}", where="--subnet", remedy=f"name one of its own: {listed}"
            )
        return named

    @cached_property
    def ranges(self) -> tuple[IpRange, ...]:
        """All address ranges that MAAS knows."""
        return formats.ip_ranges(self._get("ipranges/").body)

    @cached_property
    def pools(self) -> tuple[str, ...]:
        """The names of the resource pools."""
        return formats.pools(self._get("resourcepools/").body)

    @cached_property
    def machines(self) -> tuple[MaasMachine, ...]:
        """The machines in MAAS that have a name of the site's."""
        return tuple(Machines(self._api).by_hostnames(self.needs.names, self._deadline).machines.values())

    def setting(self, name: str) -> Any:
        """Return one of MAAS's own settings: a text, number or boolean, or None where it is not set."""
        return self._get("maas/", ("op", "get_config"), ("name", name)).body

    @cached_property
    def _version(self) -> MaasAnswer:
        return self._get("version/")

    @cached_property
    def _whoami(self) -> MaasAnswer:
        return self._get("users/", ("op", "whoami"))

    def _get(self, path: str, *query: tuple[str, str]) -> MaasAnswer:
        return self._api.get(path, query, self._deadline)
