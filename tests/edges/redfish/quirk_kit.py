"""Badly quirky BMCs of the lab behind the real client: what the tests of quirks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.ports import BmcAddress, BmcClient, Deadline, Power
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish import Serving, serve_bmcs
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays, World
from lab.tests.loop_thread import LoopThread
from tests.edges.redfish.conftest import QUICK as PACE
from tests.edges.redfish.conftest import FixedClock
from tests.ports import reserve_port

PASSWORD = "of-no-use-elsewhere"
LAYOUT = Layout(IPv4Network("127.175.0.0/16"))
QUICK = Delays(power_off=0.02, post=0.02, bmc_restart=0.3, netboot_timeout=0.1)
SECONDS = 60.0
IMAGE = "https://192.0.2.1/some.iso"


@dataclass(frozen=True)
class Site:
    """One lab, and the client."""

    world: World
    bmcs: RedfishBmcs
    port: int
    ca: Path

    def address(self, name: str, password: str = PASSWORD) -> BmcAddress:
        bmc = self.world.machines[name].bmc
        return BmcAddress(bmc.address, bmc.user, password, self.port, str(self.ca))

    def open(self, name: str, password: str = PASSWORD) -> BmcClient:
        return self.bmcs.open(self.address(name, password), soon())


@contextmanager
def served(machines: Mapping[str, Machine], folder: Path) -> Iterator[Site]:
    """The BMCs of these machines, by name, while the block runs."""
    world = World(LAYOUT, machines, QUICK)
    ca = LabCa(folder / "tls", "quirks")
    port = reserve_port(LAYOUT.bmc(1))
    loop = LoopThread()
    serving = Serving(expired=ca.expired_certificate_for)
    servers = loop.run(serve_bmcs(world, ca.certificate_for, port, serving))
    try:
        yield Site(world, RedfishBmcs(FixedClock(), PACE), port, ca.ca_file)
    finally:
        loop.run(servers.close())
        loop.close()


def machine(number: int, name: str, vendor: Vendor, *quirks: BmcQuirk) -> Machine:
    """A small one, quick to read."""
    built = build(number, LAYOUT, PASSWORD, rails=2, vendor=vendor)
    bmc = replace(built.bmc, quirks=frozenset(quirks), latency_s=(0.001, 0.02))
    return replace(built, name=name, bmc=bmc, gpus=built.gpus[:3], drives=built.drives[:3])


def soon() -> Deadline:
    return Deadline.after(SECONDS)


def whole(found: Inventory, there: Machine) -> bool:
    """As many GPUs, HCAs and drives as there are, each the right one where its BMC reports a serial (a DGX's does not for
    its HCAs).
    """
    kinds = ((found.gpus, there.gpus), (found.hcas, there.hcas), (found.drives, there.drives))
    return all(
        reported is not None
        and len(reported) == len(parts)
        and {part.serial for part in reported} - {None} <= {part.serial for part in parts}
        for reported, parts in kinds
    )


Operation = Callable[[BmcClient, Serial], object]
OPERATIONS: Mapping[str, Operation] = {
    "inventory": lambda bmc, _: bmc.inventory(soon()),
    "event log": lambda bmc, _: bmc.event_log(soon()),
    "power": lambda bmc, _: bmc.power(soon()),
    "switch on": lambda bmc, serial: bmc.set_power(Power.ON, serial, soon()),
    "boot once": lambda bmc, serial: bmc.boot_once(BootOnce(BootSource.PXE), serial, soon()),
    "insert media": lambda bmc, serial: bmc.insert_media(IMAGE, serial, soon()),
    "switch off": lambda bmc, serial: bmc.set_power(Power.OFF, serial, soon()),
}


def failure(operation: Callable[[], object]) -> ClusterctlError | None:
    """The typed error that it ends with; None where it is done. Any other exception is the test's failure."""
    try:
        operation()
    except ClusterctlError as error:
        return error
    return None
