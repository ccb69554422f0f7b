"""Roles on a machine with a kernel, disks and an OS of its own: the system's, a pool, Docker on it, a disk pulled, and an
array of the others.

One virtual machine is installed and every test goes on where the last one ended, as a site would: in file order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl_lab.image import host_release
from lab.tests.lab_kit import eventually
from tests.metal.image_kit import NAME as IMAGE
from tests.metal.install_kit import INSTALL_S, metal_site
from tests.metal.metal_kit import needs_metal
from tests.metal.roles_kit import RUN_S, TRIAL, Guest, with_packages

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(INSTALL_S + 8 * RUN_S)]
NODE = "node001"
HELD, PULLED = "NVME00011", "NVME00012"
DISKS = ("NVME00010", HELD, PULLED, "NVME00013")
DOCKER = {
    "docker_data_root": "/data/docker",
    "docker_data_root_mount": "/data",
    "docker_trial_image": IMAGE,
    "docker_trial_command": ["/bin/busybox", "echo", "it runs"],
}


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guest]:
    """Installed by clusterctl's own PXE, with an empty file system on one of its four data disks."""
    folder = tmp_path_factory.mktemp("roles")
    with metal_site("metalr", "10.181.0.0/16", folder, 1) as metal:
        run = metal.install()
        assert run.wait() == 0, f"{run.stdout}\n{run.stderr}\n{metal.consoles()}"
        with with_packages(metal, NODE, folder) as found:
            found.sudo("mkfs.ext4", "-q", "-F", f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{HELD}")
            yield found


def pool(guest: Guest, **more: object) -> dict[str, object]:
    """Ubuntu's kernel has the modules; Debian's are built beforehand: software emulation would take hours."""
    if host_release().distribution == "ubuntu":
        return more
    return {"zfs_pool_module_packages": [f"zfs-modules-{guest.sudo('uname', '-r')}"], **more}


SYSTEM: Mapping[str, Mapping[str, object]] = {
    "base": {},
    "time_sync": {"time_sync_servers": [], "time_sync_local_stratum": 8},
    "node_exporter": {},
}
"""The guest has no time server: it gives its own clock to others."""


@pytest.mark.parametrize("role", SYSTEM)
def test_a_role_of_the_system_is_done_once(guest: Guest, role: str) -> None:
    """Predicted without a failure, done, and nothing is left to do the second time."""
    foretold = guest.apply(role, SYSTEM[role], check=True)
    assert foretold.outcome.ok, foretold.outcome
    first = guest.apply(role, SYSTEM[role])
    assert first.outcome.ok, first.outcome
    assert first.changed
    assert set(foretold.changed) - set(first.changed) == set()
    second = guest.apply(role, SYSTEM[role])
    assert second.outcome.ok, second.outcome
    assert second.changed == ()


def test_the_system_is_as_the_roles_want_it(guest: Guest) -> None:
    """Asked of its kernel, its systemd and its daemons."""
    assert guest.sudo("cat", "/proc/sys/kernel/numa_balancing") == "0"
    assert guest.sudo("cat", "/proc/swaps").splitlines()[1:] == []
    assert "stratum" in guest.sudo("chronyc", "tracking").lower()
    assert guest.sudo("systemctl", "is-active", "chrony", "prometheus-node-exporter") == "active\nactive"


def test_a_disk_that_holds_data_is_refused(guest: Guest) -> None:
    """Refused with its serial number and what is on it, and nothing is changed on any disk."""
    refused = guest.apply("zfs_pool", pool(guest))
    assert not refused.outcome.ok
    assert refused.changed == ()
    assert HELD in refused.outcome.message
    assert "ext4" in refused.outcome.message
    assert "TYPE=ext4" in guest.sudo(
        "blkid", "--probe", "--output", "export", f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{HELD}"
    )


def test_the_pool_is_made_once(guest: Guest) -> None:
    """Predicted without a failure, made of all four disks by their names, and accepted the second time."""
    variables = pool(guest, zfs_pool_overwrite=[HELD])
    foretold = guest.apply("zfs_pool", variables, check=True)
    assert foretold.outcome.ok, foretold.outcome
    first = guest.apply("zfs_pool", variables)
    assert first.outcome.ok, first.outcome
    assert set(foretold.changed) - set(first.changed) == set()
    second = guest.apply("zfs_pool", variables)
    assert second.outcome.ok, second.outcome
    assert second.changed == ()
    status = guest.sudo("zpool", "status", "data")
    assert "raidz1-0" in status
    assert all(f"nvme-QEMU_NVMe_Ctrl_{serial} " in status for serial in DISKS)
    assert guest.sudo("zfs", "get", "-H", "-o", "value", "compression", "data") == "lz4"


def test_docker_lives_on_the_pool(guest: Guest) -> None:
    """Its data root is there, a container runs from an image that came by no registry, the second run changes nothing."""
    before = {key: value for key, value in DOCKER.items() if not key.startswith("docker_trial")}
    first = guest.apply("docker", before)
    assert first.outcome.ok, first.outcome
    guest.sudo("docker", "load", "--input", TRIAL)
    second = guest.apply("docker", DOCKER)
    assert second.outcome.ok, second.outcome
    assert second.changed == ()
    assert guest.sudo("docker", "run", "--rm", "--network=none", IMAGE, "/bin/busybox", "echo", "it runs") == "it runs"
    assert guest.sudo("findmnt", "--noheadings", "--output", "FSTYPE", "--target", "/data/docker") == "zfs"


def test_docker_does_not_start_without_its_disk(guest: Guest) -> None:
    """The pool exported, systemd refuses to start the daemon, and nothing is written to the root disk in its place."""
    guest.sudo("systemctl", "stop", "docker.socket", "docker.service")
    guest.sudo("zpool", "export", "data")
    started = guest.metal.ssh(NODE, "sudo systemctl start docker.service && echo started || echo refused")
    assert started == "refused"
    assert guest.metal.ssh(NODE, "ls -A /data 2>/dev/null | wc -l") == "0"
    guest.sudo("zpool", "import", "-d", "/dev/disk/by-id", "data")
    guest.sudo("systemctl", "start", "docker.service")


def test_the_check_finds_the_pool_healthy(guest: Guest) -> None:
    """The burn-in's own question, asked as it asks it."""
    (finding,) = guest.check("zpool")
    assert finding.verdict is Verdict.PASS, finding


def test_a_pulled_disk_is_reported_and_stops_no_job(guest: Guest) -> None:
    """The pool is DEGRADED and takes data, containers run, the roles go on and change nothing, the check names the disk."""
    guest.metal.lab("inject", "pulled-disk", f"{NODE}:{PULLED}")
    assert eventually(lambda: PULLED not in guest.sudo("lsblk", "--nodeps", "--noheadings", "--output", "SERIAL"), 300)
    guest.sudo("dd", "if=/dev/urandom", "of=/data/after", "bs=1M", "count=8", "conv=fsync", "status=none")
    assert eventually(lambda: guest.sudo("zpool", "list", "-H", "-o", "health", "data") == "DEGRADED", 300)
    assert guest.sudo("docker", "run", "--rm", "--network=none", IMAGE, "/bin/busybox", "echo", "it runs") == "it runs"
    findings = guest.check("zpool")
    assert [(one.verdict, PULLED in one.subject) for one in findings] == [(Verdict.FAIL, True)], findings
    again = guest.apply("zfs_pool", pool(guest))
    assert again.outcome.ok, again.outcome
    assert again.changed == ()
    docker = guest.apply("docker", DOCKER)
    assert docker.outcome.ok, docker.outcome
    assert docker.changed == ()
    print(guest.sudo("zpool", "status", "-p"))


def test_the_disks_that_are_left_make_an_array_instead(guest: Guest) -> None:
    """Not while the pool is on record; then predicted, made, mounted, and the second time nothing is changed."""
    refused = guest.apply("raid0_scratch", {})
    assert not refused.outcome.ok
    assert "zfs_pool" in refused.outcome.message
    guest.sudo("systemctl", "stop", "docker.socket", "docker.service")
    guest.sudo("zpool", "destroy", "data")
    guest.sudo("rm", "/etc/clusterctl/zfs_pool.json")
    left = [serial for serial in DISKS if serial != PULLED]
    variables = {"raid0_scratch_disks": left, "raid0_scratch_overwrite": left}
    foretold = guest.apply("raid0_scratch", variables, check=True)
    assert foretold.outcome.ok, foretold.outcome
    first = guest.apply("raid0_scratch", variables)
    assert first.outcome.ok, first.outcome
    assert set(foretold.changed) - set(first.changed) == set()
    second = guest.apply("raid0_scratch", variables)
    assert second.outcome.ok, second.outcome
    assert second.changed == ()
    assert guest.sudo("findmnt", "--noheadings", "--output", "FSTYPE", "--mountpoint", "/scratch") == "xfs"
    assert "raid0" in guest.sudo("cat", "/proc/mdstat")
