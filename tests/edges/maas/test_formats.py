"""MAAS's bodies and refusals, from cases of our own: what is read, and what is refused."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.maas import MaasSettings
from clusterctl.edges.maas.api import refusal
from clusterctl.edges.maas.cloud_config import cloud_config
from clusterctl.edges.maas.failures import MaasFailure
from clusterctl.edges.maas.matching import answering, check_layout, enrolment, root_contract, root_drive
from clusterctl.edges.maas.states import STATES, status_of
from clusterctl.fleet.errors import EdgeError, ParseError, RootDiskUnclearError, UsageError
from clusterctl.fleet.hardware.disk_contract import DiskContract
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.network.host_network import Addressing, HostNetwork, HostPort
from clusterctl.fleet.node import Mac, Serial
from clusterctl.formats.host.netplan import netplan_file
from clusterctl.formats.maas import machines as formats
from clusterctl.formats.maas.machines import MaasEvent, MachineStatus
from clusterctl.ports import BmcAddress, InstallState, InstallTarget
from tests.formats.host_networks import NETWORKS

NOW = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)
DATA = Path(__file__).parent / "data"
REFUSALS = json.loads((DATA / "refusals.json").read_text())
TARGET = InstallTarget(
    name="node001",
    serial=Serial("GT3X4Y1"),
    macs=(Mac("aa:bb:cc:00:00:01"), Mac("aa:bb:cc:00:00:02")),
    bmc=BmcAddress("192.0.2.1", "root", "hidden"),
    root_disk=Serial("BOSS1"),
    authorized_key="ssh-ed25519 AAAA ops",
    user="ops",
    host_key_private="private\nkey\n",
    host_key_public="ssh-ed25519 BBBB",
)


def settings(**changes: object) -> MaasSettings:
    return MaasSettings(**{"url": "https://maas.example:5443/MAAS", "api_key": "a:b:c", "series": "jammy", **changes})


def machine_body() -> dict[str, object]:
    return json.loads((DATA / "machine.json").read_text())


def test_a_machine_is_read_with_serials_trimmed_and_macs_lower_case():
    """Serials are padded by some vendors, MACs come in either case."""
    machine = formats.machine(machine_body())
    assert machine.serial == "GT3X4Y1"
    assert machine.macs == ("aa:bb:cc:00:00:01",)
    assert [(drive.serial, drive.root) for drive in machine.drives] == [("BOSS1", True), ("NV1", False)]
    assert (machine.pool, machine.zone, machine.addresses) == ("training", "default", ("192.0.2.7",))


@pytest.mark.parametrize("field", ["system_id", "hostname", "status", "status_name", "power_type"])
def test_a_machine_without_a_needed_field_is_not_understood(field):
    """No default stands in for a field that MAAS left out."""
    body = machine_body()
    del body[field]
    with pytest.raises(ParseError, match=field):
        formats.machine(body)


@pytest.mark.parametrize("body", [None, [], "text", {"status": 99}])
def test_nonsense_is_not_understood(body):
    """Any other JSON is a ParseError, also a status that MAAS does not have."""
    with pytest.raises(ParseError):
        formats.machine(body)
    with pytest.raises(ParseError):
        formats.machines({"machines": body})
    with pytest.raises(ParseError):
        formats.user_name(body)


def test_every_status_has_a_state():
    """A status that is added without a decision fails here."""
    assert STATES.keys() == set(MachineStatus)


def test_a_failure_has_the_words_of_the_newest_error_not_of_the_last_event():
    """MAAS's status_message is its last event, here a harmless one."""
    machine = formats.machine(machine_body())
    error = MaasEvent(9, "abc123", "ERROR", "Failed to power on node", "BMC refused", NOW.replace(tzinfo=None))
    reported = status_of(machine, MaasFailure(str(error)))
    assert reported.state is InstallState.FAILED
    assert reported.detail == "Failed deployment: Failed to power on node: BMC refused"
    assert status_of(machine).detail == "Failed deployment: Powering on"


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case['status']}-{case['message'][:20]}")
def test_refusals_become_typed_errors_without_secrets(case):
    """Both shapes of refusal, the gateway's time-outs, and bad keys whose body is never shown."""
    headers = {"content-type": case["content_type"], "retry-after": "10"}
    error = refusal(case["status"], headers, case["text"], where="MAAS", writes=True)
    assert type(error).__name__ == case["error"]
    assert case["message"] in str(error)
    assert "s3cret" not in str(error)


def test_a_gateway_timeout_of_a_read_may_be_asked_again():
    """Nothing was to change, so nothing is unknown."""
    error = refusal(504, {}, "", where="MAAS", writes=False)
    assert type(error).__name__ == "MaasBusyError"


def test_user_data_makes_the_host_known_and_closes_passwords():
    """cloud-init gets host key, user, authorized key; the private key keeps its line ends."""
    text = cloud_config(TARGET, NOW)
    assert text.startswith("#cloud-config\n")
    document = yaml.safe_load(text)
    assert document["ssh_keys"] == {"ed25519_private": "private\nkey\n", "ed25519_public": "ssh-ed25519 BBBB"}
    assert document["users"] == [
        {
            "name": "ops",
            "shell": "/bin/bash",
            "lock_passwd": True,
            "sudo": "ALL=(ALL) NOPASSWD:ALL",
            "ssh_authorized_keys": ["ssh-ed25519 AAAA ops"],
        }
    ]
    assert (document["hostname"], document["ssh_pwauth"], document["disable_root"]) == ("node001", False, True)


def test_user_data_lays_the_sites_network_in_place_of_maas_own():
    """The whole netplan file, MAAS's own taken away before it is applied; rails are named first where there are any."""
    document = yaml.safe_load(cloud_config(replace(TARGET, network=NETWORKS["rails"]), NOW))
    files = {file["path"]: file for file in document["write_files"]}
    assert files["/etc/netplan/90-clusterctl.yaml"]["content"] == netplan_file(NETWORKS["rails"])
    assert files["/etc/netplan/90-clusterctl.yaml"]["permissions"] == "0600"
    assert "disabled" in files["/etc/cloud/cloud.cfg.d/99-clusterctl-network.cfg"]["content"]
    assert files.keys() >= {"/etc/udev/rules.d/70-clusterctl-ipoib.rules"}
    assert document["runcmd"][0] == ["rm", "-f", "/etc/netplan/50-cloud-init.yaml"]
    assert document["runcmd"][-1] == ["netplan", "apply"]
    plain = yaml.safe_load(cloud_config(replace(TARGET, network=NETWORKS["static"]), NOW))
    assert plain["runcmd"] == [["rm", "-f", "/etc/netplan/50-cloud-init.yaml"], ["netplan", "apply"]]
    assert not {"write_files", "runcmd"} & yaml.safe_load(cloud_config(TARGET, NOW)).keys()


def test_without_keys_there_is_no_user_data():
    """A host that cannot be known or reached is not installed."""
    fields = {name: getattr(TARGET, name) for name in TARGET.__slots__}
    for missing in ("host_key_private", "host_key_public", "authorized_key"):
        with pytest.raises(UsageError):
            cloud_config(InstallTarget(**{**fields, missing: ""}), NOW)


def test_enrolment_names_the_bmc_by_address_never_by_url():
    """All MACs, no commissioning yet; the port only where it is not 443, the System only where the site names one: every
    vendor calls its own otherwise.
    """
    form = enrolment(TARGET, settings())
    assert form[:5] == [
        ("hostname", "node001"),
        ("architecture", "amd64/generic"),
        ("mac_addresses", "aa:bb:cc:00:00:01"),
        ("mac_addresses", "aa:bb:cc:00:00:02"),
        ("commission", "false"),
    ]
    assert dict(form)["power_parameters_power_address"] == "192.0.2.1"
    assert "power_parameters_node_id" not in dict(form)
    named = enrolment(TARGET, settings(power_node_id="DGX"))
    assert dict(named)["power_parameters_node_id"] == "DGX"


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "http://maas.example:5240/MAAS"},
        {"url": "maas.example"},
        {"api_key": "only:two"},
        {"api_key": "a::c"},
        {"ca_file": "/nonexistent/ca.pem"},
    ],
)
def test_settings_that_would_leak_or_fail_are_refused_at_once(changes):
    """Plain http, a URL that is none, half a key, a CA file that is not there: all name the field of the site file."""
    with pytest.raises(UsageError) as caught:
        settings(**changes)
    assert caught.value.where.startswith("provisioning.")


def test_settings_find_the_api_and_hide_the_key():
    """With or without /MAAS and the API's path; the key is not in the repr."""
    for url in ("https://m/MAAS", "https://m/MAAS/", "https://m", "https://m/MAAS/api/2.0/"):
        assert settings(url=url).base == "https://m/MAAS/api/2.0"
    assert "a:b:c" not in repr(settings())
    assert settings(url="http://m/MAAS", allow_plain_http=True).base == "http://m/MAAS/api/2.0"


@pytest.mark.parametrize(
    ("id_path", "wwn"),
    [
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4", "0x5000c500a1b2c3d4"),
        ("/dev/disk/by-id/nvme-eui.0025385b71b2a7c1", "eui.0025385b71b2a7c1"),
        ("/dev/disk/by-id/nvme-SAMSUNG_MZ_S4EVNX0", ""),
        ("/dev/disk/by-id/ata-DELLBOSS_VD_00112233", ""),
        ("/dev/sda", ""),
        (None, ""),
    ],
)
def test_a_drive_has_its_wwn_where_maas_names_it_by_that(id_path, wwn):
    """Udev's names of drives: only those that are made of the WWN hold one."""
    body = machine_body()
    body["physicalblockdevice_set"][0]["id_path"] = id_path
    assert formats.machine(body).drives[0].wwn == wwn


def test_the_root_disk_is_found_by_its_wwn_where_the_serials_differ():
    """BMC and MAAS report different serials of a RAID volume; the WWN is one. Both drives with it: no guess is made."""
    body = machine_body()
    body["physicalblockdevice_set"][0]["id_path"] = "/dev/disk/by-id/wwn-0x5000C500A1B2C3D4"
    drives = formats.machine(body).drives
    target = replace(TARGET, root_disk=Serial("00VOLUME"), root_wwn="naa.5000c500a1b2c3d4")
    assert root_drive(drives, target).name == "sda"
    body["physicalblockdevice_set"][1]["id_path"] = "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
    with pytest.raises(EdgeError, match="2 drives with the root disk's serial 00VOLUME or WWN naa"):
        root_drive(formats.machine(body).drives, target)


def test_a_layout_that_is_not_on_the_root_disk_alone_is_refused():
    """Root and boot loader on the one drive, or nothing is deployed: MAAS forgets boot disks, and takes its first."""
    body = machine_body()
    check_layout(formats.machine(body), TARGET)
    body["boot_disk"] = {"id": 8, "serial": "NV1"}
    with pytest.raises(EdgeError, match="boot loader on another drive"):
        check_layout(formats.machine(body), TARGET)
    with pytest.raises(EdgeError, match="root filesystem on sda"):
        check_layout(formats.machine(machine_body()), replace(TARGET, root_disk=Serial("NV1")))


def test_a_rule_names_the_root_disk_among_what_maas_commissioned():
    """One that fits is laid out and proven to be the one; several, or none, are for the operator to decide."""
    found = formats.machine(machine_body())
    small = RootDisk(chosen_by="host", model=found.drives[0].model, max_bytes=found.drives[0].size_bytes)
    target = replace(TARGET, root_disk=Serial(""), root_rule=small)
    assert root_drive(found.drives, target).name == "sda"
    check_layout(found, target)
    assert root_contract(found, target) == DiskContract("BOSS1", found.drives[0].wwn, small)
    other = replace(TARGET, root_disk=Serial(""), root_rule=RootDisk(chosen_by="host", model="no such"))
    for act in (lambda: root_drive(found.drives, other), lambda: check_layout(found, other)):
        with pytest.raises(RootDiskUnclearError) as unclear:
            act()
        assert "root_disk" in unclear.value.remedy


def test_the_installer_decides():
    """MAAS's boot disk, where the SKU leaves it to MAAS; without one only a single drive is no question."""
    found = formats.machine(machine_body())
    target = replace(TARGET, root_disk=Serial(""), root_rule=RootDisk(chosen_by="installer"))
    assert root_drive(found.drives, target, found.drives[1].id) == found.drives[1]
    assert root_drive(found.drives[:1], target) == found.drives[0]
    with pytest.raises(RootDiskUnclearError):
        root_drive(found.drives, target)


def test_the_former_content_of_the_drives_is_unknown():
    """MAAS lists drives and reads nothing on them: no list may pass for one that was read."""
    assert status_of(formats.machine(machine_body())).drives is None


@pytest.mark.parametrize(
    ("static", "address", "answers"),
    [
        ((), "", ("192.0.2.7",)),
        (("10.20.0.17/16",), "", ("10.20.0.17",)),
        (("10.20.0.17/16", "10.20.0.18/16"), "10.20.0.18", ("10.20.0.18", "10.20.0.17")),
        (("10.20.0.17/16",), "10.9.9.9", ("10.20.0.17",)),
    ],
)
def test_an_installed_host_answers_where_the_site_puts_it(static, address, answers):
    """The site's netplan file takes the place of MAAS's; without one, the addresses are MAAS's."""
    ports = (HostPort("aa:bb:cc:00:00:01", addressing=Addressing(addresses=static)),) if static else ()
    target = replace(TARGET, network=HostNetwork(ports=ports), address=address)
    assert answering(formats.machine(machine_body()), target) == answers


def run_bootcmd(tmp_path: Path, clock: int) -> str:
    """What the user-data's clock command sets, on a host whose clock shows `clock` (seconds since the epoch)."""
    ((once, often, _, *command),) = yaml.safe_load(cloud_config(TARGET, NOW))["bootcmd"]
    assert (once, often) == ("cloud-init-per", "once")
    message = tmp_path / "messages"
    fakes = {
        "date": f'[ "$1" = +%s ] && echo {clock} || echo "date $*" >> {message}',
        "hwclock": f'echo "$0" >> {message}',
    }
    for name, script in fakes.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    subprocess.run(command, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, check=True)
    return message.read_text() if message.exists() else ""


@pytest.mark.parametrize(("hours_off", "is_set"), [(-9, True), (-24 * 365, True), (24 * 400, True), (0.3, False)])
def test_a_clock_that_is_off_is_set_at_the_first_boot_before_any_tls(tmp_path, hours_off, is_set):
    """Hours behind or years ahead: set to the time of the install, without any network; a good one is left alone."""
    made = int(NOW.timestamp())
    message = run_bootcmd(tmp_path, made + int(hours_off * 3600))
    assert (f"date -u -s @{made}" in message and "hwclock" in message) is is_set
    assert bool(message) is is_set


def test_an_event_without_a_time_is_not_understood():
    """Its place in time is what it is read for."""
    event = {"id": 1, "node": "abc123", "level": "INFO", "type": "Deploying", "description": ""}
    reported = {"events": [{**event, "created": "Sat, 21 Nov. 2026 02:08:09"}]}
    assert formats.events(reported)[0].at == datetime(2026, 11, 21, 2, 8, 9)  # noqa: DTZ001 — MAAS gives no zone
    with pytest.raises(ParseError):
        formats.events({"events": [{**event, "created": "yesterday"}]})


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000, '{"a": ' * 100_000])
def test_a_refusal_that_cannot_be_read_is_shown_as_it_is(text: str) -> None:
    """Deep JSON and numbers of thousands of digits are text like any other: no exception, bounded in length."""
    assert formats.error_fields("application/json", text) == {}
    assert formats.error_text("application/json", text).startswith(text[:100])
