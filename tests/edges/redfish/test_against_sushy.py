"""The client against sushy-tools' emulator, which neither of us wrote: it knows no sessions, and reports no serial.

Its machine gets a serial here, for without one nothing is switched. What it does not do as the standard has it must be
found out: it reports each boot override as continuous.
"""

from __future__ import annotations

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress, Deadline, Power
from tests.edges.redfish.sushy_kit import SERIAL, Sushy


@pytest.fixture
def sushy(sushy_tools: tuple[Sushy, BmcAddress]) -> tuple[Sushy, BmcAddress]:
    """The emulator with its machine as delivered."""
    sushy_tools[0].reset()
    return sushy_tools


def soon() -> Deadline:
    return Deadline.after(60)


def test_power(bmcs: RedfishBmcs, sushy: tuple[Sushy, BmcAddress]) -> None:
    """On, cycled, off, each seen; another serial is refused."""
    with bmcs.open(sushy[1], soon()) as bmc:
        assert bmc.power(soon()).value is Power.OFF
        bmc.set_power(Power.ON, SERIAL, soon())
        bmc.cycle_power(SERIAL, soon())
        bmc.set_power(Power.OFF, SERIAL, soon())
        assert bmc.power(soon()).value is Power.OFF
        with pytest.raises(EdgeError, match="belongs to machine SUSHY1"):
            bmc.set_power(Power.ON, Serial("X"), soon())


def test_a_boot_override_that_stays(bmcs: RedfishBmcs, sushy: tuple[Sushy, BmcAddress]) -> None:
    """Asked for once, it shows it for ever: not what was asked for, which would install a machine at each boot."""
    with bmcs.open(sushy[1], soon()) as bmc, pytest.raises(EdgeError, match="enabled Continuous"):
        bmc.boot_once(BootOnce(BootSource.PXE), SERIAL, soon())


def test_without_a_serial(bmcs: RedfishBmcs, sushy: tuple[Sushy, BmcAddress]) -> None:
    """Its chassis identifies the machine; under its former serial nothing is switched."""
    sushy[0].serial = Serial("")
    with bmcs.open(sushy[1], soon()) as bmc:
        found = bmc.inventory(soon()).value
        assert found.serial != SERIAL
        with pytest.raises(EdgeError, match=f"belongs to machine {found.serial}"):
            bmc.set_power(Power.ON, SERIAL, soon())
    assert not [asked for asked in sushy[0].asked if asked.startswith("POST") and "Actions" in asked]


def test_a_wrong_password_is_sent_once(bmcs: RedfishBmcs, sushy: tuple[Sushy, BmcAddress]) -> None:
    """Without sessions each request carries it: the first rejection is the last, for the whole run."""
    wrong = BmcAddress("127.0.0.1", "root", "wrong-one", sushy[1].port, sushy[1].ca_file)
    for _ in range(2):
        with pytest.raises(ClusterctlError) as caught, bmcs.open(wrong, soon()) as bmc:
            bmc.power(soon())
        assert isinstance(caught.value, AuthenticationError)
    assert len([asked for asked in sushy[0].asked if "Systems" in asked]) <= 1
