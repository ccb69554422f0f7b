"""The sweep against the lab's BMCs of every vendor and with every quirk: written from recordings by someone else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

import pytest

from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe, sweep
from clusterctl.fleet.bmc.observation import BmcObservation, SweepOutcome
from clusterctl.ports import BmcAddress, Deadline
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish import Serving, serve_bmcs
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays, World
from lab.tests.loop_thread import LoopThread
from tests.edges.sweep.kit import QUICK, OneLogin
from tests.ports import reserve_port

PASSWORD = "of-no-use-elsewhere"
LAYOUT = Layout(IPv4Network("127.177.0.0/16"))
DELAYS = Delays(power_off=0.02, post=0.02, netboot_timeout=0.1)
SPOILS = {BmcQuirk.BROKEN_JSON, BmcQuirk.MISSING_MEMBERS, BmcQuirk.WRONG_TYPES}
"""Such a BMC may report too little; what it reports is right, and missing parts are named."""
REFUSES = {
    BmcQuirk.MUST_CHANGE_PASSWORD: SweepOutcome.REJECTED,
    BmcQuirk.OTHER_CERTIFICATE: SweepOutcome.CERTIFICATE_UNKNOWN,
    BmcQuirk.EXPIRED_CERTIFICATE: SweepOutcome.CERTIFICATE_UNKNOWN,
}
COPES = [quirk for quirk in BmcQuirk if quirk not in {*SPOILS, *REFUSES}]


@dataclass(frozen=True)
class Swept:
    """What one sweep of all of them has found, by the machine's name."""

    machines: dict[str, Machine]
    found: dict[str, BmcObservation]
    logins: OneLogin


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    """A machine of each vendor, one of each quirk, and one whose password is another."""
    world = World(LAYOUT, {machine.name: machine for machine in _machines()}, DELAYS)
    folder = tmp_path_factory.mktemp("swept")
    ca = LabCa(folder / "tls", "swept")
    port = reserve_port(LAYOUT.bmc(1))
    loop, logins = LoopThread(), OneLogin(PASSWORD)
    servers = loop.run(serve_bmcs(world, ca.certificate_for, port, Serving(expired=ca.expired_certificate_for)))
    try:
        probe = CandidateProbe(
            lambda host: BmcAddress(host, "", "", port, ca_file=str(ca.ca_file)),
            logins,
            KnownBmcs(folder / "pins"),
            timing=QUICK,
        )
        hosts = {machine.bmc.address: name for name, machine in world.machines.items()}
        found = sweep(hosts, port, probe, Deadline.after(60), at_once=8)
        yield Swept(dict(world.machines), {hosts[seen.address]: seen for seen in found.observations}, logins)
    finally:
        loop.run(servers.close())
        loop.close()


def _machines() -> Iterator[Machine]:
    """Small and quick to read. Spurious 401s are HPE's: from another vendor a refused login is believed."""
    kinds = [(vendor.value, vendor, frozenset[BmcQuirk]()) for vendor in Vendor]
    for quirk in BmcQuirk:
        vendor = Vendor.HPE if quirk is BmcQuirk.SPURIOUS_401 else Vendor.DELL
        kinds.append((f"quirk-{quirk.value}", vendor, frozenset({quirk})))
    kinds.append(("stranger", Vendor.SUPERMICRO, frozenset({BmcQuirk.LOCKS_OUT})))
    for number, (name, vendor, quirks) in enumerate(kinds, 1):
        machine = build(number, LAYOUT, "another" if name == "stranger" else PASSWORD, rails=2, vendor=vendor)
        bmc = replace(machine.bmc, quirks=quirks, latency_s=(0.001, 0.02))
        yield replace(machine, name=name, bmc=bmc, gpus=machine.gpus[:2], drives=machine.drives[:2])


@pytest.mark.parametrize("vendor", list(Vendor), ids=lambda vendor: vendor.value)
def test_each_vendor(swept: Swept, vendor: Vendor) -> None:
    """Who it is, in eight requests at most."""
    machine, seen = swept.machines[vendor.value], swept.found[vendor.value]
    assert seen.outcome is SweepOutcome.IDENTIFIED, seen.cause
    assert (seen.serial, seen.identity.model) == (machine.serial, machine.model)
    assert seen.bmc_mac == machine.bmc.mac
    assert seen.identity.bmc_firmware
    assert seen.requests <= 8
    assert seen.greeting.simulated


@pytest.mark.parametrize("quirk", COPES, ids=lambda quirk: quirk.value)
def test_a_bad_quirk_is_coped_with(swept: Swept, quirk: BmcQuirk) -> None:
    """The machine is identified, whatever its BMC does."""
    name = f"quirk-{quirk.value}"
    seen = swept.found[name]
    assert seen.outcome is SweepOutcome.IDENTIFIED, seen.cause
    assert seen.serial == swept.machines[name].serial


@pytest.mark.parametrize("quirk", sorted(SPOILS, key=lambda quirk: quirk.value), ids=lambda quirk: quirk.value)
def test_what_it_reports_is_right(swept: Swept, quirk: BmcQuirk) -> None:
    """Or the message has what could not be read."""
    name = f"quirk-{quirk.value}"
    seen = swept.found[name]
    assert seen.serial in {None, swept.machines[name].serial}
    assert seen.serial or seen.cause


@pytest.mark.parametrize("quirk", REFUSES, ids=lambda quirk: quirk.value)
def test_what_a_person_must_do(swept: Swept, quirk: BmcQuirk) -> None:
    """Named, with a remedy."""
    seen = swept.found[f"quirk-{quirk.value}"]
    assert seen.outcome is REFUSES[quirk]
    assert seen.cause
    assert seen.remedy


def test_a_wrong_password_locks_no_account(swept: Swept) -> None:
    """One login at a BMC that locks accounts."""
    assert swept.found["stranger"].outcome is SweepOutcome.REJECTED
    assert swept.found["stranger"].requests <= 2


def test_no_bmc_is_lost(swept: Swept) -> None:
    """Every listening service is reported."""
    assert swept.found.keys() == swept.machines.keys()
