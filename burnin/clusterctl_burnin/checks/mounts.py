"""mounts: every file system of /etc/fstab is mounted, and for writing where it shall be.

One with `nofail` is missing without a word at boot, and jobs then fill the root file system. What is mounted on demand
(`noauto`, `x-systemd.automount`) is left alone; the root file system is `root_writable`'s, pools are `zpool`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.mounts import NO_TARGET, MountEntry, parse_mount_table
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

WANTED = Probe("fstab", ("cat", "/etc/fstab"), timeout=5.0)
MOUNTED = Probe("mounts", ("cat", "/proc/self/mounts"), timeout=5.0)
_NAME = "mounts"
_ON_DEMAND = frozenset({"noauto", "x-systemd.automount"})


def _judge(readings: Readings, _expected: Expected) -> Iterator[Finding]:
    if not readings.text(WANTED).strip():
        raise UnmeasuredError("/etc/fstab is empty", remedy="write the node's file systems, or a comment, into it")
    wanted = [entry for entry in parse_mount_table(readings.text(WANTED), where="/etc/fstab") if _asked_for(entry)]
    mounted = {entry.target: entry for entry in parse_mount_table(readings.text(MOUNTED), where="/proc/self/mounts")}
    if "/" not in mounted:
        raise UnmeasuredError(
            "the node's list of mounts has no root file system", remedy="read the list in the evidence"
        )
    bad = [finding for entry in wanted for finding in _bad(entry, mounted.get(entry.target))]
    yield from bad
    if not bad:
        yield passed(
            _NAME,
            "all of /etc/fstab is mounted",
            measured=Quantity(len(wanted), "file systems"),
            expected=exactly(len(wanted), "file systems"),
        )


def _asked_for(entry: MountEntry) -> bool:
    return entry.target not in {"/", *NO_TARGET} and entry.filesystem != "swap" and not _ON_DEMAND & entry.options


def _bad(wanted: MountEntry, found: MountEntry | None) -> Iterator[Finding]:
    how = f"{wanted.source} ({wanted.filesystem})"
    if found is None:
        cause = f"{how} of /etc/fstab is not mounted"
        remedy = (
            f"run mount {wanted.target} on the node and repair what it reports: a drive or file server that is "
            "not there, "
            "or a file system that needs fsck"
        )
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NOT_MOUNTED,
            subject=wanted.target,
            cause=cause,
            measured="not mounted",
            expected="mounted",
            remedy=remedy,
        )
    elif "ro" in found.options and "ro" not in wanted.options:
        cause = f"{found.source} ({found.filesystem}) is mounted read-only"
        remedy = (
            "the kernel turns a file system read-only when its disk fails: look for I/O errors in dmesg and in the "
            "drive's health; replace the drive if it has any, else unmount, fsck and mount it again"
        )
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.MOUNTED_READ_ONLY,
            subject=wanted.target,
            cause=cause,
            measured="ro",
            expected="rw",
            remedy=remedy,
        )


CHECK = Check(_NAME, (WANTED, MOUNTED), _judge, area=Area.STORAGE)
