"""The client against the lab's MAAS, which drives the lab's BMCs: all over TLS on loopback addresses."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.maas import MaasInstaller
from clusterctl.fleet.errors import AuthenticationError, EdgeError, OutcomeUnknownError, RootDiskUnclearError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Mac, Serial
from clusterctl.ports import Deadline, InstallState, InstallTarget
from clusterctl_lab.emulators.maas import Failure
from clusterctl_lab.faults import inject
from tests.edges.maas.kit import BMC_PASSWORD, PRIVATE, PUBLIC, Lab, until
from tests.real_site import no_gold_on_a_real_site


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path, machines=2)
    yield lab
    lab.close()


@pytest.fixture
def deadline() -> Deadline:
    return Deadline.after(60)


def events(lab: Lab, kind: str) -> int:
    return sum(event.type == kind for event in lab.maas.service.store.events())


def test_a_bare_machine_is_enrolled_commissioned_and_deployed(lab, deadline):
    """The OS goes to the drive with the root disk's serial, with our user-data; Deployed means that the host runs."""
    installer, target = lab.installer(), lab.target()
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.ABSENT
    assert installer.prepare(target, deadline).value.state is InstallState.PREPARING
    until(installer, target, InstallState.READY)
    assert installer.start(target, deadline).value.state is InstallState.INSTALLING
    done = until(installer, target, InstallState.INSTALLED, InstallState.FAILED)
    assert done.state is InstallState.INSTALLED
    assert done.addresses == (lab.world.machines["node001"].address,)
    ((disk, user_data),) = lab.hosts.written["node001"]
    assert disk == "BOSS0001"
    document = yaml.safe_load(user_data)
    assert user_data.startswith(b"#cloud-config\n")
    assert document["hostname"] == "node001"
    assert document["ssh_keys"] == {"ed25519_private": PRIVATE, "ed25519_public": PUBLIC}
    assert document["ssh_pwauth"] is False


def test_evidence_of_an_emulator_makes_no_gold_on_a_real_site(lab, deadline):
    """Its answers carry the marker, and the site's own word is `real`."""
    assert lab.settings().origin is Origin.REAL
    observed = lab.installer().prepare(lab.target(), deadline)
    assert {item.origin for item in observed.evidence} == {Origin.SIMULATED}
    assert no_gold_on_a_real_site("install", observed.evidence)


def test_every_call_twice_does_the_work_once(lab, deadline):
    """Both prepare and start may be repeated at any moment: one machine, one commissioning, one deployment."""
    installer, target = lab.installer(), lab.target()
    for _ in range(2):
        installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    installer.prepare(target, deadline)
    assert installer.prepare(target, deadline).value.state is InstallState.READY
    for _ in range(2):
        installer.start(target, deadline)
    until(installer, target, InstallState.INSTALLED)
    assert installer.start(target, deadline).value.state is InstallState.INSTALLED
    assert installer.prepare(target, deadline).value.state is InstallState.INSTALLED
    assert len(lab.maas.service.store.nodes) == 1
    assert (events(lab, "Commissioning"), events(lab, "Deploying")) == (1, 1)
    assert len(lab.hosts.written["node001"]) == 1


def test_a_machine_that_never_boots_fails_with_maas_own_words_and_stays_so(lab, deadline):
    """Failed commissioning is not tried again by prepare, only by release; once the machine is repaired it succeeds."""
    healthy = lab.world.machines["node001"]
    lab.run(lab.world.replace(replace(healthy, boots=False)))
    lab.lose_patience(0.2)
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    failed = until(installer, target, InstallState.FAILED)
    assert failed.detail.startswith(
        "Failed commissioning: Marking node failed: Node operation 'Commissioning' timed out"
    )
    assert installer.prepare(target, deadline).value.state is InstallState.FAILED
    lab.run(lab.world.replace(healthy))
    lab.lose_patience(60)
    assert installer.release(target, deadline).value.state is InstallState.PREPARING
    until(installer, target, InstallState.READY)


def test_a_failed_deployment_is_released_and_succeeds_at_the_second_attempt(lab, deadline):
    """FAILED carries the cause; release leads back to READY."""
    lab.hosts.broken.add("node001")
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    installer.start(target, deadline)
    failed = until(installer, target, InstallState.FAILED)
    assert "Installation failed" in failed.detail
    with pytest.raises(EdgeError, match="Failed deployment"):
        installer.start(target, deadline)
    lab.hosts.broken.clear()
    installer.release(target, deadline)
    until(installer, target, InstallState.READY)
    installer.start(target, deadline)
    until(installer, target, InstallState.INSTALLED)


def test_an_os_that_maas_did_not_write_never_calls_it(lab, deadline):
    """An older OS on a data drive boots instead: MAAS waits without success and reports it; the host's address is known."""
    lab.run(lab.world.replace(inject(lab.world.machines, "wrong-boot-disk", "node001")))
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    lab.lose_patience(0.2)
    installer.start(target, deadline)
    failed = until(installer, target, InstallState.FAILED)
    assert "Deploying' timed out" in failed.detail
    assert failed.addresses == (lab.world.machines["node001"].address,)


@pytest.mark.parametrize(
    ("fault", "words"), [("dead-bmc", "Could not contact BMC"), ("wrong-bmc-password", "authorization failed")]
)
def test_a_bmc_that_maas_cannot_use(lab, deadline, fault, words):
    """MAAS meets the BMC's faults as the client does: over the network, through its power driver."""
    lab.run(lab.world.replace(inject(lab.world.machines, fault, "node001")))
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    assert words in until(installer, target, InstallState.FAILED).detail


def test_a_dead_bmc_shows_as_failed_with_the_bmc_in_the_detail(lab, deadline):
    """MAAS accepts the machine and finds out later."""
    installer = lab.installer()
    target = replace(lab.target(), bmc=replace(lab.target().bmc, port=44999))
    installer.prepare(target, deadline)
    failed = until(installer, target, InstallState.FAILED)
    assert "Could not contact node's BMC" in failed.detail


@pytest.mark.parametrize("failure", [Failure.LOST, Failure.GATEWAY_TIMEOUT])
@pytest.mark.parametrize("op", ["POST", "commission"])
def test_a_lost_answer_while_preparing_is_looked_up(lab, deadline, op, failure):
    """Enrolling and commissioning were done: the client sees that and does not repeat them."""
    installer, target = lab.installer(), lab.target()
    lab.maas.faults.answers[op].append(failure)
    assert installer.prepare(target, deadline).value.state is InstallState.PREPARING
    until(installer, target, InstallState.READY)
    assert len(lab.maas.service.store.nodes) == 1
    assert events(lab, "Commissioning") == 1


@pytest.mark.parametrize("op", ["allocate", "deploy"])
def test_a_lost_answer_while_starting_is_looked_up(lab, deadline, op):
    """No second deployment."""
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    lab.maas.faults.answers[op].append(Failure.GATEWAY_TIMEOUT)
    assert installer.start(target, deadline).value.state is InstallState.INSTALLING
    until(installer, target, InstallState.INSTALLED)
    assert events(lab, "Deploying") == 1


def test_a_lost_answer_that_cannot_be_looked_up_stays_unknown(lab, deadline):
    """The layout's answer is lost: it is unknown whether it was done, and the error has that; the next start
    sets the layout again.
    """
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    lab.maas.faults.answers["set_storage_layout"].append(Failure.LOST)
    with pytest.raises(OutcomeUnknownError):
        installer.start(target, deadline)
    installer.start(target, deadline)
    until(installer, target, InstallState.INSTALLED)


def test_reads_are_tried_again(lab, deadline):
    """A list call survives a time-out of the proxy, a busy MAAS and a dropped connection."""
    installer, target = lab.installer(), lab.target()
    lab.maas.faults.retry_after = 0
    lab.maas.faults.answers["GET"].extend([Failure.GATEWAY_TIMEOUT, Failure.BUSY, Failure.LOST])
    assert installer.observe([target], deadline)["node001"].value.state is InstallState.ABSENT


def test_a_write_that_maas_refuses_as_busy_is_an_error_and_not_repeated(lab, deadline):
    """503: nothing was done."""
    installer, target = lab.installer(), lab.target()
    lab.maas.faults.answers["commission"].append(Failure.BUSY)
    with pytest.raises(EdgeError, match="rack controller"):
        installer.prepare(target, deadline)
    assert events(lab, "Commissioning") == 0


def test_a_machine_that_enlisted_itself_is_adopted(lab, deadline):
    """Found by MAC; it gets our name and the BMC's address, and is not created a second time."""
    target = lab.target()
    lab.installer().prepare(target, deadline)
    until(lab.installer(), target, InstallState.READY)
    (node,) = lab.maas.service.store.nodes.values()
    node.hostname, node.power_type, node.power_parameters = "one-glider", "", {}
    assert lab.installer().prepare(target, deadline).value.state is InstallState.READY
    assert (node.hostname, node.power_type) == ("node001", "redfish")
    assert len(lab.maas.service.store.nodes) == 1


def test_pool_is_set_when_preparing(lab, deadline):
    """An enrolled machine is put into the site's pool; a pool that MAAS lacks is MAAS's refusal, with the field."""
    with pytest.raises(EdgeError, match="pool: Select a valid choice"):
        lab.installer(pool="training").prepare(lab.target(), deadline)
    lab.installer(pool="default", zone="default").prepare(lab.target(), deadline)


def test_another_serial_stops_everything(lab, deadline):
    """MAAS read another serial number than the BMC reported: neither prepare nor start touch that machine."""
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    stranger = replace(target, serial=Serial("OTHER1"))
    for act in (installer.prepare, installer.start, installer.release):
        with pytest.raises(EdgeError, match="has serial LAB0001, the BMC reports OTHER1"):
            act(stranger, deadline)
    status = installer.observe([stranger], deadline)["node001"].value
    assert status.state is InstallState.FAILED
    assert "OTHER1" in status.detail


def test_a_name_alone_proves_nothing(lab, deadline):
    """A New machine with the target's name and other MACs is not adopted."""
    installer, target = lab.installer(), lab.target()
    lab.run(lab.world.replace(replace(lab.world.machines["node001"], boots=False)))
    installer.prepare(target, deadline)
    with pytest.raises(EdgeError, match="another machine of this name"):
        installer.prepare(replace(target, macs=(Mac("02:00:00:00:00:01"),)), deadline)


def test_no_drive_with_the_serial_names_the_drives_there_are(lab, deadline):
    """The message lists all candidates, and nothing was allocated."""
    installer = lab.installer()
    target = replace(lab.target(), root_disk=Serial("GONE"))
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    with pytest.raises(EdgeError, match=r"no drive with the root disk's serial GONE; it sees sda .*BOSS0001.*nvme3n1"):
        installer.start(target, deadline)
    (node,) = lab.maas.service.store.nodes.values()
    assert node.owner == ""


def test_a_rule_names_the_root_disk_among_what_maas_commissioned(lab, deadline):
    """The OS goes to the one drive that fits, and the status names it for the proof after the first boot."""
    boot, *data = lab.world.machines["node001"].drives
    size = boot.size_bytes
    rule = RootDisk(chosen_by="host", min_bytes=size - 10**9, max_bytes=size + 10**9)
    installer, target = lab.installer(), replace(lab.target(), root_disk=Serial(""), root_rule=rule)
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    large = replace(target, root_rule=RootDisk(chosen_by="host", min_bytes=size + 10**9))
    with pytest.raises(RootDiskUnclearError, match=f"{len(data)} drives") as unclear:
        installer.start(large, deadline)
    assert "root_disk" in unclear.value.remedy
    installer.start(target, deadline)
    done = until(installer, target, InstallState.INSTALLED)
    assert (done.root.serial, done.root.by_rule) == (boot.serial, False)


def test_two_drives_with_the_serial_are_refused(lab, deadline):
    """It is not guessed which of them is meant."""
    machine = lab.world.machines["node001"]
    twins = tuple(replace(drive, serial="TWIN") for drive in machine.drives[:2])
    lab.run(lab.world.replace(replace(machine, drives=twins)))
    installer, target = lab.installer(), replace(lab.target(), root_disk=Serial("TWIN"))
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    with pytest.raises(EdgeError, match="2 drives"):
        installer.start(target, deadline)


def test_a_machine_of_another_user_is_left_alone(lab, deadline):
    """Allocated to an operator: no act touches it, and it never counts as ours."""
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    (node,) = lab.maas.service.store.nodes.values()
    node.status, node.owner = type(node.status).ALLOCATED, "alice"
    for act in (installer.prepare, installer.start, installer.release):
        with pytest.raises(EdgeError, match="belongs to alice"):
            act(target, deadline)
    status = installer.observe([target], deadline)["node001"].value
    assert (status.state, "belongs to alice" in status.detail) == (InstallState.FAILED, True)


def test_many_machines_are_observed_with_one_request(lab, deadline):
    """Each by its own name, on its own part of the answer; only the absent ones are looked for by name too."""
    installer = lab.installer()
    first, second = lab.target("node001"), lab.target("node002")
    installer.prepare(first, deadline)
    until(installer, first, InstallState.READY)
    seen = installer.observe([first, second], deadline)
    assert [seen[name].value.state for name in ("node001", "node002")] == [InstallState.READY, InstallState.ABSENT]
    installer.prepare(second, deadline)
    until(installer, second, InstallState.READY)
    seen = installer.observe([first, second], deadline)
    assert [seen[name].value.state for name in ("node001", "node002")] == [InstallState.READY, InstallState.READY]
    for name in ("node001", "node002"):
        (evidence,) = seen[name].evidence
        assert "of 2 machines" in evidence.source
        assert json.loads(evidence.content)["hostname"] == name


def test_a_machine_with_another_network_card_is_found_by_name_and_serial(lab, deadline):
    """No MAC in common, but the name and the serial number that MAAS read: it is the same machine, in every call."""
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    exchanged = replace(target, macs=(Mac("02:00:00:00:00:01"),))
    assert installer.observe([exchanged], deadline)["node001"].value.state is InstallState.READY
    assert installer.prepare(exchanged, deadline).value.state is InstallState.READY
    assert len(lab.maas.service.store.nodes) == 1


def test_an_unknown_series_is_maas_refusal_with_its_choices(lab, deadline):
    """The error names the field and what MAAS has."""
    installer, target = lab.installer(series="noble"), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    with pytest.raises(EdgeError, match="'noble' is not a valid distro_series"):
        installer.start(target, deadline)


def test_a_wrong_key_is_an_authentication_error_without_any_secret(lab, deadline):
    """MAAS's own answer prints the right secret; ours never does."""
    with pytest.raises(AuthenticationError) as caught:
        lab.installer(api_key="consumerkey:tokenkey:wrong").prepare(lab.target(), deadline)
    assert "secretkey" not in str(caught.value)
    assert "the secret of the API key is wrong" in str(caught.value)


def test_tls_is_verified(lab, deadline, tmp_path):
    """A MAAS whose certificate another CA signed is not talked to."""
    other = tmp_path / "other"
    other.mkdir()
    lab_ca = type(lab.ca)(other)
    with pytest.raises(EdgeError, match="TLS certificate is not accepted"):
        lab.installer(ca_file=str(lab_ca.file)).prepare(lab.target(), deadline)
    assert not lab.maas.service.store.nodes


def test_no_secret_in_evidence(lab, deadline):
    """Neither BMC password nor API key nor host key in what is kept of the exchanges."""
    installer, target = lab.installer(), lab.target()
    kept = [installer.prepare(target, deadline)]
    until(installer, target, InstallState.READY)
    kept += [installer.start(target, deadline), *installer.observe([target], deadline).values()]
    content = b"".join(item.source.encode() + item.content for seen in kept for item in seen.evidence)
    assert content
    for secret in (BMC_PASSWORD.encode(), b"secretkey", PRIVATE.encode(), base64.b64encode(PRIVATE.encode())[:40]):
        assert secret not in content


def deployed(lab: Lab, deadline: Deadline) -> tuple[MaasInstaller, InstallTarget]:
    installer, target = lab.installer(), lab.target()
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    installer.start(target, deadline)
    until(installer, target, InstallState.INSTALLED)
    return installer, target


def test_a_deployed_machine_is_erased_once_and_comes_back_empty(lab, deadline):
    """Erasing may be asked for twice; at its end MAAS has the machine ready, off, and with nothing on its drives."""
    installer, target = deployed(lab, deadline)
    for _ in range(2):
        assert installer.erase(target, deadline).value.state is InstallState.ERASING
    until(installer, target, InstallState.READY)
    assert "node001" not in lab.hosts.written
    assert not lab.world.states["node001"].power
    assert events(lab, "Released") == 1


def test_a_machine_that_maas_has_not_deployed_is_not_erased(lab, deadline):
    """Release of a ready machine is answered with 200 and does nothing: that must never pass for erased."""
    installer, target = lab.installer(), lab.target()
    with pytest.raises(EdgeError, match="does not know the machine"):
        installer.erase(target, deadline)
    installer.prepare(target, deadline)
    until(installer, target, InstallState.READY)
    with pytest.raises(EdgeError, match="only machines that it has deployed, and this one is Ready"):
        installer.erase(target, deadline)


def test_only_a_proven_serial_is_erased(lab, deadline):
    """The serial that MAAS read off the machine must be the one that the operator typed; a missing one is not proven."""
    installer, target = deployed(lab, deadline)
    with pytest.raises(EdgeError, match="has serial"):
        installer.erase(replace(target, serial=Serial("OTHER")), deadline)
    node = lab.maas.service.store.by_hostname("node001")
    node.hardware = replace(node.hardware, serial="Unknown")
    with pytest.raises(EdgeError, match="has not read the serial"):
        installer.erase(target, deadline)
    assert "node001" in lab.hosts.written


def test_a_drive_that_does_not_erase_shows_as_failed(lab, deadline):
    """MAAS reports it, and can be asked again once the drive is replaced."""
    installer, target = deployed(lab, deadline)
    sound = lab.world.machines["node001"]
    broken = replace(sound, drives=(*sound.drives[:-1], replace(sound.drives[-1], failed=True)))
    lab.run(lab.world.replace(broken))
    installer.erase(target, deadline)
    failed = until(installer, target, InstallState.FAILED)
    assert "Failed disk erasing" in failed.detail
    assert "node001" in lab.hosts.written
    lab.run(lab.world.replace(sound))
    installer.erase(target, deadline)
    until(installer, target, InstallState.READY)
    assert "node001" not in lab.hosts.written


def test_a_lost_answer_to_an_erase_is_settled_by_looking(lab, deadline):
    """Erasing already: done. Not: unknown, and reported."""
    installer, target = deployed(lab, deadline)
    lab.maas.faults.answers["release"].append(Failure.LOST)
    assert installer.erase(target, deadline).value.state is InstallState.ERASING
    until(installer, target, InstallState.READY)
