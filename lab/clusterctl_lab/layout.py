"""Where everything of a lab lies in its network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

PODS = 8
"""The most pods of a lab."""
HOSTS_PER_POD = 250
_CONTROLLER, _GATEWAY = 253, 254


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, by its `number` from 1: networks of its BMCs and of its hosts, a /24 each.

    In both networks .253 is the pod's controller and .254 its gateway. `site`: the controller's address outside of it.
    """

    number: int
    bmcs: IPv4Network
    hosts: IPv4Network
    site: str

    @property
    def networks(self) -> tuple[IPv4Network, IPv4Network]:
        return self.bmcs, self.hosts

    @property
    def gateways(self) -> tuple[str, str]:
        return str(self.bmcs[_GATEWAY]), str(self.hosts[_GATEWAY])

    @property
    def controllers(self) -> tuple[str, str]:
        return str(self.bmcs[_CONTROLLER]), str(self.hosts[_CONTROLLER])


@dataclass(frozen=True, slots=True)
class Layout:
    """Addresses inside the lab's /16: bridge and services .0.x, BMCs .1.x and up, hosts .128.x and up.

    With several pods, of `hosts_per_pod` machines each (the last one may have fewer), the BMCs of pod N are .N.1 and
    up, its hosts .(128 + N).1 and up, and its controller is .0.(16 + N).
    """

    network: IPv4Network
    pod_count: int = 1
    hosts_per_pod: int = HOSTS_PER_POD

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    @property
    def maas(self) -> str:
        return str(self.network[2])

    @property
    def apt(self) -> str:
        return str(self.network[3])

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods; none where the lab is not split."""
        return tuple(self._pods()) if self.pod_count > 1 else ()

    def pod(self, index: int) -> Pod | None:
        """The pod of the machine with that number, from 1; None where the lab is not split."""
        return self.pods[(index - 1) // self.hosts_per_pod] if self.pods else None

    def pod_at(self, address: str) -> Pod | None:
        """The pod in whose networks the address is; None for another one."""
        wanted = IPv4Address(address)
        return next((pod for pod in self.pods if any(wanted in network for network in pod.networks)), None)

    def bmc(self, index: int) -> str:
        pod = self.pod(index)
        return str(self.network[256 + index] if pod is None else pod.bmcs[self._place(index)])

    def host(self, index: int) -> str:
        pod = self.pod(index)
        return str(self.network[128 * 256 + index] if pod is None else pod.hosts[self._place(index)])

    def _place(self, index: int) -> int:
        return (index - 1) % self.hosts_per_pod + 1

    def _pods(self) -> Iterator[Pod]:
        for number in range(1, self.pod_count + 1):
            bmcs, hosts = (IPv4Network((int(self.network[256 * third]), 24)) for third in (number, 128 + number))
            yield Pod(number, bmcs, hosts, str(self.network[16 + number]))
