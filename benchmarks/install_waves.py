"""What installing 511 machines through MAAS costs the controller, and how much it asks of MAAS.

    python -m benchmarks.install_waves [--machines 511] [--wave 32] [--scale 60]

The install step, wave after wave, against the lab's MAAS over TLS in a process of its own, with machines that take the
time of GPU servers (each boot a POST of 5 minutes), all of it and the step's 15 s between two looks divided by
`--scale`. What follows an install (SSH, the proof of the drives) is answered at once: it is not MAAS's. For comparison,
in the same run: a look at 32 and at all machines by one filtered list, and by one request for each machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path
from typing import IO, Any

from clusterctl.edges.journal import open_journal
from clusterctl.edges.maas import MaasInstaller, MaasSettings
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Observed, Origin
from clusterctl.fleet.node import Drive, Inventory, Mac, Nic, NodeId, Serial
from clusterctl.ports import BmcAddress, Deadline, InstallStatus, InstallTarget
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.install.job import INSTALLERS_NETWORK
from clusterctl.steps.install.step import HostAccess, Install, InstallServices
from clusterctl_lab.emulators.maas.bmc import Parameters
from clusterctl_lab.emulators.maas.oauth import Keys, User
from clusterctl_lab.emulators.maas.server import LabMaas
from clusterctl_lab.emulators.maas.service import Service
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import Delays, World
from tests.edges.maas.kit import API_KEY, Hosts, UtcClock
from tests.edges.maas.testca import Ca
from tests.events import new_event
from tests.steps.fakes import FakeBmc, FakeBmcs, FakeShell

LAYOUT = Layout(IPv4Network("127.94.0.0/16"))
PORT = 45245
POLL_S = 15.0
TRUE_DELAYS = {"power_off": 5.0, "post": 300.0, "commission": 180.0, "write_os": 240.0, "netboot_timeout": 3600.0}
LOOKS = 640
"""Machines looked at in each row, in as many looks as that takes."""


def host_key(name: str) -> tuple[str, str]:
    return f"private {name}", f"public {name}"


ACCESS = HostAccess("ops", "ssh-ed25519 AAAA controller", "/key", host_key, host_key)
SELF = (sys.executable, "-m", "benchmarks.install_waves")


def machines(count: int) -> list[Machine]:
    """Each with a root disk of the serial that the fake host reports."""
    built = [build(index, LAYOUT, "of-no-use-elsewhere") for index in range(1, count + 1)]
    return [
        replace(item, drives=(replace(item.drives[0], serial=f"DISK-SN-{item.name}"), *item.drives[1:]))
        for item in built
    ]


# --- the server -------------------------------------------------------------------------------------------------------


class WorldPower:
    """Meets `PowerDriver`: switches the world's machines without the detour over their BMCs."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._names = {machine.bmc.address: machine.name for machine in world.machines.values()}

    async def on(self, parameters: Parameters) -> None:
        await self.off(parameters)
        await self._world.set_power(self._name(parameters), on=True)

    async def off(self, parameters: Parameters) -> None:
        await self._world.set_power(self._name(parameters), on=False)

    async def restart(self, parameters: Parameters) -> None:
        await self._world.reboot(self._name(parameters))

    async def query(self, parameters: Parameters) -> str:
        return "on" if self._world.states[self._name(parameters)].power else "off"

    def _name(self, parameters: Parameters) -> str:
        return self._names[parameters["power_address"]]


async def serve(folder: Path, count: int, scale: float) -> None:
    """Until standard input ends; answers each line with what was asked of MAAS since the last one, and the CPU."""
    delays = Delays(**{name: seconds / scale for name, seconds in TRUE_DELAYS.items()})
    world = World(LAYOUT, {machine.name: machine for machine in machines(count)}, delays)
    world.hosts = Hosts()
    maas = LabMaas(Service(world, Keys([User("admin", API_KEY, admin=True)]), WorldPower(world)))
    await maas.open(LAYOUT.maas, PORT, Ca(folder).server_context(LAYOUT.maas))
    world.provisioner = maas
    world.on_power(maas.service.boot.power_changed)
    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps({"requests": maas.requests, "cpu_s": time.process_time()}), flush=True)
        maas.requests.clear()
    await maas.close()


@dataclass
class Server:
    """The other process."""

    process: subprocess.Popen[str]

    def requests(self) -> tuple[Counter[str], float]:
        """What was asked since the last time, and the CPU seconds that it has taken in all."""
        stdin, stdout = self._pipes()
        stdin.write("count\n")
        stdin.flush()
        result = json.loads(stdout.readline())
        return Counter(result["requests"]), float(result["cpu_s"])

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("the server's words cannot be read")
        return self.process.stdin, self.process.stdout


@contextlib.contextmanager
def served(folder: Path, count: int, scale: float) -> Iterator[Server]:
    argv = [*SELF, "--serve", str(folder), "--machines", str(count), "--scale", str(scale)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline().strip() != "ready":
                raise RuntimeError("the server did not start")
            yield Server(process)
        finally:
            process.terminate()


# --- the controller ---------------------------------------------------------------------------------------------------


def inventory(machine: Machine) -> Inventory:
    nics = (Nic("nic0", Mac(machine.boot_mac), boots=True),)
    drives = tuple(Drive(item.slot, item.model, item.size_bytes, Serial(item.serial)) for item in machine.drives)
    return Inventory(machine.manufacturer, machine.model, Serial(machine.serial), nics=nics, drives=drives)


def described(machine: Machine) -> list[NewEvent]:
    """The events of a node that was discovered."""
    node = f"id-{machine.name}"
    found = inventory_to_data(inventory(machine))
    return [
        new_event("node", node, Kind.NODE_DESCRIBED, {"name": machine.name, "bmc": machine.bmc.address}),
        new_event(
            "node",
            node,
            Kind.NODE_IDENTIFIED,
            {"inventory": found, "sku": "lab", "root_disk": machine.drives[0].serial},
        ),
        new_event("node", node, Kind.STAGE_ADVANCED, {"to": "discovered", "verdict": "pass"}),
    ]


def installer(folder: Path) -> MaasInstaller:
    url = f"https://{LAYOUT.maas}:{PORT}/MAAS"
    settings = MaasSettings(url, API_KEY, "jammy", ca_file=str(folder / "ca.pem"), origin=Origin.SIMULATED)
    return MaasInstaller(settings, UtcClock())


def drive(folder: Path, count: int, size: int, scale: float) -> dict[str, Any]:
    """Install all machines, `size` at a time. In a process of its own, so that memory and CPU are the controller's."""
    fleet = machines(count)
    book = open_journal(f"sqlite:///{folder}/journal.db", UtcClock())
    book.append([event for machine in fleet for event in described(machine)])
    addresses = {item.name: BmcAddress(item.bmc.address, "root", item.bmc.password) for item in fleet}
    shell = FakeShell({item.name: f"boot-1\n{item.name}\n" for item in fleet})
    bmcs = FakeBmcs({item.bmc.address: FakeBmc(inventory(item)) for item in fleet})
    step = Install(
        InstallServices(installer(folder), shell, bmcs, addresses.__getitem__),
        ACCESS,
        INSTALLERS_NETWORK,
        poll_s=POLL_S / scale,
    )
    verdicts: Counter[str] = Counter()
    kept = 0
    begin, cpu = time.monotonic(), time.process_time()
    for start in range(0, count, size):
        ids = [NodeId(f"id-{item.name}") for item in fleet[start : start + size]]
        claims = book.claim(ids, "benchmark").granted
        for outcome in step.run([book.state(node) for node in ids], IntentLog(book, claims), Deadline.after(3600)):
            verdicts[outcome.findings[0].verdict.value] += 1
            kept += sum(len(item.content) for item in outcome.evidence)
        book.release(list(claims.values()))
    wall, spent = time.monotonic() - begin, time.process_time() - cpu
    book.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"wall_s": wall, "cpu_s": spent, "peak_mib": peak, "verdicts": verdicts, "evidence_bytes": kept}


def targets(count: int) -> list[InstallTarget]:
    return [
        InstallTarget(
            name=item.name,
            serial=Serial(item.serial),
            macs=(Mac(item.boot_mac),),
            bmc=BmcAddress(item.bmc.address, "root", item.bmc.password),
            root_disk=Serial(item.drives[0].serial),
            authorized_key=ACCESS.authorized_key,
            user="ops",
            host_key_private="private",
            host_key_public="public",
        )
        for item in machines(count)
    ]


Seen = Sequence[Mapping[str, Observed[InstallStatus]]]


def look(name: str, server: Server, times: int, looking: Callable[[], Seen]) -> float:
    """Print what one look costs, of so many; its CPU seconds. The first one, which learns the ids, is not counted."""
    seen = looking()
    size = sum(len(item.content) for part in seen for one in part.values() for item in one.evidence)
    _, before = server.requests()
    cpu, begin = time.process_time(), time.monotonic()
    for _ in range(times):
        looking()
    spent, wall = (time.process_time() - cpu) / times, (time.monotonic() - begin) / times
    requests, after = server.requests()
    print(
        f"{name:<34} {requests.total() / times:5.0f} requests  {size / 1e6:6.2f} MB  {wall * 1000:7.0f} ms wall  "
        f"{spent * 1000:7.1f} ms CPU  (lab's MAAS {(after - before) / times * 1000:.0f} ms)"
    )
    return spent


def looks(folder: Path, server: Server, count: int) -> None:
    for some in (min(32, count), count):
        chosen = targets(some)
        times = max(2, LOOKS // some)
        listed = look(f"{some} by one filtered list", server, times, partial(together, installer(folder), chosen))
        single = [installer(folder) for _ in chosen]
        each = look(f"{some} by a request each", server, times, partial(one_by_one, single, chosen))
        print(f"{'':<34} a request each takes {each / listed:.1f} times the CPU")


def together(one: MaasInstaller, chosen: Sequence[InstallTarget]) -> Seen:
    return [one.observe(chosen, Deadline.after(600))]


def one_by_one(single: Sequence[MaasInstaller], chosen: Sequence[InstallTarget]) -> Seen:
    return [one.observe([target], Deadline.after(600)) for one, target in zip(single, chosen, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=511)
    parser.add_argument("--wave", type=int, default=32)
    parser.add_argument("--scale", type=float, default=60.0, help="how much faster than true time")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--drive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.serve, options.machines, options.scale))
    elif options.drive:
        print(json.dumps(drive(options.drive, options.machines, options.wave, options.scale)))
    else:
        benchmark(options.machines, options.wave, options.scale)


def benchmark(count: int, size: int, scale: float) -> None:
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with served(folder, count, scale) as server:
            words = ["--drive", name, "--machines", str(count), "--wave", str(size), "--scale", str(scale)]
            result = json.loads(subprocess.run([*SELF, *words], check=True, capture_output=True, text=True).stdout)
            requests, maas_cpu = server.requests()
            minutes = result["wall_s"] * scale / 60
            cpu, peak, kept = result["cpu_s"], result["peak_mib"], result["evidence_bytes"] / count / 1000
            print(f"{count} machines, {size} at a time: {result['verdicts']}")
            print(f"time         {result['wall_s']:.0f} s wall, {minutes:.0f} minutes at true speed")
            print(f"controller   {cpu:.1f} s CPU, {peak:.0f} MiB, {kept:.1f} kB of evidence a node")
            print(f"lab's MAAS   {maas_cpu:.1f} s CPU")
            print(f"requests     {requests.total()} in all, {requests.total() / minutes:.1f} a minute at true speed:")
            for words_of, number in requests.most_common():
                print(f"             {number:6d} {words_of}")
            looks(folder, server, count)


if __name__ == "__main__":
    main()
