"""The client against the lab's badly mannered BMCs: it copes, or says in a typed error what is wrong. Never a traceback,
a hang, or a part that is silently lost.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, UntrustedError
from clusterctl.fleet.node import Serial
from clusterctl.ports import Power
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.machine import Machine
from clusterctl_lab.manner import Manner
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.manner_kit import IMAGE, OPERATIONS, Site, failure, machine, served, soon, whole
from tests.lab.lab_kit import eventually

SPOILS = (Manner.BROKEN_JSON, Manner.MISSING_MEMBERS, Manner.WRONG_TYPES)
"""They tell less, or nonsense: what cannot be read is said, and what is told is right."""
REFUSES = {
    Manner.MUST_CHANGE_PASSWORD: (AuthenticationError, "factory password"),
    Manner.OTHER_CERTIFICATE: (UntrustedError, "certificate"),
    Manner.EXPIRED_CERTIFICATE: (UntrustedError, "expired"),
}
"""Nothing can be done before somebody has done something about it."""
COPES = [manner for manner in Manner if manner not in {*SPOILS, *REFUSES}]


def among(*manners: Manner) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("manner", manners, ids=lambda manner: manner.value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A machine of each manner, named after it. Spurious 401s are HPE's: from another vendor a refused login is
    believed.
    """
    machines = {
        manner.value: machine(
            number, manner.value, Vendor.HPE if manner is Manner.SPURIOUS_401 else Vendor.DELL, manner
        )
        for number, manner in enumerate(Manner, start=1)
    }
    with served(machines, tmp_path_factory.mktemp("manners")) as both:
        yield both


def of(site: Site, manner: Manner) -> Machine:
    return site.world.machines[manner.value]


def serial_of(site: Site, manner: Manner) -> Serial:
    return Serial(of(site, manner).serial)


@among(*COPES)
def test_the_whole_machine_is_read(site: Site, manner: Manner) -> None:
    """Every GPU, HCA and drive, whatever the BMC does."""
    with site.open(manner.value) as bmc:
        found = bmc.inventory(soon()).value
    assert found.serial == of(site, manner).serial
    assert whole(found, of(site, manner))


@among(*COPES)
def test_power_and_media_are_switched_and_seen(site: Site, manner: Manner) -> None:
    """On, off, a medium in and out: the world is as asked when the call returns."""
    serial, state = serial_of(site, manner), site.world.states[manner.value]
    with site.open(manner.value) as bmc:
        bmc.set_power(Power.ON, serial, soon())
        assert state.power
        bmc.insert_media(IMAGE, serial, soon())
        assert [medium.image for medium in state.media.values()] == [IMAGE]
        bmc.eject_media(IMAGE, serial, soon())
        assert not state.media
        bmc.set_power(Power.OFF, serial, soon())
        assert not state.power


@among(*(manner for manner in COPES if manner is not Manner.REVERTS_BOOT))
def test_a_boot_override_is_there(site: Site, manner: Manner) -> None:
    """When the call returns it is in force, for one boot."""
    with site.open(manner.value) as bmc:
        bmc.boot_once(BootOnce(BootSource.PXE), serial_of(site, manner), soon())
    state = site.world.states[manner.value]
    assert (state.boot_target, state.boot_once) == (BootTarget.PXE, True)


def test_a_boot_override_that_is_taken_back_is_noticed(site: Site) -> None:
    """An error that names what was asked and what is shown."""
    manner = Manner.REVERTS_BOOT
    with (
        site.open(manner.value) as bmc,
        pytest.raises(ClusterctlError, match=r"boot once from pxe but then shows: .*None.*Legacy"),
    ):
        bmc.boot_once(BootOnce(BootSource.PXE), serial_of(site, manner), soon())


@among(*SPOILS)
def test_what_is_told_is_right_and_what_is_not_told_is_unknown(site: Site, manner: Manner) -> None:
    """All of a kind of parts, or nobody knows how many: never some of them."""
    there = of(site, manner)
    with site.open(manner.value) as bmc:
        found = bmc.inventory(soon()).value
    assert found.gpus is None or {gpu.serial for gpu in found.gpus} <= {gpu.serial for gpu in there.gpus}
    for told, parts in ((found.gpus, there.gpus), (found.hcas, there.hcas), (found.drives, there.drives)):
        assert told is None or len(told) == len(parts)


@among(*SPOILS)
def test_spoilt_answers_end_in_typed_errors(site: Site, manner: Manner) -> None:
    """Each operation is done, or fails with an error of ours that says where."""
    address, serial = of(site, manner).bmc.address, serial_of(site, manner)
    with site.open(manner.value) as bmc:
        for name, operation in OPERATIONS.items():
            error = failure(lambda operation=operation: operation(bmc, serial))
            assert error is None or error.where.startswith(address), name


@among(*REFUSES)
def test_what_somebody_must_mend_first(site: Site, manner: Manner) -> None:
    """The error says what is wrong and what to do; the machine was not touched."""
    kind, words = REFUSES[manner]
    with pytest.raises(kind, match=words) as caught, site.open(manner.value) as bmc:
        bmc.set_power(Power.ON, serial_of(site, manner), soon())
    assert caught.value.remedy
    assert not site.world.states[manner.value].power


def test_a_wrong_password_locks_nobody_out(site: Site) -> None:
    """However often a run comes by with it: the BMC is asked once, and the right one still opens."""
    name = Manner.LOCKS_OUT.value
    for _ in range(5):
        with pytest.raises(AuthenticationError), site.open(name, "not-the-one"):
            pass
    with site.open(name) as client:
        assert client.power(soon()).value is Power.OFF


def test_the_end_of_post_is_waited_for(site: Site) -> None:
    """A boot override that the BMC refuses in POST is set once the machine is through."""
    manner = Manner.POST_BUSY
    state = site.world.states[manner.value]
    state.posting = True
    over = threading.Timer(0.1, lambda: setattr(state, "posting", False))
    with site.open(manner.value) as bmc:
        over.start()
        bmc.boot_once(BootOnce(BootSource.DISK), serial_of(site, manner), soon())
    over.join()
    assert state.boot_target is BootTarget.HDD


@among(Manner.SPURIOUS_401, Manner.LOSES_ANSWERS)
def test_all_power_is_taken_and_comes_back(site: Site, manner: Manner) -> None:
    """An AC cycle, HPE's and Dell's: the BMC goes away with the machine, and both come back."""
    state = site.world.states[manner.value]
    boots = state.boots
    with site.open(manner.value) as bmc:
        bmc.ac_cycle(serial_of(site, manner), soon())
    assert state.power
    assert eventually(lambda: state.boots > boots)


def test_several_at_once(site: Site) -> None:
    """A BMC with several manners together is read and switched all the same."""
    together = {Manner.WEAK_ETAG, Manner.UNAVAILABLE, Manner.CUTS_BODIES, Manner.LOSES_ANSWERS, Manner.REDIRECTS}
    before = of(site, Manner.SLOW)
    site.world.machines[before.name] = replace(before, bmc=replace(before.bmc, manners=frozenset(together)))
    try:
        with site.open(before.name) as bmc:
            assert whole(bmc.inventory(soon()).value, before)
            bmc.set_power(Power.ON, Serial(before.serial), soon())
            assert site.world.states[before.name].power
    finally:
        site.world.machines[before.name] = before
