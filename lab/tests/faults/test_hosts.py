"""Faults of hosts, traffic and cables: what each changes about the machine, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.emulators.fabric import trunks
from clusterctl_lab.faults import inject
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine, Shaping, System

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))
HEALTHY = build(1, LAYOUT, "secret")


def broken(fault: str, part: str = "") -> Machine:
    return inject({HEALTHY.name: HEALTHY}, fault, f"{HEALTHY.name}:{part}" if part else HEALTHY.name)


@pytest.mark.parametrize(
    ("fault", "part", "system"),
    [
        ("hung-host", "", System(frozen=True)),
        ("sshd-stopped", "", System(sshd_stopped=True)),
        ("exporter-down", "", System(exporter_stopped=True)),
        ("docker-down", "", System(docker_stopped=True)),
        ("fabric-manager-down", "", System(fabric_manager_stopped=True)),
        ("full-disk", "", System(disk_full="/tmp")),
        ("full-disk", "/var", System(disk_full="/var")),
        ("read-only-root", "", System(read_only=True)),
        ("clock-off", "", System(clock_offset_s=10800)),
        ("clock-off", "-2", System(clock_offset_s=-7200)),
        ("cpu-straggler", "", System(cpu_percent=10)),
        ("cpu-straggler", "25", System(cpu_percent=25)),
        ("network-lost", "", System(network_lost=True)),
        ("hung-process", "", System(hung_process=True)),
        ("lost-mount", "", System(mount_lost=True)),
        ("dead-name-server", "", System(names_lost=True)),
        ("other-release", "", System(other_release=True)),
        ("no-container-gpus", "", System(container_gpus_lost=True)),
        ("unhealthy-container", "", System(container_unhealthy=True)),
        ("no-peermem", "", System(peermem_lost=True)),
        ("iommu-translates", "", System(iommu_translates=True)),
    ],
)
def test_an_ill_system_is_the_only_change(fault: str, part: str, system: System) -> None:
    """The hardware is as it was delivered."""
    machine = broken(fault, part)
    assert machine.system == system
    assert replace(machine, system=System(), faults=()) == HEALTHY


def test_a_slow_nic_is_shaped_all_the_time_or_a_share_of_it() -> None:
    """Of the HCA named, and of no other."""
    slow = broken("slow-nic", "mlx5_3")
    assert [hca.shaping for hca in slow.hcas] == [None, None, None, Shaping(20), None, None, None, None]
    assert broken("intermittent-slow-nic", "mlx5_0=0.3").hcas[0].shaping == Shaping(20, 0.3)
    assert broken("intermittent-slow-nic").hcas[0].shaping == Shaping(20, 0.5)
    assert broken("intermittent-slow-nic", "mlx5_0=0.3/60").hcas[0].shaping == Shaping(20, 0.3, 60)


def test_cables_go_where_the_fault_puts_them() -> None:
    """Out; into a port of the next rail's leaf that no host and no trunk has; or their link trains lower."""
    assert broken("missing-cable", "mlx5_2").hcas[2].cable is None
    wrong = broken("wrong-rail-cable", "mlx5_7").hcas[7].cable
    assert wrong is not None
    assert wrong.switch == "leaf-p1-r1"
    fleet = [build(index, LAYOUT, "secret") for index in range(1, 33)]
    taken = {hca.cable for machine in fleet for hca in machine.hcas} | {end for pair in trunks(fleet) for end in pair}
    crossed = [inject({m.name: m}, "wrong-rail-cable", m.name).hcas[0].cable for m in fleet[:24]]
    assert not taken & set(crossed)
    assert len(set(crossed)) == len(crossed)
    assert [hca.rate_gbps for hca in broken("down-speed-link", "mlx5_1").hcas[:3]] == [400, 200, 400]


@pytest.mark.parametrize(
    ("fault", "part", "words"),
    [
        ("hung-host", "sshd", "takes no part"),
        ("full-disk", "/home", "has no file system /home"),
        ("clock-off", "soon", "no whole number of hours"),
        ("clock-off", "0", "cannot be 0 hours off"),
        ("clock-off", "100000", "cannot be 100000 hours off"),
        ("cpu-straggler", "0", "is no quota"),
        ("cpu-straggler", "many", "is no quota"),
        ("slow-nic", "mlx5_9", "has no mlx5_9"),
        ("intermittent-slow-nic", "mlx5_0=1", "no share of the time"),
        ("intermittent-slow-nic", "mlx5_0=often", "no share of the time"),
        ("intermittent-slow-nic", "mlx5_0=0.3/0", "'0' is no cycle in seconds"),
        ("intermittent-slow-nic", "mlx5_0=0.3/long", "'long' is no cycle in seconds"),
        ("intermittent-slow-nic", "mlx5_0=nan/60", "no share of the time"),
        ("missing-cable", "eth0", "has no eth0"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_way_out(fault: str, part: str, words: str) -> None:
    """The error names what was wrong, its remedy what is possible."""
    with pytest.raises(UsageError, match=words) as caught:
        broken(fault, part)
    assert caught.value.remedy


def test_a_cable_is_pulled_once() -> None:
    """The second time there is none left, and the injection is refused."""
    machine = broken("missing-cable", "mlx5_2")
    with pytest.raises(UsageError, match="mlx5_2 has no cable"):
        inject({machine.name: machine}, "missing-cable", f"{machine.name}:mlx5_2")
    one_rail = replace(HEALTHY, hcas=HEALTHY.hcas[:1])
    with pytest.raises(UsageError, match="one rail only"):
        inject({one_rail.name: one_rail}, "wrong-rail-cable", one_rail.name)
