"""Plans for ill hosts: what is done, undone and left alone, without a host."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import islice, pairwise
from pathlib import Path

import pytest

from clusterctl_lab.hosts.fault_actions import Freeze, Plan, Quota, Script, Wire, boot_files, plan
from clusterctl_lab.hosts.quota import CpuQuota, legacy_mount
from clusterctl_lab.hosts.shaping import no_rules, rules, spells
from clusterctl_lab.machine import Shaping, System

WELL = System()
ILLS = (
    System(frozen=True),
    System(sshd_stopped=True),
    System(exporter_stopped=True),
    System(docker_stopped=True),
    System(fabric_manager_stopped=True),
    System(disk_full="/var"),
    System(read_only=True),
    System(clock_offset_s=-7200),
    System(cpu_percent=10),
    System(network_lost=True),
    System(hung_process=True),
    System(mount_lost=True),
    System(names_lost=True),
    System(other_release=True),
    System(unit_failed=True),
    System(inodes_used=True),
    System(ethernet_slow=True),
    System(mtu_wrong=True),
    System(pool_degraded=True),
)
WORST = System(True, True, True, True, True, "/var", True, 3600, 10, None, True)


def test_every_ill_of_the_model_has_a_plan() -> None:
    """A field that is added to `System` must be acted upon, or be a tool's to show."""
    shown = {
        *("fixed_mhz", "container_gpus_lost", "container_unhealthy", "peermem_lost", "iommu_translates", "weak_power"),
        *("driver_lost", "swap_on", "cpu_disabled", "is_another", "sums_wrong", "sums_stop", "nvswitch_slow"),
        *(
            "time_lost",
            "starts_fail",
            "ethernet_errors",
            "load_ethernet_errors",
            "cpu_busy",
            "docker_open",
            "exporter_blind",
            "ofed_mixed",
            "bluefield_dpu",
        ),
        "storage_slow",
    }
    changed = {
        name for ill in ILLS for name in (f.name for f in fields(ill)) if getattr(ill, name) != getattr(WELL, name)
    }
    assert changed == {field.name for field in fields(System)} - shown


@pytest.mark.parametrize("ill", ILLS, ids=str)
def test_what_is_imposed_is_lifted_again(ill: System) -> None:
    """One action makes it so, one undoes it; a host that is and stays well is left alone."""
    (imposed,) = plan(WELL, ill).impose
    (lifted,) = plan(ill, WELL).lift
    assert type(imposed) is type(lifted)
    assert plan(WELL, ill).lift == plan(ill, WELL).impose == ()
    assert plan(WELL, WELL) == Plan()


def test_hindrances_go_first_and_come_last() -> None:
    """A host is thawed, unthrottled and writable while something else changes, and as before afterwards."""
    todo = plan(WORST, replace(WORST, docker_stopped=False))
    freeze, quota, remount, start = todo.lift
    assert (freeze, quota) == (Freeze(on=False), Quota(None))
    assert isinstance(remount, Script)
    assert remount.argument == "rw"
    assert isinstance(start, Script)
    assert start.argument == "docker.service"
    assert todo.impose[-2:] == (Quota(10), Freeze(on=True))
    assert len(todo.impose) == 3


def test_a_read_only_root_takes_new_files_nonetheless() -> None:
    """Where only files change it is opened and closed again; what else is ill is not touched."""
    todo = plan(WORST, WORST)
    assert [action.argument for action in todo.lift + todo.impose if isinstance(action, Script)] == ["rw", "ro"]
    assert len(todo.lift + todo.impose) == 2


def test_a_cut_host_is_cut_and_repaired_by_its_wire() -> None:
    """The management cable alone."""
    assert plan(WELL, System(network_lost=True)).impose == (Wire(up=False),)
    assert plan(System(network_lost=True), WELL).lift == (Wire(up=True),)


def test_stopped_services_never_start_at_boot() -> None:
    """Their units are masked before init reads them: an empty file."""
    files = boot_files(System(sshd_stopped=True, docker_stopped=True))
    assert set(files) == {"/run/systemd/system/ssh.service", "/run/systemd/system/docker.service"}
    assert {content for content, _ in files.values()} == {b""}
    assert boot_files(WELL) == {}


def test_spells_are_repeatable_and_keep_their_share() -> None:
    """The same seed gives the same weather; over many spells a port is bad for about its share of the time."""
    some = Shaping(20, 0.3)
    assert list(islice(spells(some, "a"), 9)) == list(islice(spells(some, "a"), 9))
    assert list(islice(spells(some, "a"), 9)) != list(islice(spells(some, "b"), 9))
    for share in (0.3, 0.5, 0.9):
        many = list(islice(spells(Shaping(20, share), "seed"), 2000))
        bad = sum(seconds for is_bad, seconds in many if is_bad) / sum(seconds for _, seconds in many)
        assert bad == pytest.approx(share, abs=0.03)
        assert all(one is not other for (one, _), (other, _) in pairwise(many))


def test_a_fault_shows_itself_first() -> None:
    """What is injected begins with a bad spell, and each takes as long as was asked for, give or take a half."""
    for seed in "abcdefgh":
        (bad, first), (worse, second) = islice(spells(Shaping(20, 0.9, cycle_s=3600), seed), 2)
        assert (bad, worse) == (True, False)
        assert 1620 <= first <= 4860
        assert 180 <= second <= 540


def test_shaping_is_configured_with_tc() -> None:
    """Both ends of a wire, and the way back."""
    assert rules(["ib2", "h1r2"], Shaping(20)).splitlines() == [
        "qdisc replace dev ib2 root tbf rate 20mbit burst 64kb latency 100ms",
        "qdisc replace dev h1r2 root tbf rate 20mbit burst 64kb latency 100ms",
    ]
    assert no_rules(["ib2"]) == "qdisc delete dev ib2 root\n"


HYBRID = "cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"


def test_the_cpu_hierarchy_is_found_where_it_is_another() -> None:
    """Hybrid machines have one of its own, `cpu` or `cpu,cpuacct`; cpuset and cpuacct alone are not it."""
    assert legacy_mount(HYBRID) == Path("/sys/fs/cgroup/cpu")
    assert legacy_mount("cgroup /c cgroup rw,cpu,cpuacct 0 0\n") == Path("/c")
    assert legacy_mount("cgroup /c cgroup rw,cpuset 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n") is None


def test_a_quota_on_the_unified_hierarchy_is_a_setting_of_the_host(tmp_path: Path) -> None:
    """The controller is handed down to the lab's cgroups, and the host's gets its limit, or none."""
    lab = tmp_path / "clusterctl-lab/lab"
    (lab / "node001").mkdir(parents=True)
    quota = CpuQuota(lab, None)
    quota.limit("node001", 10)
    assert (lab / "node001/cpu.max").read_text() == "10000 100000"
    assert (lab / "cgroup.subtree_control").read_text() == "+cpu"
    quota.limit("node001", None)
    assert (lab / "node001/cpu.max").read_text() == "max 100000"


def test_a_quota_on_a_hierarchy_of_its_own_moves_every_process(tmp_path: Path) -> None:
    """Also those in cgroups that the host made for itself; a host without a limit leaves no trace."""
    lab, legacy = tmp_path / "unified/lab", tmp_path / "cpu/clusterctl-lab/lab"
    (lab / "node001/init.scope").mkdir(parents=True)
    (lab / "node001/cgroup.procs").write_text("")
    (lab / "node001/init.scope/cgroup.procs").write_text("17\n")
    (legacy / "node001").mkdir(parents=True)
    (legacy / "node001/cgroup.procs").write_text("")
    quota = CpuQuota(lab, legacy)
    quota.limit("node001", 25)
    assert (legacy / "node001/cgroup.procs").read_text() == "17"
    assert (legacy / "node001/cpu.cfs_quota_us").read_text() == "25000"
    quota.limit("node002", None)
    quota.forget("node002")
    assert not (legacy / "node002").exists()
