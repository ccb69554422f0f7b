"""The lab's switch, running: a namespace with all bridges, and the machine's one interface into it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from importlib.resources import files
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl_lab.hosts import wiring
from clusterctl_lab.hosts.command import check, environment, run
from clusterctl_lab.hosts.names import UPLINK, LabNames
from clusterctl_lab.hosts.pods import PodNetworks, remove_namespaces
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine

SCRIPT = Path(str(files("clusterctl_lab.hosts"))) / "switch.sh"
IPV6 = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
GONE = (b"Cannot find device", b"No such device")


class Switch:
    """Started once per lab, before any host."""

    def __init__(self, names: LabNames, layout: Layout, rails: int) -> None:
        self._names = names
        self._layout = layout
        self._rails = rails
        self._pods = PodNetworks(names, layout)
        self._holder: asyncio.subprocess.Process | None = None

    @property
    def netns(self) -> str:
        """Path of the switch's network namespace."""
        if self._holder is None:
            raise EnvironmentBrokenError("the lab's switch is not running", remedy="Start the lab: clusterctl lab up.")
        return f"/proc/{self._holder.pid}/ns/net"

    async def start(self, cgroup: Path) -> None:
        """Raises `UsageError` where the lab's network overlaps one that the machine already uses."""
        names = self._names
        await self._refuse_overlap()
        batch = names.run_dir / "switch.batch"
        batch.write_text(wiring.switch(self._rails, names.uplink, len(self._layout.pods)))
        holder = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "sh", str(SCRIPT), str(batch), str(cgroup)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(names.lab),
            start_new_session=True,
        )
        self._holder = holder
        if await _first_line(holder.stdout) != b"ready\n":
            _, stderr = await holder.communicate()
            raise EnvironmentBrokenError(
                f"the lab's switch did not start: {stderr.decode(errors='replace').strip()[-400:]}",
                remedy="Check that this kernel allows network namespaces, bridges and veth (not inside a container?).",
            )
        await self._on_machine(wiring.uplink(names.uplink, names.alias, self._layout))
        await self._pods.start(self.netns)

    async def stop(self) -> None:
        """Wait for the holder, which the lab's cgroup has killed, and take the uplink away."""
        if self._holder is not None:
            await self._holder.wait()
            self._holder = None
        await remove_namespaces(self._names)
        await remove_uplink(self._names)

    async def announce(self) -> None:
        """Give the machine's interface an IPv6 address; nothing happens on a kernel without IPv6."""
        if await asyncio.to_thread(_has_ipv6):
            await self._on_machine(wiring.router(self._names.uplink, self._layout))

    async def add_addresses(self, addresses: Iterable[str]) -> None:
        """Further addresses of the lab on this machine, or in their pod; those that are there already stay."""
        here = await self._pods.add_addresses(addresses)
        await self._on_machine(wiring.services(self._names.uplink, here))

    async def remove_addresses(self, addresses: Iterable[str]) -> None:
        """Remove the addresses; those that are gone already are no error."""
        here = await self._pods.remove_addresses(addresses)
        await self._on_machine(wiring.no_services(self._names.uplink, here))

    async def recable(self, booted: Machine, now: Machine) -> None:
        """Plug and unplug the rails of a running host as its cables are now."""
        await self._inside(wiring.cables(booted, now))

    async def management(self, machine: Machine, *, up: bool) -> None:
        """Give a running host's management cable a link, or take it."""
        await self._inside(wiring.management(machine, up=up))

    async def unplug(self, machine: Machine) -> None:
        """Take all wires of a host away; they may be gone already with its namespace."""
        argv = ("nsenter", f"--net={self.netns}", "ip", "-batch", "-")
        ran = await run(self._names.lab, argv, stdin=wiring.unplug(machine).encode())
        if ran.rc != 0 and not any(words in ran.stderr for words in GONE):
            words = ran.stderr.decode(errors="replace").strip()
            raise EnvironmentBrokenError(f"wires of {machine.name} stay: {words}", remedy="Run `clusterctl lab down`.")

    async def _inside(self, batch: str) -> None:
        await check(self._names.lab, ("nsenter", f"--net={self.netns}", "ip", "-batch", "-"), stdin=batch)

    async def _on_machine(self, batch: str) -> None:
        await check(self._names.lab, ("ip", "-batch", "-"), stdin=batch)

    async def _refuse_overlap(self) -> None:
        network = self._layout.network
        routes = json.loads(await check(self._names.lab, ("ip", "-json", "-4", "route", "show", "table", "all")))
        for route in routes:
            if route["dst"] == "default":
                continue
            used = IPv4Network(route["dst"], strict=False)
            if used.prefixlen and used.overlaps(network):
                device = route.get("dev", "this machine")
                owner = f"lab {device.removesuffix(UPLINK)}" if device.endswith(UPLINK) else device
                raise UsageError(
                    f"the lab's network {network} overlaps {used}, which {owner} uses",
                    where=f"lab {self._names.lab}",
                    remedy="Give the lab another one: --subnet 10.x.0.0/16.",
                )


async def remove_uplink(names: LabNames) -> bool:
    """Remove the machine's interface into the lab, if it is ours; True where there was one."""
    ran = await run(names.lab, ("ip", "-json", "link", "show", "dev", names.uplink))
    if ran.rc != 0:
        return False
    if json.loads(ran.stdout)[0].get("ifalias") != names.alias:
        raise UsageError(
            f"interface {names.uplink} is not the lab's own",
            remedy=f"Give the lab another name, or remove it yourself: ip link delete {names.uplink}.",
        )
    ran = await run(names.lab, ("ip", "link", "delete", "dev", names.uplink))
    if ran.rc != 0 and not any(words in ran.stderr for words in GONE):
        raise EnvironmentBrokenError(
            f"cannot remove {names.uplink}: {ran.stderr.decode(errors='replace').strip()}",
            remedy=f"Remove it by hand: ip link delete {names.uplink}.",
        )
    return True


def _has_ipv6() -> bool:
    return IPV6.exists() and IPV6.read_text().strip() == "0"


async def _first_line(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.readline() if stream is not None else b""
