"""Plan what gives a running host the faults of its machine. Pure: plans, does nothing.

Everything is real: services stop, file systems fill, processes freeze. Nothing of it outlives the host's run but the
machine's own description, from which it is done again at the next boot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clusterctl_lab.emulators.host_tools.host.zpool import MOUNTPOINT, POOL
from clusterctl_lab.machine import System

RUN = "/run/clusterctl-lab"
SSH, EXPORTER, DOCKER = "ssh.service", "prometheus-node-exporter.service", "docker.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"


@dataclass(frozen=True, slots=True)
class Freeze:
    """Stop every process of the host, or let them go on."""

    on: bool


@dataclass(frozen=True, slots=True)
class Quota:
    """Percent of one core for all its processes together; None lifts it."""

    percent: int | None


@dataclass(frozen=True, slots=True)
class Wire:
    """Give its management cable a link, or take it."""

    up: bool


@dataclass(frozen=True, slots=True)
class Script:
    """Run a shell script as root inside the host, with one argument; what it does must be done afterwards."""

    text: str
    argument: str = ""


Action = Freeze | Quota | Wire | Script


@dataclass(frozen=True, slots=True)
class Plan:
    """`lift`, then lay the machine's new files, then `impose`: each in order."""

    lift: tuple[Action, ...] = ()
    impose: tuple[Action, ...] = ()


def plan(before: System, after: System) -> Plan:
    """From one state to another. What hinders changes (a frozen host, a quota, a read-only root) is lifted meanwhile;
    where nothing else changes, only the read-only root is in the way of new files.
    """
    if before == after:
        hindered = replace(System(), read_only=before.read_only)
        return Plan(tuple(_lift(hindered, System())), tuple(_impose(System(), hindered)))
    return Plan(tuple(_lift(before, after)), tuple(_impose(before, after)))


def boot_files(system: System) -> dict[str, tuple[bytes, int]]:
    """Files (path → content and mode) that must lie in the host before its init starts: empty units are masked."""
    stopped = (unit for unit, is_stopped in _services(system).items() if is_stopped)
    return {f"{_UNITS}/{unit}": (b"", 0o644) for unit in stopped}


def _lift(before: System, after: System) -> Iterator[Action]:
    yield from _unhindered(before)
    if before.network_lost and not after.network_lost:
        yield Wire(up=True)
    for unit in _stopped_only_in(before, after):
        yield Script(_START, unit)
    if before.disk_full and before.disk_full != after.disk_full:
        yield Script(_EMPTY, before.disk_full)
    if before.clock_offset_s and not after.clock_offset_s:
        yield Script(_RIGHT_CLOCK)
    for ill in sorted(_has(before) - _has(after)):
        yield Script(_ILLS[ill][1])


def _impose(before: System, after: System) -> Iterator[Action]:
    if after.clock_offset_s and after.clock_offset_s != before.clock_offset_s:
        yield Script(_WRONG_CLOCK, f"{after.clock_offset_s:+d}")
    if after.disk_full and after.disk_full != before.disk_full:
        yield Script(_FILL, after.disk_full)
    for unit in _stopped_only_in(after, before):
        yield Script(_STOP_SSH if unit == SSH else _STOP, unit)
    for ill in sorted(_has(after) - _has(before)):
        yield Script(_ILLS[ill][0])
    if after.network_lost and not before.network_lost:
        yield Wire(up=False)
    yield from _hindered(after)


def _unhindered(system: System) -> Iterator[Action]:
    """Yield what lifts the faults that hinder changes; `_hindered` is the reverse, in reverse order."""
    if system.frozen:
        yield Freeze(on=False)
    if system.cpu_percent is not None:
        yield Quota(None)
    if system.read_only:
        yield Script(_REMOUNT, "rw")


def _hindered(system: System) -> Iterator[Action]:
    if system.read_only:
        yield Script(_REMOUNT, "ro")
    if system.cpu_percent is not None:
        yield Quota(system.cpu_percent)
    if system.frozen:
        yield Freeze(on=True)


def _stopped_only_in(one: System, other: System) -> Iterator[str]:
    """Yield the services that are stopped in `one` and run in `other`."""
    runs = {unit for unit, stopped in _services(other).items() if not stopped}
    return (unit for unit, stopped in _services(one).items() if stopped and unit in runs)


def _has(system: System) -> frozenset[str]:
    """Those of `_ILLS` that it has."""
    return frozenset(name for name in _ILLS if getattr(system, name))


def _services(system: System) -> dict[str, bool]:
    """Which of the services that faults may stop are stopped."""
    return {
        SSH: system.sshd_stopped,
        EXPORTER: system.exporter_stopped,
        DOCKER: system.docker_stopped,
        FABRIC_MANAGER: system.fabric_manager_stopped,
    }


_UNITS = "/run/systemd/system"
"""Units here outrank those of packages; an empty one is masked (systemd.unit(5))."""

SETTLED = Script("""
until state=$(systemctl is-system-running --wait 2>/dev/null) || [ "$state" = degraded ]; do sleep 0.1; done
""")
"""Wait until the boot is over."""

_STOP = f"""
if systemctl cat "$1" >/dev/null 2>&1; then systemctl stop "$1"; fi
mkdir -p {_UNITS}
: >"{_UNITS}/$1"
systemctl daemon-reload
"""

_STOP_SSH = f"""{_STOP}
pkill -KILL -x sshd || [ $? = 1 ]
"""
"""Sessions are no part of the service (KillMode=process): they end too. 1: there was none."""

_START = f"""
rm -f "{_UNITS}/$1"
systemctl daemon-reload
if systemctl is-enabled --quiet "$1"; then systemctl start "$1"; fi
"""

_REMOUNT = 'mount -o "remount,$1" /'

_FILL = f"""
small={RUN}/small
mkdir -p "$small"
size=$(( $(du -sk "$1" | cut -f1) * 3 / 2 + 4096 ))
mount -t tmpfs -o "size=${{size}}k,mode=$(stat -c %a "$1")" tmpfs "$small"
cp -a "$1/." "$small/"
mount --bind "$small" "$1"
umount "$small"
fallocate -l "$(df --output=avail -B1 "$1" | tail -1)" "$1/no-space-left"
"""
"""A small file system of its own over the folder, with its files, and then full: the controller's disk is not."""

_EMPTY = 'umount -l "$1"'

_WRONG_CLOCK = f"""
mkdir -p {RUN}
library=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1)
echo "$1" >{RUN}/faketimerc
echo "$library" >{RUN}/ld.so.preload.new
mv {RUN}/ld.so.preload.new {RUN}/ld.so.preload
systemctl try-restart {SSH}
"""
"""Every process that starts from now on sees another time of day; the machine's clock is not touched. sshd restarts,
because a child that loads libfaketime only in its sandbox is killed (measured).
"""

_RIGHT_CLOCK = f"""
rm -f {RUN}/ld.so.preload {RUN}/faketimerc
systemctl try-restart {SSH}
"""

_STUCK = "clusterctl-lab-stuck.service"

_STICK = f"""
systemd-run --quiet --collect --unit={_STUCK} -p KillSignal=SIGKILL -p SuccessExitStatus=SIGKILL -- \\
    python3 -I -c 'import ctypes, time; ctypes.CDLL(None).vfork() or time.sleep(1e9)'
"""
"""Who calls vfork(2) sleeps uninterruptibly until its child has gone its own way, which this one never does."""

_UNSTICK = f"systemctl stop {_STUCK}"

_LOST = "LABEL=clusterctl-lab-lost"

_LOSE_MOUNT = f"""
line='{_LOST} /scratch ext4 nofail,x-systemd.device-timeout=1s 0 2'
grep -qsF "$line" /etc/fstab || echo "$line" >>/etc/fstab
"""

_FIND_MOUNT = f"sed -i '/^{_LOST} /d' /etc/fstab"

_UNUSED_ADDRESS = "192.0.2.53"
"""An address without a host (RFC 5737)."""

_LOSE_NAMES = f"""
[ -e /etc/resolv.conf.was ] || cp -L /etc/resolv.conf /etc/resolv.conf.was
echo "nameserver {_UNUSED_ADDRESS}" >/etc/resolv.conf
"""

_FIND_NAMES = """
cat /etc/resolv.conf.was >/etc/resolv.conf
rm /etc/resolv.conf.was
"""

_OTHER_RELEASE = f"""
mkdir -p {RUN}
sed 's/^VERSION_CODENAME=.*/VERSION_CODENAME=buster/; s/^PRETTY_NAME=.*/PRETTY_NAME="Debian 10 (buster)"/' \\
    /usr/lib/os-release >{RUN}/os-release
mount --bind {RUN}/os-release /usr/lib/os-release
"""

_OWN_RELEASE = "umount /usr/lib/os-release"

_BROKEN = "nvidia-persistenced.service"
_BREAKS = f"{_UNITS}/{_BROKEN}.d/zz-breaks.conf"

_BREAK_UNIT = f"""
mkdir -p "$(dirname {_BREAKS})"
printf '[Service]\\nExecStart=\\nExecStart=/bin/false\\nRestart=no\\n' >{_BREAKS}
systemctl daemon-reload
systemctl restart {_BROKEN} || systemctl is-failed --quiet {_BROKEN}
"""

_REPAIR_UNIT = f"""
rm -f {_BREAKS}
systemctl daemon-reload
systemctl reset-failed {_BROKEN} || true
if systemctl is-enabled --quiet {_BROKEN}; then systemctl start {_BROKEN}; fi
"""

_FEW_INODES = "/srv"

_USE_INODES = f"""
mountpoint --quiet {_FEW_INODES} || mount -t tmpfs -o size=1m,nr_inodes=100 clusterctl-lab {_FEW_INODES}
cd {_FEW_INODES} && seq 98 | xargs touch
"""

_FREE_INODES = f"umount {_FEW_INODES}"

_CHANGE_MTU = "ip link set eth0 mtu 9000"
"""Larger than the switch's: TCP keeps to the smaller one of two hosts, so that only the setting shows it."""

_OWN_MTU = "ip link set eth0 mtu 1500"

_SLOW_ETHERNET = "tc qdisc replace dev eth0 root tbf rate 20mbit burst 64kb latency 100ms"
_FULL_ETHERNET = "tc qdisc delete dev eth0 root"

_GIVE_POOL = f"""
mkdir -p /etc/clusterctl {MOUNTPOINT}
echo '{{"mountpoint": "{MOUNTPOINT}", "pool": "{POOL}"}}' >/etc/clusterctl/zfs_pool.json
"""
"""The record of the role zfs_pool. `zpool` and `findmnt` are stand-ins: a namespace has the kernel of the machine."""

_TAKE_POOL = f"""
rm -f /etc/clusterctl/zfs_pool.json
rm -rf {MOUNTPOINT}
"""

_ILLS = {
    "ethernet_slow": (_SLOW_ETHERNET, _FULL_ETHERNET),
    "mtu_wrong": (_CHANGE_MTU, _OWN_MTU),
    "pool_degraded": (_GIVE_POOL, _TAKE_POOL),
    "inodes_used": (_USE_INODES, _FREE_INODES),
    "mount_lost": (_LOSE_MOUNT, _FIND_MOUNT),
    "names_lost": (_LOSE_NAMES, _FIND_NAMES),
    "other_release": (_OTHER_RELEASE, _OWN_RELEASE),
    "hung_process": (_STICK, _UNSTICK),
    "unit_failed": (_BREAK_UNIT, _REPAIR_UNIT),
}
"""Fields of `System` that are one script to impose and one to lift."""
