"""zpool: the pool that was configured is whole, mounted, takes data in time, and holds Docker's.

Hosts are held to what the role zfs_pool has written of them; where it was never applied, there is nothing to hold.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.mounts import Mount, parse_findmnt
from clusterctl.formats.host.zpool import (
    RECORD,
    PoolDevice,
    PoolRecord,
    PoolStatus,
    parse_pool_record,
    parse_zpool_status,
)
from clusterctl_burnin.check import Area, Check, Expected, inconclusive
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status, UnmeasuredError

ZPOOL_WRITE_MAX = LimitKey("zpool_write_max", "s")

PROMISE = Probe("zpool_record", ("sh", "-c", f"if [ -e {RECORD} ]; then cat {RECORD}; else echo null; fi"))
STATUS = Probe("zpool_status", ("zpool", "status", "-p"), timeout=20, role="zfs_pool")
MOUNTS = Probe("zfs_mounts", ("findmnt", "--json", "--list", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS"))
_TRY = f"""
[ -e {RECORD} ] || exit 0
place=$(python3 -c 'import json; print(json.load(open("{RECORD}"))["mountpoint"])') || exit 1
trial() {{
    file=$(mktemp "$place/.write-test-XXXXXXXX") || return 1
    dd if=/dev/urandom of="$file" bs=1M count=16 conv=fsync status=none
    ended=$?
    rm -f "$file"
    return $ended
}}
began=$(date +%s.%N)
if why=$(trial 2>&1); then echo "written $began $(date +%s.%N)"; else echo "refused: $why"; fi
"""
WRITE = Probe("zpool_write", ("sh", "-c", _TRY), timeout=60)
DOCKER_ROOT = Probe("docker_root", ("docker", "info", "--format", "{{.DockerRootDir}}"), timeout=20, role="docker")
_NAME = "zpool"
_WRITTEN = 3


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    promised = parse_pool_record(readings.text(PROMISE))
    if promised is None:
        yield not_applicable(_NAME, "the role zfs_pool was not applied to this host")
        return
    pools = [one for one in parse_zpool_status(readings.text(STATUS)) if one.name == promised.pool]
    found = [
        *_health(promised, pools),
        *_mount(promised, readings),
        *_write(promised, readings, expected),
        *_docker(promised, readings),
    ]
    yield from found
    if not found:
        yield passed(
            _NAME,
            "all disks of the pool are online, and it takes data",
            subject=promised.pool,
            measured="ONLINE",
            expected="ONLINE",
        )


def _absent(pool: str) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.POOL_ABSENT,
        subject=pool,
        cause="the pool is absent",
        measured="none",
        expected="ONLINE",
        remedy=f"run zpool import on the node, then zpool import {pool} if it lists the pool",
    )


def _degraded(pool: PoolStatus) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.POOL_DEGRADED,
        subject=pool.name,
        cause=pool.status or f"the pool is {pool.state}",
        measured=pool.state,
        expected="ONLINE",
        remedy=pool.action or f"read zpool status {pool.name} on the node",
    )


def _health(promised: PoolRecord, pools: list[PoolStatus]) -> Iterator[Finding]:
    if not pools:
        yield _absent(promised.pool)
        return
    (pool,) = pools
    lost = [disk for disk in pool.disks if disk.state not in ("ONLINE", "AVAIL", "INUSE")]
    yield from (_lost(pool, disk) for disk in lost)
    yield from (_unsound(disk) for disk in pool.disks if any(disk.errors) and disk not in lost)
    if pool.state != "ONLINE" and not lost:
        yield _degraded(pool)
    if pool.has_lost_data is None:
        yield _suspended(pool)
    elif pool.has_lost_data:
        yield _lost_data(pool)


def _suspended(pool: PoolStatus) -> Finding:
    remedy = f"seat the pool's disks again, then run zpool clear {pool.name}; if it stays so, reboot the node"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.POOL_DEGRADED,
        subject=pool.name,
        cause=f"the pool cannot report its errors: {pool.errors}",
        measured=pool.state,
        expected="ONLINE",
        remedy=remedy,
    )


def _lost_data(pool: PoolStatus) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.POOL_DATA_LOST,
        subject=pool.name,
        cause=f"the pool has lost data: {pool.errors}",
        remedy=f"list the files with zpool status -v {pool.name}, restore them from a copy, then zpool clear",
    )


def _lost(pool: PoolStatus, disk: PoolDevice) -> Finding:
    was, _, path = disk.note.partition("was ")
    name = path if path and not was else disk.name
    why = f" ({disk.note})" if disk.note and name == disk.name else ""
    cause = f"the disk is {disk.state}{why} in pool {pool.name}, which is {pool.state}"
    remedy = f"seat or replace the disk, then zpool replace {pool.name} {disk.name} NEW on the node"
    if pool.is_replaced(disk):
        cause = f"the disk is {disk.state} and is being replaced{why} in pool {pool.name}, which is {pool.state}"
        remedy = pool.action or f"see with zpool status {pool.name} which disk of the replacement is away, and seat it"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.POOL_DISK_LOST,
        subject=_short(name),
        cause=cause,
        measured=disk.state,
        expected="ONLINE",
        remedy=remedy,
    )


def _unsound(disk: PoolDevice) -> Finding:
    measured = "/".join(map(str, disk.errors))
    remedy = "read dmesg and nvme smart-log of the disk; replace the disk if the errors come back after zpool clear"
    cause = "the disk has read, write or checksum errors since the pool was imported"
    return Finding(
        check=_NAME,
        verdict=Verdict.WARN,
        code=Code.POOL_DISK_ERRORS,
        subject=_short(disk.name),
        cause=cause,
        measured=measured,
        expected="0/0/0",
        remedy=remedy,
    )


def _short(device: str) -> str:
    return device.rpartition("/")[2].removesuffix("-part1")


def _mount(promised: PoolRecord, readings: Readings) -> Iterator[Finding]:
    found = _filesystem(parse_findmnt(readings.text(MOUNTS)), promised.mountpoint)
    if found is None or found.target != promised.mountpoint or not _on(promised, found):
        source = found.source if found and found.target == promised.mountpoint else "nothing"
        cause = f"{promised.mountpoint} holds {source}, not the pool"
        remedy = f"run zfs mount -a on the node; read systemctl status zfs-mount and zpool status {promised.pool}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NOT_MOUNTED,
            subject=promised.pool,
            cause=cause,
            measured=source,
            expected=promised.pool,
            remedy=remedy,
        )
    elif "ro" in found.options:
        remedy = f"read zpool status {promised.pool} on the node: a pool without enough disks takes no data"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.MOUNTED_READ_ONLY,
            subject=promised.pool,
            cause="it is mounted read-only",
            measured="ro",
            expected="rw",
            remedy=remedy,
        )


def _write(promised: PoolRecord, readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[ZPOOL_WRITE_MAX]
    remedy = f"find the slow or lost disk with zpool status and zpool iostat -v {promised.pool} 5 on the node"
    result = readings.probes.get(WRITE.name)
    if result is not None and result.status is Status.TIMEOUT:
        raise UnmeasuredError(f"a write to the pool hangs: it did not end within {WRITE.timeout:g} s", remedy=remedy)
    output = readings.text(WRITE).strip()
    if output.startswith("refused: "):
        cause = f"the pool takes no file: {output.removeprefix('refused: ').splitlines()[0]}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NOT_WRITABLE,
            subject=promised.pool,
            cause=cause,
            measured="not written",
            expected="written",
            remedy=remedy,
        )
    elif (seconds := _seconds(output)) > limit.value:
        cause = "the pool takes too long to write 16 MiB"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.WRITE_SLOW,
            subject=promised.pool,
            cause=cause,
            measured=limit.quantity(seconds),
            expected=limit.at_most,
            remedy=remedy,
            deterministic=False,
        )


def _seconds(output: str) -> float:
    words = output.split()
    try:
        if len(words) == _WRITTEN and words[0] == "written":
            return float(words[2]) - float(words[1])
    except ValueError:
        pass
    raise ParseError(f"neither written nor refused: {output[:100]!r}", where="the test of writing")


def _docker(promised: PoolRecord, readings: Readings) -> Iterator[Finding]:
    """Yield where Docker writes; whether it runs is the question of another check."""
    subject = "docker"
    try:
        root = _root(readings.result(DOCKER_ROOT))
    except UnmeasuredError as error:
        yield inconclusive(_NAME, error, subject)
        return
    found = _filesystem(parse_findmnt(readings.text(MOUNTS)), root)
    if found is not None and _on(promised, found):
        return
    below, wanted = found.source if found else "nothing that is known", f"pool {promised.pool}"
    cause = f"Docker keeps its data in {root}, which is not on the pool"
    remedy = f"set docker_data_root to a folder below {promised.mountpoint}, then configure the node again"
    yield Finding(
        check=_NAME,
        verdict=Verdict.WARN,
        code=Code.DOCKER_NOT_ON_POOL,
        subject=subject,
        cause=cause,
        measured=below,
        expected=wanted,
        remedy=remedy,
    )


def _root(result: ProbeResult) -> str:
    root = result.stdout.strip()
    if result.rc != 0 or not root.startswith("/"):
        raise UnmeasuredError(
            f"Docker does not report its data folder: {result.error_output}",
            remedy="follow the remedy of the check docker",
        )
    return root


def _filesystem(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """Return the mount that a path lies on: the deepest one above it, the last of those."""
    above = [one for one in mounts if f"{path}/".startswith(f"{one.target.rstrip('/')}/")]
    return max(enumerate(above), key=lambda one: (len(one[1].target), one[0]))[1] if above else None


def _on(promised: PoolRecord, mount: Mount) -> bool:
    return mount.filesystem == "zfs" and mount.source.partition("/")[0] == promised.pool


CHECK = Check(
    _NAME, (PROMISE, STATUS, MOUNTS, WRITE, DOCKER_ROOT), _judge, area=Area.STORAGE, limits=(ZPOOL_WRITE_MAX,)
)
