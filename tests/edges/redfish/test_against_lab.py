"""The client against the lab's BMCs, which were written from the recordings by someone else."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.hardware.drives import root_disk
from clusterctl.fleet.hardware.matching import match
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Serial
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.ports import BmcAddress, Deadline, Power
from clusterctl_lab.emulators.redfish import serve_bmcs
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import Delays, World
from lab.tests.loop_thread import LoopThread
from tests.edges.redfish.replay import certificate
from tests.fleet.skus import H100_X8
from tests.ports import reserve_port
from tests.real_site import no_gold_on_a_real_site

PASSWORD = "of-no-use-elsewhere"
LAYOUT = Layout(IPv4Network("127.93.0.0/16"))
QUICK = Delays(power_off=0.05, post=0.05, commission=0.05, write_os=0.05, netboot_timeout=0.1)
XE9680 = replace(H100_X8, root_disk=RootDisk(model="MTFDDAV480TDS"))


@dataclass(frozen=True)
class Lab:
    """The BMCs of some machines, by machine name; their loop runs in a thread of its own."""

    world: World
    addresses: dict[str, BmcAddress]
    loop: LoopThread

    def __getitem__(self, name: str) -> BmcAddress:
        return self.addresses[name]

    def change(self, machine: Machine) -> None:
        """Break or repair the machine; return when its BMC shows it."""
        self.loop.run(self.world.replace(machine))


@contextmanager
def lab(machines: list[Machine], directory: Path) -> Iterator[Lab]:
    """The BMCs of these machines while the block runs."""
    world = World(LAYOUT, {machine.name: machine for machine in machines}, QUICK)
    port = reserve_port(machines[0].bmc.address)

    def tls(address: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate(directory, address, address))
        return context

    loop = LoopThread()
    servers = loop.run(serve_bmcs(world, tls, port))
    try:
        addresses = {
            machine.name: BmcAddress(
                machine.bmc.address, machine.bmc.user, PASSWORD, port, str(directory / f"{machine.bmc.address}.pem")
            )
            for machine in machines
        }
        yield Lab(world, addresses, loop)
    finally:
        loop.run(servers.close())
        loop.close()


def test_a_healthy_machine(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """The inventory is what physically exists, it is simulated evidence, and every aspect of its SKU passes."""
    machine = build(1, LAYOUT, PASSWORD)
    with lab([machine], tmp_path) as bmc_of, bmcs.open(bmc_of["node001"], Deadline.after(60)) as bmc:
        observed = bmc.inventory(Deadline.after(60))
    found = observed.value
    assert no_gold_on_a_real_site("discover", observed.evidence)
    assert (found.serial, found.model, found.bios_version) == (machine.serial, machine.model, machine.bios_version)
    assert {gpu.serial for gpu in found.gpus or ()} == {gpu.serial for gpu in machine.gpus}
    assert {gpu.pci for gpu in found.gpus or ()} == {gpu.pci[4:].lower() for gpu in machine.gpus}
    assert {hca.guid for hca in found.hcas or ()} == {hca.guid for hca in machine.hcas}
    assert {drive.serial for drive in found.drives or ()} == {drive.serial for drive in machine.drives}
    assert [nic.mac for nic in found.nics or ()] == [machine.boot_mac]
    assert root_disk(found, XE9680.root_disk).serial == machine.drives[0].serial
    assert {finding.check: finding.verdict for finding in match(found, XE9680)} == dict.fromkeys(
        [finding.check for finding in match(found, XE9680)], Verdict.PASS
    )


def test_a_missing_gpu_is_named(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """A GPU that was taken out fails the count, and the remedy names its slot."""
    whole = build(1, LAYOUT, PASSWORD)
    machine = replace(whole, gpus=whole.gpus[:5] + whole.gpus[6:])
    with lab([whole], tmp_path) as bmc_of, bmcs.open(bmc_of["node001"], Deadline.after(60)) as bmc:
        before = bmc.inventory(Deadline.after(60)).value
    with lab([machine], tmp_path) as bmc_of, bmcs.open(bmc_of["node001"], Deadline.after(60)) as bmc:
        after = bmc.inventory(Deadline.after(60)).value
    gone = {gpu.slot for gpu in before.gpus or ()} - {gpu.slot for gpu in after.gpus or ()}
    (failed,) = [finding for finding in match(after, XE9680) if finding.verdict is not Verdict.PASS]
    assert (failed.check, failed.measured, failed.expected) == ("gpu_count", Quantity(7, "GPUs"), exactly(8, "GPUs"))
    assert len(gone) == 1
    assert f"reseat the GPU in slot {gone.pop()};" in failed.remedy


def test_power_and_log(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """On, off again, and only with the right serial; the log is read."""
    machine = build(1, LAYOUT, PASSWORD)
    serial = Serial(machine.serial)
    with lab([machine], tmp_path) as bmc_of, bmcs.open(bmc_of["node001"], Deadline.after(60)) as bmc:
        assert bmc.power(Deadline.after(60)).value is Power.OFF
        assert bmc.set_power(Power.ON, serial, Deadline.after(60)).value is Power.ON
        with pytest.raises(EdgeError):
            bmc.set_power(Power.OFF, Serial("LAB9999"), Deadline.after(60))
        assert bmc.power(Deadline.after(60)).value is Power.ON
        assert bmc.set_power(Power.OFF, serial, Deadline.after(60)).value is Power.OFF
        entries = bmc.event_log(Deadline.after(60)).value
    times = [dt.datetime.fromisoformat(entry.at) for entry in entries]
    assert times == sorted(times, reverse=True)


def test_many_at_once(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Twelve BMCs in twelve threads: each its own machine, none disturbs another."""
    machines = [build(index, LAYOUT, PASSWORD) for index in range(1, 13)]

    def serial(address: BmcAddress) -> str:
        with bmcs.open(address, Deadline.after(60)) as bmc:
            return bmc.inventory(Deadline.after(60)).value.serial

    with lab(machines, tmp_path) as bmc_of, ThreadPoolExecutor(12) as pool:
        found = dict(zip(bmc_of.addresses, pool.map(serial, bmc_of.addresses.values()), strict=True))
    assert found == {machine.name: machine.serial for machine in machines}
