"""The client against the lab's MAAS: few requests for many machines, tags, and states that last too long."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.maas import MaasInstaller
from clusterctl.edges.maas.api import MaasApi, MaasBusyError
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.settings import StateLimits
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Mac
from clusterctl.ports import Deadline, InstallState, InstallTarget
from clusterctl_lab.emulators.maas import Failure
from clusterctl_lab.emulators.maas.model import Tag
from clusterctl_lab.emulators.maas.status import Status
from tests.edges.maas.kit import Lab, UtcClock, until


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, machines=2)
    yield lab
    lab.close()


@pytest.fixture
def deadline() -> Deadline:
    return Deadline.after(120)


# --- few requests -----------------------------------------------------------------------------------------------------


def test_machines_that_were_found_once_are_observed_by_their_ids(lab, deadline):
    """One list call a look, whatever their number of MACs; one that was deleted is looked for by MAC and name again."""
    installer, targets = lab.installer(), [lab.target("node001"), lab.target("node002")]
    for target in targets:
        installer.prepare(target, deadline)
        until(installer, target, InstallState.READY)
    lab.maas.requests.clear()
    assert {seen.value.state for seen in installer.observe(targets, deadline).values()} == {InstallState.READY}
    assert lab.maas.requests == {"GET machines": 1}
    store = lab.maas.service.store
    del store.nodes[store.by_hostname("node002").system_id]
    seen = installer.observe(targets, deadline)
    assert [seen[name].value.state for name in ("node001", "node002")] == [InstallState.READY, InstallState.ABSENT]
    assert lab.maas.requests == {"GET machines": 4}


def test_a_list_of_many_machines_stays_within_a_servers_request_line(lab, deadline):
    """511 by id are one request, by MAC three, by name two; the lab's server, too, takes lines of 8 KiB at most."""
    machines = Machines(MaasApi(lab.settings(), UtcClock()))
    machines.by_ids([f"{number:06x}" for number in range(511)], deadline)
    assert lab.maas.requests == {"GET machines": 1}
    machines.by_macs([Mac(f"02:00:00:00:{n // 256:02x}:{n % 256:02x}") for n in range(511)], deadline)
    assert lab.maas.requests == {"GET machines": 4}
    machines.by_hostnames([f"node{number:03}" for number in range(511)], deadline)
    assert lab.maas.requests == {"GET machines": 6}


# --- tags -------------------------------------------------------------------------------------------------------------


def test_tags_are_made_where_they_lack_and_put_on_once(lab, deadline):
    """One that MAAS has, one that it has not; the second prepare asks for neither."""
    store = lab.maas.service.store
    store.tags["gpu"] = Tag("gpu", "", "", "")
    installer, target = lab.installer(tags=("gpu", "training")), lab.target()
    installer.prepare(target, deadline)
    assert sorted(store.by_hostname("node001").tags) == ["gpu", "training"]
    until(installer, target, InstallState.READY)
    lab.maas.requests.clear()
    installer.prepare(target, deadline)
    assert not [words for words in lab.maas.requests if "tags" in words]


def test_a_tag_that_maas_confirms_and_does_not_set_is_noticed(lab, deadline):
    """The answer is 200 with `added: 0`, as for a machine that MAAS does not know: the machine itself is asked."""
    lab.maas.faults.deaf_tags.add("gpu")
    with pytest.raises(EdgeError, match="did not put the tag gpu on node001"):
        lab.installer(tags=("gpu",)).prepare(lab.target(), deadline)
    assert lab.maas.requests["POST machines commission"] == 0


# --- states that last too long ----------------------------------------------------------------------------------------

LIMITS = StateLimits(commissioning=600, testing=600, deploying=1200, releasing=300)


def later(minutes: float) -> dt.timedelta:
    return dt.timedelta(minutes=minutes)


@pytest.mark.parametrize("reboot_of_controller", [False, True])
def test_a_stuck_commissioning_fails_with_words_and_is_aborted_by_release(lab, deadline, reboot_of_controller):
    """MAAS itself waits for ever. A run that finds it so asks MAAS's events how long it lasts already."""
    clock, target = UtcClock(), lab.target()
    lab.maas.faults.stuck.add("node001")
    installer = lab.installer(clock, limits=LIMITS)
    installer.prepare(target, deadline)
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.PREPARING
    if reboot_of_controller:
        age_events(lab, later(11))
        installer = lab.installer(UtcClock(), limits=LIMITS)
    else:
        clock.ahead = later(11)
    stuck = installer.observe([target], deadline)["node001"].value
    assert stuck.state is InstallState.FAILED
    assert "stuck: Commissioning for 11 minutes, provisioning.deadlines.commissioning allows 10" in stuck.detail
    released_once_idle(installer, target, deadline)
    assert until(installer, target, InstallState.ABSENT).detail.startswith("New")
    lab.maas.faults.stuck.clear()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)


def test_a_stuck_deployment_is_released_and_succeeds_at_the_next_attempt(lab, deadline):
    """From Deploying straight back to Ready."""
    clock, target = UtcClock(), lab.target()
    installer = lab.installer(clock, limits=LIMITS)
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    lab.maas.faults.stuck.add("node001")
    installer.start(target, deadline)
    clock.ahead = later(19)
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.INSTALLING
    clock.ahead = later(21)
    assert "provisioning.deadlines.deploying allows 20" in installer.observe([target], deadline)["node001"].value.detail
    installer.release(target, deadline)
    until(installer, target, InstallState.READY)
    lab.maas.faults.stuck.clear()
    installer.start(target, deadline)
    until(installer, target, InstallState.INSTALLED)


def test_what_maas_cannot_abort_needs_a_person(lab, deadline):
    """Releasing for ever: MAAS has no call for that."""
    clock, target = UtcClock(), lab.target()
    installer = lab.installer(clock, limits=LIMITS)
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    lab.maas.service.store.by_hostname("node001").status = Status.RELEASING
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.RELEASING
    clock.ahead = later(6)
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.FAILED
    with pytest.raises(EdgeError, match="no way to abort"):
        installer.release(target, deadline)


def test_each_state_has_its_own_time(lab, deadline):
    """A slow commissioning leaves the deployment all of its time; a state that rests is never too long."""
    clock, target = UtcClock(), lab.target()
    installer = lab.installer(clock, limits=LIMITS)
    installer.prepare(target, deadline)
    clock.ahead = later(9)
    until(installer, target, InstallState.READY)
    clock.ahead = later(1000)
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.READY
    lab.maas.faults.stuck.add("node001")
    installer.start(target, deadline)
    clock.ahead = later(1019)
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.INSTALLING


def test_a_deploy_that_maas_breaks_down_over_is_looked_up(lab, deadline):
    """From 3.5 on MAAS may wait for the BMC and answer 500: done where the machine deploys, else MAAS's words."""
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    lab.maas.faults.answers["deploy"].append(Failure.BREAKDOWN)
    assert installer.start(target, deadline).value.state is InstallState.INSTALLING
    until(installer, target, InstallState.INSTALLED)
    assert lab.maas.requests["POST machines deploy"] == 1


def age_events(lab: Lab, by: dt.timedelta) -> None:
    """As if all that happened to the machine had happened earlier; then something happens to another one."""
    store = lab.maas.service.store
    node = store.by_hostname("node001")
    node.events[:] = [replace(event, at=event.at - by) for event in node.events]
    lab.installer().prepare(lab.target("node002"), Deadline.after(60))


def released_once_idle(installer: MaasInstaller, target: InstallTarget, deadline: Deadline) -> None:
    """MAAS answers 503 to an abort while it talks to the machine's BMC: asked again, as the step does."""
    while True:
        try:
            installer.release(target, deadline)
        except MaasBusyError:
            deadline.sleep(0.05, "waiting for MAAS's power action")
        else:
            return
