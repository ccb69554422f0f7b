"""Faults of the running OS: services, drivers, file systems, network, clock, processor quota."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, no_such_part, system_fault
from clusterctl_lab.machine import Machine

HOURS = "3"
MAX_HOURS = 1000
CPU_PERCENT = "10"
FULL_PATHS = ("/tmp", "/var")  # noqa: S108 — file systems of the lab's hosts, to be filled


def _clock_off(machine: Machine, part: str) -> Machine:
    hours = part or HOURS
    remedy = f"write hours other than 0, from -{MAX_HOURS} to {MAX_HOURS}, like {machine.name}:-2"
    try:
        offset = int(hours) * 3600
    except ValueError:
        raise UsageError(f"{hours!r} is no whole number of hours", where=machine.name, remedy=remedy) from None
    if not 0 < abs(offset) <= MAX_HOURS * 3600:
        raise UsageError(f"a clock cannot be {hours} hours off", where=machine.name, remedy=remedy)
    return replace(machine, system=replace(machine.system, clock_offset_s=offset)).with_fault(f"clock-off:{hours}")


def _cpu_straggler(machine: Machine, part: str) -> Machine:
    percent = part or CPU_PERCENT
    if not percent.isdecimal() or not 1 <= int(percent) <= 100:
        remedy = f"write the percent of one core, from 1 to 100, like {machine.name}:10"
        raise UsageError(f"{percent!r} is no quota", where=machine.name, remedy=remedy)
    quota = replace(machine.system, cpu_percent=int(percent))
    return replace(machine, system=quota).with_fault(f"cpu-straggler:{percent}")


def _full_disk(machine: Machine, part: str) -> Machine:
    path = part or FULL_PATHS[0]
    if path not in FULL_PATHS:
        raise no_such_part(machine, f"file system {path}", FULL_PATHS)
    return replace(machine, system=replace(machine.system, disk_full=path)).with_fault(f"full-disk:{path}")


FAULTS = (
    Fault(
        name="clock-off",
        does="sets the clock of the host's processes ahead by some hours (default: 3)",
        shows="date on the host against the controller's",
        target="NODE or NODE:-2",
        apply=_clock_off,
    ),
    Fault(
        name="cpu-straggler",
        does="limits all processes of the host together to a few percent of one core (default: 10)",
        shows="work that needs a second of processor time takes ten; nothing else on the host explains it",
        target="NODE or NODE:10",
        apply=_cpu_straggler,
    ),
    Fault(
        name="full-disk",
        does="fills a file system of the host to its last byte (default: /tmp); it is a small file system of its own",
        shows="df: 0 bytes free; each write to it fails with ENOSPC",
        target="NODE or NODE:/var",
        apply=_full_disk,
    ),
    system_fault(
        "dead-name-server",
        does="the host's resolv.conf names an address at which nothing answers",
        shows="getent hosts takes seconds and finds nothing",
        change=lambda system: replace(system, names_lost=True),
    ),
    system_fault(
        "docker-down",
        does="stops docker.service",
        shows="docker info cannot connect to the daemon; systemctl prints inactive",
        change=lambda system: replace(system, docker_stopped=True),
    ),
    system_fault(
        "driver-lost",
        does="the GPUs' driver is installed and not loaded",
        shows="nvidia-smi: couldn't communicate with the NVIDIA driver",
        change=lambda system: replace(system, driver_lost=True),
    ),
    system_fault(
        "exporter-down",
        does="stops prometheus-node-exporter",
        shows="port 9100 refuses connections; systemctl prints inactive",
        change=lambda system: replace(system, exporter_stopped=True),
    ),
    system_fault(
        "fabric-manager-down",
        does="stops nvidia-fabricmanager.service",
        shows="systemctl prints inactive",
        change=lambda system: replace(system, fabric_manager_stopped=True),
    ),
    system_fault(
        "failed-unit",
        does="nvidia-persistenced.service ends with an error at each start",
        shows="systemctl list-units --failed",
        change=lambda system: replace(system, unit_failed=True),
    ),
    system_fault(
        "hanging-sum",
        does="the node stops in the middle of a long all-reduce over several nodes; it answers to everything else",
        shows="the load hang_hunt: Missing rank … it is silent; nothing in a short all-reduce",
        change=lambda system: replace(system, sums_stop=True),
    ),
    system_fault(
        "slow-storage",
        does="the host reads from the site's storage at a hundredth of the usual rate",
        shows="the load storage_read: a low rate; its link is up at full speed",
        change=lambda system: replace(system, storage_slow=True),
    ),
    system_fault(
        "hung-host",
        does="freezes every process of the host",
        shows="TCP connects to port 22, and no banner comes; the BMC reports that power is on",
        change=lambda system: replace(system, frozen=True),
    ),
    system_fault(
        "inodes-used",
        does="a file system of the host (/srv, a small one of its own) has nearly as many files as it can have",
        shows="df -i: 99 % of its inodes are used",
        change=lambda system: replace(system, inodes_used=True),
    ),
    system_fault(
        "ethernet-errors",
        does="the host's Ethernet port receives 20 packets a second with CRC errors",
        shows="/sys/class/net: rx_crc_errors grow",
        change=lambda system: replace(system, ethernet_errors=True),
    ),
    system_fault(
        "ethernet-errors-under-load",
        does="the host's Ethernet port receives 40 packets with CRC errors in each load of the GPUs",
        shows="/sys/class/net before and after the load: rx_crc_errors",
        change=lambda system: replace(system, load_ethernet_errors=True),
    ),
    system_fault(
        "cpu-busy",
        does="four processes of a user work on the idle host, each on a whole processor",
        shows="top: python3 of the user trainer, 99 % each; nothing else",
        change=lambda system: replace(system, cpu_busy=True),
    ),
    system_fault(
        "docker-open",
        does="Docker's socket has the mode 0666",
        shows="ls -l /run/docker.sock: srw-rw-rw-; everything else works",
        change=lambda system: replace(system, docker_open=True),
    ),
    system_fault(
        "exporter-blind",
        does="dcgm-exporter reports all of the host's GPUs but number 3",
        shows="the metrics of port 9400 lack its UUID; nvidia-smi lists it",
        change=lambda system: replace(system, exporter_blind=True),
    ),
    system_fault(
        "ofed-mixed",
        does="NVIDIA's OFED is installed, and the kernel runs its own mlx5_core with the distribution's libraries",
        shows="ofed_info -s: MLNX_OFED_LINUX-24.10-2.1.8.0; /sys/module/mlx5_core has no version",
        change=lambda system: replace(system, ofed_mixed=True),
    ),
    system_fault(
        "bluefield-dpu-mode",
        does="the machine's BlueField-3 is in DPU mode",
        shows="mlxconfig -e query: INTERNAL_CPU_OFFLOAD_ENGINE ENABLED(0)",
        change=lambda system: replace(system, bluefield_dpu=True),
    ),
    system_fault(
        "nccl-starts-fail",
        does="each third start of a collective over the node's own GPUs fails",
        shows="the load nccl_init: NCCL WARN Cuda failure; nothing in one all-reduce",
        change=lambda system: replace(system, starts_fail=True),
    ),
    system_fault(
        "hung-process",
        does="a process of the host stays in state D: it waits in vfork(2) for a child that never continues",
        shows="ps: state D, no processor time; signals but SIGKILL do nothing",
        change=lambda system: replace(system, hung_process=True),
    ),
    system_fault(
        "lost-mount",
        does="the host's /etc/fstab names a file system, with nofail, whose drive is absent",
        shows="findmnt lists nothing at /scratch",
        change=lambda system: replace(system, mount_lost=True),
    ),
    system_fault(
        "network-lost",
        does="takes the link of the management interface down",
        shows="connections to the host time out; the BMC reports that power is on",
        change=lambda system: replace(system, network_lost=True),
    ),
    system_fault(
        "slow-ethernet",
        does="the host's Ethernet port sends at most 20 Mbit/s; its link is up at full speed, without an error",
        shows="the load ethernet_pairs (iperf3) in both ways with each partner; nothing else",
        change=lambda system: replace(system, ethernet_slow=True),
    ),
    system_fault(
        "mtu-wrong",
        does="the host's Ethernet port has an MTU of 9000, in a network with 1500",
        shows="ip link; the site must define the hosts' network (network in site.yml), else no MTU is wrong",
        change=lambda system: replace(system, mtu_wrong=True),
    ),
    system_fault(
        "pool-degraded",
        does="the host has a ZFS pool of its data drives, which has given the last of them up for its errors",
        shows="zpool status: DEGRADED; FAULTED, too many errors",
        change=lambda system: replace(system, pool_degraded=True),
    ),
    system_fault(
        "no-container-gpus",
        does="Docker gives GPUs to no container",
        shows="docker run --gpus all: could not select device driver",
        change=lambda system: replace(system, container_gpus_lost=True),
    ),
    system_fault(
        "no-peermem",
        does="nvidia-peermem is not loaded, and the driver's kernel modules are not the open ones",
        shows="lsmod; /proc/driver/nvidia/version",
        change=lambda system: replace(system, peermem_lost=True),
    ),
    system_fault(
        "no-time-source",
        does="no packet comes back from the host's time server",
        shows="chronyc sources: reach 0; chronyc tracking: Not synchronised",
        change=lambda system: replace(system, time_lost=True),
    ),
    system_fault(
        "other-release",
        does="the host's /etc/os-release names Debian 10",
        shows="/etc/os-release",
        change=lambda system: replace(system, other_release=True),
    ),
    system_fault(
        "read-only-root",
        does="mounts the root file system read-only, as ext4 does after an error of its disk",
        shows="findmnt shows ro; each write to it fails with EROFS",
        change=lambda system: replace(system, read_only=True),
    ),
    system_fault(
        "sshd-stopped",
        does="stops the SSH server with all its sessions",
        shows="port 22 refuses connections; the BMC reports that power is on",
        change=lambda system: replace(system, sshd_stopped=True),
    ),
    system_fault(
        "swap-on",
        does="a partition is used as swap",
        shows="swapon --show",
        change=lambda system: replace(system, swap_on=True),
    ),
    system_fault(
        "unhealthy-container",
        does="the container dcgm-exporter is unhealthy",
        shows="docker ps: Up 3 hours (unhealthy)",
        change=lambda system: replace(system, container_unhealthy=True),
    ),
    system_fault(
        "wrong-sums",
        does="the node's contribution to an all-reduce is wrong; every node of its group sees a wrong sum",
        shows="all_reduce_perf: #wrong, Out of bounds values",
        change=lambda system: replace(system, sums_wrong=True),
    ),
)
