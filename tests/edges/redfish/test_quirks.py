"""The client against the lab's badly quirky BMCs: it copes, or raises a typed error that has what is wrong. Never a traceback,
a hang, or a part that is silently lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, UntrustedError
from clusterctl.fleet.node import Serial
from clusterctl.ports import Deadline, Power
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from lab.tests.lab_kit import eventually
from tests.edges.redfish.quirk_kit import IMAGE, OPERATIONS, Site, failure, machine, served, soon, whole
from tests.fake_timer import FakeTimer

SPOILS = (BmcQuirk.BROKEN_JSON, BmcQuirk.MISSING_MEMBERS, BmcQuirk.WRONG_TYPES)
"""They report less, or nonsense: what cannot be read is an error, and what is reported is right."""
REFUSES = {
    BmcQuirk.MUST_CHANGE_PASSWORD: (AuthenticationError, "factory password"),
    BmcQuirk.OTHER_CERTIFICATE: (UntrustedError, "certificate"),
    BmcQuirk.EXPIRED_CERTIFICATE: (UntrustedError, "expired"),
}
"""Nothing can be done before an operator has changed something."""
COPES = [quirk for quirk in BmcQuirk if quirk not in {*SPOILS, *REFUSES}]


def among(*quirks: BmcQuirk) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("quirk", quirks, ids=lambda quirk: quirk.value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A machine of each quirk, named after it. Spurious 401s are HPE's: from another vendor a refused login is
    believed.
    """
    machines = {
        quirk.value: machine(number, quirk.value, Vendor.HPE if quirk is BmcQuirk.SPURIOUS_401 else Vendor.DELL, quirk)
        for number, quirk in enumerate(BmcQuirk, start=1)
    }
    with served(machines, tmp_path_factory.mktemp("quirks")) as both:
        yield both


def of(site: Site, quirk: BmcQuirk) -> Machine:
    return site.world.machines[quirk.value]


def serial_of(site: Site, quirk: BmcQuirk) -> Serial:
    return Serial(of(site, quirk).serial)


@among(*COPES)
def test_the_whole_machine_is_read(site: Site, quirk: BmcQuirk) -> None:
    """Every GPU, HCA and drive, whatever the BMC does."""
    with site.open(quirk.value) as bmc:
        found = bmc.inventory(soon()).value
    assert found.serial == of(site, quirk).serial
    assert whole(found, of(site, quirk))


@among(*COPES)
def test_power_and_media_are_switched_and_seen(site: Site, quirk: BmcQuirk) -> None:
    """On, off, a medium in and out: the world is as asked when the call returns."""
    serial, state = serial_of(site, quirk), site.world.states[quirk.value]
    with site.open(quirk.value) as bmc:
        bmc.set_power(Power.ON, serial, soon())
        assert state.power
        bmc.insert_media(IMAGE, serial, soon())
        assert [medium.image for medium in state.media.values()] == [IMAGE]
        bmc.eject_media(IMAGE, serial, soon())
        assert not state.media
        bmc.set_power(Power.OFF, serial, soon())
        assert not state.power


@among(*(quirk for quirk in COPES if quirk is not BmcQuirk.REVERTS_BOOT))
def test_a_boot_override_is_there(site: Site, quirk: BmcQuirk) -> None:
    """When the call returns it is in force, for one boot."""
    with site.open(quirk.value) as bmc:
        bmc.boot_once(BootOnce(BootSource.PXE), serial_of(site, quirk), soon())
    state = site.world.states[quirk.value]
    assert (state.boot_target, state.boot_once) == (BootTarget.PXE, True)


def test_a_boot_override_that_is_taken_back_is_noticed(site: Site) -> None:
    """An error that names what was asked and what is shown."""
    quirk = BmcQuirk.REVERTS_BOOT
    with (
        site.open(quirk.value) as bmc,
        pytest.raises(ClusterctlError, match=r"boot once from pxe but then shows: .*None.*Legacy"),
    ):
        bmc.boot_once(BootOnce(BootSource.PXE), serial_of(site, quirk), soon())


@among(*SPOILS)
def test_what_is_reported_is_right_and_what_is_missing_is_unknown(site: Site, quirk: BmcQuirk) -> None:
    """All of a kind of parts, or those that could be read of a list that is known to be incomplete."""
    there = of(site, quirk)
    with site.open(quirk.value) as bmc:
        found = bmc.inventory(soon()).value
    assert found.gpus is None or {gpu.serial for gpu in found.gpus} <= {gpu.serial for gpu in there.gpus}
    for kind, parts in (("gpus", there.gpus), ("hcas", there.hcas), ("drives", there.drives)):
        reported = getattr(found, kind)
        assert not found.complete(kind) or len(reported) == len(parts)
        assert len(reported or ()) <= len(parts)


@among(*SPOILS)
def test_spoilt_answers_end_in_typed_errors(site: Site, quirk: BmcQuirk) -> None:
    """Each operation is done, or fails with an error of ours that names the place."""
    address, serial = of(site, quirk).bmc.address, serial_of(site, quirk)
    with site.open(quirk.value) as bmc:
        for name, operation in OPERATIONS.items():
            error = failure(lambda operation=operation: operation(bmc, serial))
            assert error is None or error.where.startswith(address), name


@among(*REFUSES)
def test_what_the_operator_must_repair_first(site: Site, quirk: BmcQuirk) -> None:
    """The error has what is wrong and what to do; the machine was not touched."""
    kind, words = REFUSES[quirk]
    with pytest.raises(kind, match=words) as caught, site.open(quirk.value) as bmc:
        bmc.set_power(Power.ON, serial_of(site, quirk), soon())
    assert caught.value.remedy
    assert not site.world.states[quirk.value].power


def test_a_wrong_password_locks_no_account(site: Site) -> None:
    """However often a run comes by with it: the BMC is asked once, and the right one still opens."""
    name = BmcQuirk.LOCKS_OUT.value
    for _ in range(5):
        with pytest.raises(AuthenticationError), site.open(name, "not-the-one"):
            pass
    with site.open(name) as client:
        assert client.power(soon()).value is Power.OFF


def test_the_end_of_post_is_waited_for(site: Site) -> None:
    """A boot override that the BMC refuses in POST is set once the machine is through."""
    quirk = BmcQuirk.POST_BUSY
    state = site.world.states[quirk.value]
    state.posting = True
    timer = FakeTimer().act_when_waited(lambda: setattr(state, "posting", False))
    with site.open(quirk.value) as bmc:
        bmc.boot_once(BootOnce(BootSource.DISK), serial_of(site, quirk), Deadline.after(60, timer=timer))
    assert not state.posting
    assert state.boot_target is BootTarget.HDD


@among(BmcQuirk.SPURIOUS_401, BmcQuirk.LOSES_ANSWERS)
def test_all_power_is_taken_and_comes_back(site: Site, quirk: BmcQuirk) -> None:
    """An AC cycle, HPE's and Dell's: the BMC goes away with the machine, and both come back."""
    state = site.world.states[quirk.value]
    boots = state.boots
    with site.open(quirk.value) as bmc:
        bmc.ac_cycle(serial_of(site, quirk), soon())
    assert state.power
    assert eventually(lambda: state.boots > boots)


def test_several_at_once(site: Site) -> None:
    """A BMC with several quirks together is read and switched all the same."""
    together = {
        BmcQuirk.WEAK_ETAG,
        BmcQuirk.UNAVAILABLE,
        BmcQuirk.CUTS_BODIES,
        BmcQuirk.LOSES_ANSWERS,
        BmcQuirk.REDIRECTS,
    }
    before = of(site, BmcQuirk.SLOW)
    site.world.machines[before.name] = replace(before, bmc=replace(before.bmc, quirks=frozenset(together)))
    try:
        with site.open(before.name) as bmc:
            assert whole(bmc.inventory(soon()).value, before)
            bmc.set_power(Power.ON, Serial(before.serial), soon())
            assert site.world.states[before.name].power
    finally:
        site.world.machines[before.name] = before
