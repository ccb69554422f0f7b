"""Where everything of a lab lies in its network."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network


@dataclass(frozen=True, slots=True)
class Layout:
    """Addresses inside the lab's /16: bridge and services .0.x, BMCs .1.x and up, hosts .128.x and up."""

    network: IPv4Network

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    @property
    def maas(self) -> str:
        return str(self.network[2])

    @property
    def apt(self) -> str:
        return str(self.network[3])

    def bmc(self, index: int) -> str:
        return str(self.network[256 + index])

    def host(self, index: int) -> str:
        return str(self.network[128 * 256 + index])
