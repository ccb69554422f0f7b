"""Certificates believed on first use: an address's at first, the machine's once its serial was read behind it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.redfish import KnownBmcs, RedfishBmcs
from clusterctl.fleet.bmc.accounts import Trust
from clusterctl.fleet.errors import UntrustedError
from clusterctl.ports import BmcAddress
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.quirk_kit import PASSWORD, Site, machine, served, soon


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    machines = [
        machine(1, "one", Vendor.SUPERMICRO),
        machine(2, "two", Vendor.SUPERMICRO),
        machine(3, "silent", Vendor.SUPERMICRO, BmcQuirk.MUST_CHANGE_PASSWORD),
    ]
    with served({one.name: one for one in machines}, tmp_path_factory.mktemp("pins")) as found:
        yield found


def address(lab: Site, name: str, serial: str = "") -> BmcAddress:
    return BmcAddress(lab.world.machines[name].bmc.address, "root", PASSWORD, lab.port, machine=serial)


def bmcs(known: KnownBmcs) -> RedfishBmcs:
    return RedfishBmcs(FixedClock(), QUICK, known=known)


def test_the_machines_once_its_serial_was_read(lab: Site, tmp_path: Path) -> None:
    """By a site that knows the machine already. At another address it is known then: another certificate
    there is refused, and nothing is learnt.
    """
    known = KnownBmcs(tmp_path / "pins", learn=True)
    serial = lab.world.machines["one"].serial
    for believed in ("", "LAB9999"):
        with bmcs(known).open(address(lab, "one", believed), soon()) as bmc:
            bmc.inventory(soon())
        assert not list((tmp_path / "pins").glob("machine-*")), "an unproven BMC could claim any serial"
    with bmcs(known).open(address(lab, "one", serial), soon()) as bmc:
        bmc.inventory(soon())
    assert known.machine_file(serial).read_text() == known.file(address(lab, "one").host).read_text()
    elsewhere = address(lab, "two", serial)
    with pytest.raises(UntrustedError), bmcs(known).open(elsewhere, soon()):
        pass
    assert not known.file(elsewhere.host).exists()
    assert not known.learns(elsewhere)


def test_what_the_address_had_before_does_not_count(lab: Site, tmp_path: Path) -> None:
    """The machine at the address of another one that has left: its own pin decides."""
    known = KnownBmcs(tmp_path / "pins", learn=True)
    serial = lab.world.machines["one"].serial
    with bmcs(known).open(address(lab, "one", serial), soon()) as bmc:
        bmc.inventory(soon())
    known.file(address(lab, "one").host).write_text("ab" * 32)
    with bmcs(replace(known, learn=False)).open(address(lab, "one", serial), soon()) as bmc:
        assert bmc.inventory(soon()).value.serial == serial


def test_a_pin_from_before_becomes_the_machines(lab: Site, tmp_path: Path) -> None:
    """Files by address alone are read as they are; the next look at the machine makes its own."""
    known = KnownBmcs(tmp_path / "pins", learn=True)
    serial = lab.world.machines["one"].serial
    with bmcs(known).open(address(lab, "one"), soon()):
        pass
    later = replace(known, learn=False)
    with bmcs(later).open_accounts(address(lab, "one", serial), soon()) as bmc:
        assert bmc.look("root", soon()).trust is Trust.FIRST_USE
    assert known.machine_file(serial).exists()
    with bmcs(later).open_accounts(address(lab, "one", serial), soon()) as bmc:
        assert bmc.look("root", soon()).trust is Trust.MACHINE


def test_a_machine_without_serial_gets_no_pin_of_its_own(lab: Site, tmp_path: Path) -> None:
    """A certificate of just now proves nothing about which machine it is."""
    known = KnownBmcs(tmp_path / "pins", learn=True)
    with bmcs(known).open_accounts(address(lab, "silent", "LAB0003"), soon()) as bmc:
        sight = bmc.look("root", soon())
    assert (sight.trust, sight.serial) == (Trust.FIRST_USE, None)
    assert not list((tmp_path / "pins").glob("machine-*"))


def test_a_serial_with_odd_signs(tmp_path: Path) -> None:
    """Stays one file in the folder."""
    file = KnownBmcs(tmp_path).machine_file("../A/B 1")
    assert file.parent == tmp_path
