"""The parts of the lab's hosts that need no root: names, wires, mounts, accounts, user-data, disks."""

from __future__ import annotations

import os
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl_lab.healthy import build
from clusterctl_lab.hosts import rail_interface, rail_network, wiring
from clusterctl_lab.hosts.accounts import AccountFiles
from clusterctl_lab.hosts.cgroups import mount_point
from clusterctl_lab.hosts.cloud_config import PlacedFile, parse
from clusterctl_lab.hosts.disk import Disk, Writer
from clusterctl_lab.hosts.mounts import HostPaths, base_table, inner_table
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.layout import Layout

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))
MACHINE = build(1, LAYOUT, "secret")

PASSWD = "root:x:0:0:root:/root:/bin/bash\nsomeone:x:1000:1000::/home/someone:/bin/sh\n"
FILES = AccountFiles(passwd=PASSWD, shadow="root:*:19000:0:99999:7:::\n", group="root:x:0:\nsomeone:x:1000:\n")


@pytest.mark.parametrize("name", ["", "Lab", "lab-1", "8lab", "toolongname", "../lab", "lab\n"])
def test_bad_lab_names_are_refused(name: str) -> None:
    """A lab's name becomes part of interface names and paths: anything else than letters and digits is refused."""
    with pytest.raises(UsageError, match="cannot name a lab"):
        LabNames(name)


def test_uplink_fits_an_interface_name() -> None:
    """The kernel takes at most 15 characters."""
    assert len(LabNames("abcdefgh").uplink) <= 15


def test_rails_have_their_own_networks() -> None:
    """Rail networks follow the lab's own, and a host has the same offset in each."""
    assert [str(rail_network(LAYOUT, rail)) for rail in (0, 7)] == ["10.89.0.0/16", "10.96.0.0/16"]
    assert str(rail_interface(LAYOUT, MACHINE, 2)) == "10.91.128.1/16"


def test_wires_follow_the_machine() -> None:
    """Each adapter port is a wire on its rail; one without a cable is there, and down; one taken out is not."""
    unplugged = replace(MACHINE.hcas[0], cable=None)
    machine = replace(MACHINE, hcas=(unplugged, *MACHINE.hcas[2:]))
    lines = wiring.host_in_switch(machine, LAYOUT).splitlines()
    assert len(lines) == 1 + 7
    assert "name eth0 address 02:1a:ee:00:00:01" in lines[0]
    assert "master rail0" in lines[1]
    assert " down " in lines[1]
    assert all(" up " in line for line in lines[2:])
    assert "ib1" not in wiring.host(machine, LAYOUT)
    assert "address add 10.91.128.1/16 brd + dev ib2" in wiring.host(machine, LAYOUT)


def test_recabling_names_only_the_wires_that_exist() -> None:
    """A host that booted with eight rails has one pulled when its adapter or cable goes, and none added."""
    now = replace(MACHINE, hcas=(replace(MACHINE.hcas[0], cable=None), *MACHINE.hcas[2:]))
    assert wiring.cables(MACHINE, now).splitlines()[:3] == [
        "link set h1r0 down",
        "link set h1r1 down",
        "link set h1r2 up",
    ]


def test_pods_have_networks_of_their_own() -> None:
    """Machines fill the pods in order; each has its pod's bridge, network and gateway, and no address is in two pods."""
    layout = Layout(IPv4Network("10.88.0.0/16"), 2, 3)
    machines = [build(number, layout, "secret") for number in range(1, 6)]
    assert [machine.bmc.address for machine in machines] == [
        "10.88.1.1",
        "10.88.1.2",
        "10.88.1.3",
        "10.88.2.1",
        "10.88.2.2",
    ]
    assert [machine.address for machine in machines[2:4]] == ["10.88.129.3", "10.88.130.1"]
    assert [pod.number for one in machines if (pod := layout.pod_at(one.address))] == [1, 1, 1, 2, 2]
    assert layout.pod_at(layout.maas) is None
    assert " master pod2 " in wiring.host_in_switch(machines[3], layout).splitlines()[0]
    inside = wiring.host(machines[3], layout)
    assert "address add 10.88.130.1/24 " in inside
    assert "default via 10.88.130.254" in inside
    controller = wiring.controller(layout.pods[1], "lab")
    assert [word for word in controller.split() if word.startswith("10.")] == [
        "10.88.2.253/24",
        "10.88.130.253/24",
        "10.88.0.18/24",
    ]


HYBRID = """cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0
"""
UNIFIED = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate 0 0\n"


@pytest.mark.parametrize(("mounts", "point"), [(HYBRID, "/sys/fs/cgroup/unified"), (UNIFIED, "/sys/fs/cgroup")])
def test_cgroup2_is_found_on_both_hierarchies(mounts: str, point: str) -> None:
    """Old and new machines mount cgroup2 at different places."""
    assert mount_point(mounts) == Path(point)


@pytest.mark.parametrize("mounts", [HYBRID.splitlines()[0], UNIFIED.replace("rw,", "ro,")])
def test_no_writable_cgroup2_is_refused_with_words(mounts: str) -> None:
    """Without it (an old kernel, a plain container) hosts could not be killed as a whole: the lab does not start."""
    with pytest.raises(EnvironmentBrokenError, match="cgroup2"):
        mount_point(mounts)


def paths(lower: str = "/cache/rootfs") -> HostPaths:
    return HostPaths(Path("/run/lab/node001"), Path("/state/node001"), (Path(lower),), Path("/run/lab/sysctls"))


def test_machine_settings_are_masked() -> None:
    """/proc/sys is a copy to write to; only what belongs to the host's own namespaces is real."""
    table = inner_table(paths(), lambda _: True)
    real = [line.split()[0] for line in table.splitlines() if line.startswith("/proc/sys/")]
    assert real == [
        "/proc/sys/net",
        "/proc/sys/kernel/hostname",
        "/proc/sys/kernel/domainname",
        "/proc/sys/kernel/random/uuid",
    ]
    assert "/proc/sysrq-trigger /run/lab/node001/root/proc/sysrq-trigger none bind,ro 0 0" in table
    assert "/dev/null /run/lab/node001/root/proc/kcore none bind 0 0" in table


def test_a_host_can_read_its_quota_where_the_cpu_controller_has_a_hierarchy_of_its_own() -> None:
    """On the unified hierarchy the quota is in the host's own cgroup, which it mounts anyway."""
    table = inner_table(paths(), lambda _: True, Path("/sys/fs/cgroup/cpu"))
    assert "/sys/fs/cgroup/cpu /run/lab/node001/root/run/cgroup/cpu none bind,ro,X-mount.mkdir 0 0" in table
    assert "run/cgroup" not in inner_table(paths(), lambda _: True)


def test_overlay_option_characters_are_refused() -> None:
    """A comma or colon in a path would become another overlay option."""
    with pytest.raises(UsageError, match="comma, colon"):
        base_table(paths("/cache/root:fs"))


def test_new_account_has_no_password() -> None:
    """A user of the user-data gets a free id, its own home and group, and a password that cannot be typed."""
    files, account = FILES.with_account("ops", "/bin/bash")
    assert (account.uid, account.home) == (1001, "/home/ops")
    assert files.shadow.endswith("ops:*:19000:0:99999:7:::\n")
    assert files.find("ops") == account
    assert files.group_id("ops") == 1001


def test_known_account_stays() -> None:
    """The image has root already: it is not added twice."""
    files, account = FILES.with_account("root", "/bin/bash")
    assert files is FILES
    assert account.home == "/root"


@pytest.mark.parametrize("name", ["a:b", "x\nroot2:x:0:0", "Ops", ""])
def test_account_names_cannot_forge_lines(name: str) -> None:
    """A name that would break passwd's form is refused."""
    with pytest.raises(UsageError):
        FILES.with_account(name, "/bin/bash")


USER_DATA = b"""#cloud-config
hostname: node001
users:
  - name: ops
    sudo: "ALL=(ALL) NOPASSWD:ALL"
    ssh_authorized_keys: ["ssh-ed25519 AAAA ops"]
ssh_keys:
  ed25519_private: |
    PRIVATE
  ed25519_public: ssh-ed25519 BBBB
ssh_pwauth: false
write_files:
  - {path: /etc/motd, content: aGVsbG8=, encoding: b64, permissions: '0600', owner: 'ops:ops'}
packages: [vim]
"""


def test_user_data_is_understood() -> None:
    """What the install step sends is honoured, and what is not honoured is named."""
    config = parse(USER_DATA)
    assert config.hostname == "node001"
    assert (config.users[0].name, config.users[0].sudo) == ("ops", True)
    assert config.host_key_private == "PRIVATE\n"
    assert config.files == (PlacedFile("/etc/motd", b"hello", 0o600, "ops:ops"),)
    assert config.ignored == ("packages",)
    assert "PRIVATE" not in repr(config)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (b"#!/bin/sh\n", "first line"),
        (b"#cloud-config\n- a\n", "document"),
        (b"#cloud-config\na: [\n", "line 3"),
        (b"#cloud-config\nusers: [{sudo: x}]\n", "users"),
        (b"#cloud-config\nssh_keys: [SECRET]\n", "ssh_keys"),
        (b"#cloud-config\nwrite_files: [{path: etc/x}]\n", "write_files"),
        (b"#cloud-config\nwrite_files: [{path: /x, permissions: rw}]\n", "permissions"),
    ],
)
def test_wrong_user_data_is_named_not_quoted(text: bytes, key: str) -> None:
    """The error names the key, and never quotes a value: user-data holds private keys."""
    with pytest.raises(UsageError, match=key) as caught:
        parse(text)
    assert "SECRET" not in str(caught.value)


def test_disk_counts_as_installed_only_when_recorded(tmp_path: Path) -> None:
    """A disk whose writing was interrupted holds no OS; formatting takes it away again."""
    disk = Disk(tmp_path / "node001")
    assert disk.installed_on() == ""
    disk.format()
    assert disk.installed_on() == ""
    disk.record("LAB0001", "BOSS0001")
    assert Disk(tmp_path / "node001").installed_on() == "BOSS0001"
    disk.format()
    assert disk.installed_on() == ""
    assert list(disk.upper.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")
def test_writer_follows_the_image(tmp_path: Path) -> None:
    """Links and modes of the image hold for what is written above it: /lib is /usr/lib, /root stays private."""
    image, upper = tmp_path / "image", tmp_path / "upper"
    (image / "usr/lib").mkdir(parents=True)
    (image / "lib").symlink_to("usr/lib")
    (image / "root").mkdir(mode=0o700)
    upper.mkdir()
    writer = Writer(upper, image)
    writer.write("/lib/tool/data", b"x", 0o640)
    writer.write("/root/.ssh/authorized_keys", b"key", 0o600)
    assert (upper / "usr/lib/tool/data").stat().st_mode & 0o777 == 0o640
    assert not (upper / "lib").exists()
    assert (upper / "root").stat().st_mode & 0o777 == 0o700


def test_writer_stays_inside(tmp_path: Path) -> None:
    """A path with `..` is refused."""
    with pytest.raises(UsageError):
        Writer(tmp_path, tmp_path).write("/etc/../../escape", b"")
