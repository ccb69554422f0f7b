"""The pods of a lab: for each the network namespaces of its controller and of its equipment, at the pod's own bridge.

controller   from it an operator starts the pod's worker. It reaches the pod's BMCs and hosts, and the site's services
equipment    has the addresses of the BMCs, of the hosts' gateway and of the package repository; it forwards nothing

Neither has a route to another pod. The bridge is in the lab's switch, and only the pod's own wires are in it.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from clusterctl_lab import sockets
from clusterctl_lab.hosts import wiring
from clusterctl_lab.hosts.command import check, run
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.layout import Layout

NETNS = Path("/run/netns")
"""Where iproute2 keeps the namespaces that have names."""
_SETTINGS = "echo 0 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore"


class PodNetworks:
    """The pods of a running lab; none of what is here does anything for a lab that is not split."""

    def __init__(self, names: LabNames, layout: Layout) -> None:
        self._names = names
        self._layout = layout

    async def start(self, switch_netns: str) -> None:
        """Make the namespaces and plug them into the switch."""
        names, layout = self._names, self._layout
        for pod in layout.pods:
            sides = {
                names.controller(pod.number): wiring.controller(pod, names.alias),
                names.equipment(pod.number): wiring.equipment(pod, layout, names.alias),
            }
            for name in sides:
                await self._ip(("netns", "add", name))
            await check(
                names.lab,
                ("nsenter", f"--net={switch_netns}", "ip", "-batch", "-"),
                stdin=wiring.pod(pod, *sides),
            )
            for name, batch in sides.items():
                await self._ip(("netns", "exec", name, "sh", "-euc", _SETTINGS))
                await self._ip(("-n", name, "-batch", "-"), batch)

    async def add_addresses(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Add those of the pods' BMCs; return the others."""
        mine, others = self._by_pod(addresses)
        for number, found in mine.items():
            await self._ip(("-n", self._names.equipment(number), "-batch", "-"), wiring.services("eth0", found))
        return others

    async def remove_addresses(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Remove those of the pods' BMCs; return the others."""
        mine, others = self._by_pod(addresses)
        for number, found in mine.items():
            await self._ip(("-n", self._names.equipment(number), "-batch", "-"), wiring.no_services("eth0", found))
        return others

    def _by_pod(self, addresses: Iterable[str]) -> tuple[Mapping[int, list[str]], tuple[str, ...]]:
        mine: dict[int, list[str]] = {}
        others = []
        for address in addresses:
            pod = self._layout.pod_at(address)
            if pod is None:
                others.append(address)
            else:
                mine.setdefault(pod.number, []).append(address)
        return mine, tuple(others)

    async def _ip(self, argv: tuple[str, ...], batch: str = "") -> None:
        await check(self._names.lab, ("ip", *argv), stdin=batch)


def open_socket(names: LabNames, layout: Layout) -> sockets.OpenSocket:
    """Return what opens sockets of the lab's services: those of a pod's addresses in the namespace of its equipment."""

    def opened(address: str) -> socket.socket:
        pod = layout.pod_at(address)
        if pod is None:
            return sockets.plain(address)
        return sockets.within(NETNS / names.equipment(pod.number), address)

    return opened


async def remove_namespaces(names: LabNames) -> tuple[str, ...]:
    """Remove the namespaces of the lab's pods; return their names. One that is not the lab's own stays."""
    found = []
    for path in await asyncio.to_thread(lambda: sorted(NETNS.glob(f"{names.lab}-*"))):
        shown = await run(names.lab, ("ip", "-n", path.name, "-json", "link", "show", "dev", "lo"))
        if shown.rc == 0 and json.loads(shown.stdout)[0].get("ifalias") == names.alias:
            await check(names.lab, ("ip", "netns", "delete", path.name))
            found.append(path.name)
    return tuple(found)
