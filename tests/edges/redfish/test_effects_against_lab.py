"""Power, boot and media on the lab's BMCs of every vendor, with every quirk that a write can meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusterctl.edges.redfish import RedfishBmcs, Timing
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import AuthenticationError, EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.ports import Deadline, Power
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.healthy import build
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.conftest import FixedClock
from tests.edges.redfish.test_against_lab import LAYOUT, PASSWORD, Lab, lab

SOON = Timing(
    busy=0.02,
    busy_max=0.1,
    poll=0.05,
    settle=1,
    refused=0.05,
    refused_max=0.2,
    refusals=12,
    unknown=1,
    grace=0.3,
    rest=0,
)
IMAGE = "http://192.0.2.9/live.iso"
COPES = [
    (Vendor.HPE, BmcQuirk.WEAK_ETAG),
    (Vendor.OPENBMC, BmcQuirk.IF_MATCH_REQUIRED),
    (Vendor.DELL, BmcQuirk.IF_MATCH_REFUSED),
    (Vendor.SUPERMICRO, BmcQuirk.REFUSES_IDENTITY),
    (Vendor.HPE, BmcQuirk.SPURIOUS_401),
    (Vendor.DELL, BmcQuirk.LOCKS_OUT),
    (Vendor.DELL, BmcQuirk.SESSION_LIMIT),
    (Vendor.SUPERMICRO, BmcQuirk.ENDS_SESSIONS),
    (Vendor.HPE, BmcQuirk.POST_BUSY),
    (Vendor.DELL, BmcQuirk.ALREADY_IS_400),
    (Vendor.DELL, BmcQuirk.UNAVAILABLE),
    (Vendor.OPENBMC, BmcQuirk.REDIRECTS),
    (Vendor.DELL, BmcQuirk.LOSES_ANSWERS),
    (Vendor.SUPERMICRO, BmcQuirk.LOSES_ANSWERS),
    (Vendor.HPE, BmcQuirk.CLOSES_REUSED),
]
FAILS = [(Vendor.SUPERMICRO, BmcQuirk.REVERTS_BOOT), (Vendor.OPENBMC, BmcQuirk.MUST_CHANGE_PASSWORD)]
KINDS: list[tuple[Vendor, BmcQuirk | None]] = [*((vendor, None) for vendor in Vendor), *COPES, *FAILS]


def machine(kind: tuple[Vendor, BmcQuirk | None]) -> Machine:
    """Each kind has its own machine."""
    vendor, quirk = kind
    made = build(KINDS.index(kind) + 1, LAYOUT, PASSWORD, vendor=vendor)
    return replace(made, bmc=replace(made.bmc, quirks=frozenset({quirk} if quirk else ())))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab([machine(kind) for kind in KINDS], tmp_path_factory.mktemp("effects")) as found:
        yield found


@pytest.fixture(scope="module")
def patient() -> RedfishBmcs:
    return RedfishBmcs(FixedClock(), SOON)


def soon() -> Deadline:
    return Deadline.after(60)


@pytest.mark.parametrize("vendor", list(Vendor), ids=lambda vendor: vendor.value)
def test_every_vendor(site: Lab, patient: RedfishBmcs, vendor: Vendor) -> None:
    """One boot from each source that it has, a disc in and out, on, cycled, off: as the machine itself
    shows, not only its BMC.
    """
    one = machine((vendor, None))
    serial, state = Serial(one.serial), site.world.states[one.name]
    with patient.open(site[one.name], soon()) as bmc:
        for source, target in ((BootSource.DISK, BootTarget.HDD), (BootSource.PXE, BootTarget.PXE)):
            bmc.boot_once(BootOnce(source), serial, soon())
            assert state.boot_target is target
        bmc.insert_media(IMAGE, serial, soon())
        bmc.eject_media(IMAGE, serial, soon())
        bmc.set_power(Power.ON, serial, soon())
        assert state.power
        bmc.cycle_power(serial, soon())
        assert state.power
        bmc.set_power(Power.OFF, serial, soon())
        assert not state.power
        with pytest.raises(EdgeError, match="belongs to machine"):
            bmc.set_power(Power.ON, Serial("LAB9999"), soon())


@pytest.mark.parametrize("kind", COPES, ids=lambda kind: f"{kind[0].value} {kind[1].value}")
def test_bad_quirks_that_are_borne(site: Lab, patient: RedfishBmcs, kind: tuple[Vendor, BmcQuirk]) -> None:
    """The ordered change happens, as the machine itself shows, call by call, each in a session of its own."""
    one = machine(kind)
    serial, state = Serial(one.serial), site.world.states[one.name]
    for _ in range(2):
        with patient.open(site[one.name], soon()) as bmc:
            bmc.boot_once(BootOnce(BootSource.PXE), serial, soon())
        assert state.boot_target is BootTarget.PXE
    with patient.open(site[one.name], soon()) as bmc:
        bmc.set_power(Power.ON, serial, soon())
    assert state.power
    with patient.open(site[one.name], soon()) as bmc:
        bmc.set_power(Power.OFF, serial, soon())
    assert not state.power


def test_a_boot_that_is_reverted(site: Lab, patient: RedfishBmcs) -> None:
    """200 and Legacy: an error that has the request and the result."""
    one = machine((Vendor.SUPERMICRO, BmcQuirk.REVERTS_BOOT))
    with patient.open(site[one.name], soon()) as bmc, pytest.raises(EdgeError) as caught:
        bmc.boot_once(BootOnce(BootSource.PXE), Serial(one.serial), soon())
    assert "accepted boot once from pxe but then shows: boot override target None" in caught.value.message


def test_a_factory_password(site: Lab, patient: RedfishBmcs) -> None:
    """Nothing works before it is changed; the error has that."""
    one = machine((Vendor.OPENBMC, BmcQuirk.MUST_CHANGE_PASSWORD))
    with pytest.raises(AuthenticationError, match="factory password"), patient.open(site[one.name], soon()) as bmc:
        bmc.set_power(Power.ON, Serial(one.serial), soon())
