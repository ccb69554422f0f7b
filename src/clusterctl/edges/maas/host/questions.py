"""What the examination asks MAAS: each question once, when it is first needed; all of them only read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from clusterctl.edges.maas.api import Answer, MaasApi
from clusterctl.edges.maas.state_limits import StateLimits
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.maas import machines as machine_formats
from clusterctl.formats.maas import region as formats
from clusterctl.formats.maas.region import BootResource, IpRange, Rack, RackImages, Subnet
from clusterctl.ports import Deadline


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the site wants of its MAAS.

    nodes      how many machines the site has; `at_once` of them are installed at a time
    subnet     the provisioning network; empty: every subnet where MAAS hands out addresses
    """

    series: str
    architecture: str
    nodes: int
    at_once: int
    limits: StateLimits
    subnet: str = ""


class Questions:
    """The answers as values; every property raises what `MaasApi.get` raises, or `ParseError`."""

    def __init__(self, api: MaasApi, deadline: Deadline, wanted: Wanted) -> None:
        self._api = api
        self._deadline = deadline
        self.wanted = wanted

    @property
    def where(self) -> str:
        return self._api.where

    @cached_property
    def version(self) -> str:
        return formats.version(self._version.body)

    @cached_property
    def offset_s(self) -> float | None:
        """How far MAAS's clock is before ours, to the second; None where it tells none."""
        told = self._version.date
        return None if told is None else (told - self._version.evidence.at).total_seconds()

    @cached_property
    def user(self) -> str:
        return machine_formats.user_name(self._whoami.body)

    @cached_property
    def admin(self) -> bool:
        return formats.is_admin(self._whoami.body)

    @cached_property
    def images(self) -> tuple[BootResource, ...]:
        return formats.boot_resources(self._get("boot-resources/").body)

    def is_complete(self, resource: BootResource) -> bool:
        return formats.is_complete(self._get(f"boot-resources/{resource.id}/").body)

    @cached_property
    def racks(self) -> tuple[Rack, ...]:
        return formats.racks(self._get("rackcontrollers/").body)

    def rack_images(self, rack: Rack) -> RackImages:
        return formats.rack_images(self._get(f"rackcontrollers/{rack.system_id}/", ("op", "list_boot_images")).body)

    @cached_property
    def subnets(self) -> tuple[Subnet, ...]:
        """Those of the provisioning network. Raises `UsageError` where the one that the person named is not there."""
        found = formats.subnets(self._get("subnets/").body)
        if not self.wanted.subnet:
            return tuple(subnet for subnet in found if subnet.dhcp)
        named = tuple(subnet for subnet in found if str(subnet.network) == self.wanted.subnet)
        if not named:
            listed = ", ".join(str(subnet.network) for subnet in found) or "none"
            raise UsageError(
                f"MAAS has no subnet {self.wanted.subnet}", where="--subnet", remedy=f"name one of its own: {listed}"
            )
        return named

    @cached_property
    def ranges(self) -> tuple[IpRange, ...]:
        return formats.ip_ranges(self._get("ipranges/").body)

    def setting(self, name: str) -> Any:
        """One of MAAS's own settings: text, number, truth, or None where it is not set."""
        return self._get("maas/", ("op", "get_config"), ("name", name)).body

    @cached_property
    def _version(self) -> Answer:
        return self._get("version/")

    @cached_property
    def _whoami(self) -> Answer:
        return self._get("users/", ("op", "whoami"))

    def _get(self, path: str, *query: tuple[str, str]) -> Answer:
        return self._api.get(path, query, self._deadline)
