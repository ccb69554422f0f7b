"""The client against recorded BMCs, served by the lab's replay."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.node import Inventory
from clusterctl.ports import BmcAddress, Deadline, Power
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish.replay import ReplaySettings, load_recording, make_copies, serve_replay
from clusterctl_lab.world import Delays
from lab.tests.emulators.redfish.shapes import RECORDINGS
from lab.tests.loop_thread import LoopThread
from tests.ports import reserve_port

PASSWORD = "of-no-use-elsewhere"
FIRST = IPv4Address("127.96.0.1")
QUICK = Delays(power_off=0.02, post=0.02, netboot_timeout=0.1)
RECORDED = {"dell": "F54P1G3", "hpe": "MXQ302099S", "supermicro": "S889914X3710910"}
"""Vendor → the recorded machine's serial."""


@contextmanager
def replayed(vendor: str, count: int, directory: Path, *, first: int = 0) -> Iterator[list[BmcAddress]]:
    """So many machines of a vendor's recording, while the block runs; skips where the recordings are not here.

    `first`: how far behind `FIRST` their addresses begin, where several recordings are served together.
    """
    archive = RECORDINGS / f"{vendor}.tar.xz"
    if not archive.exists():
        pytest.skip("the recorded trees are not here")
    port = reserve_port(str(FIRST + first))
    settings = ReplaySettings(FIRST + first, port, "root", PASSWORD, delays=QUICK)
    addresses = [settings.address(number) for number in range(count)]
    ca = LabCa(directory / "tls", "replay")
    tls = ca.certificate_for(*addresses)
    loop = LoopThread()
    served = loop.run(serve_replay(make_copies(load_recording(archive), count), settings, lambda _: tls))
    try:
        yield [BmcAddress(address, "root", PASSWORD, port, str(ca.ca_file)) for address in addresses]
    finally:
        loop.run(served.close())
        loop.close()


@pytest.mark.parametrize("vendor", list(RECORDED))
def test_a_recorded_machine_is_read_and_switched(bmcs: RedfishBmcs, tmp_path: Path, vendor: str) -> None:
    """It is the recorded one; switched off it reads off, switched on it reads on, and its serial stays its own."""
    with replayed(vendor, 1, tmp_path) as (address,), bmcs.open(address, Deadline.after(60)) as bmc:
        found = bmc.inventory(Deadline.after(60)).value
        assert found.serial == RECORDED[vendor]
        assert bmc.power(Deadline.after(60)).value is Power.ON
        assert bmc.set_power(Power.OFF, found.serial, Deadline.after(60)).value is Power.OFF
        assert bmc.power(Deadline.after(60)).value is Power.OFF
        assert bmc.set_power(Power.ON, found.serial, Deadline.after(60)).value is Power.ON
        assert bmc.event_log(Deadline.after(60)).value


def test_copies_are_machines_of_their_own(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Four machines of one recording read at once: the same parts, and not one serial or MAC in common."""

    def read(address: BmcAddress) -> Inventory:
        with bmcs.open(address, Deadline.after(60)) as bmc:
            return bmc.inventory(Deadline.after(60)).value

    with replayed("supermicro", 4, tmp_path) as addresses, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(read, addresses))
    assert {len(machine.gpus or ()) for machine in found} == {8}
    assert {machine.model for machine in found} == {"SYS-821GE-TNHR"}
    parts = [part.serial for machine in found for part in (*(machine.gpus or ()), *(machine.drives or ()))]
    macs = [nic.mac for machine in found for nic in machine.nics or ()]
    assert len(set(parts)) == len(parts) == 4 * 16
    assert len(set(macs)) == len(macs) == 4 * 11
    assert len({machine.serial for machine in found}) == 4
