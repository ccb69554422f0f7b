"""disk_usage: no local file system is nearly full, neither its space nor its inodes.

All that are mounted: the system's, those of ZFS pools and scratch drives, and the one that holds Docker's data. A ZFS
file system counts what its pool has left.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import FilesystemUse, parse_df_use
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

DISK_USED_MAX = LimitKey("disk_used_max", "%", default=95, source="own choice; ext4 keeps 5 % for root, ZFS slows down")
INODES_USED_MAX = LimitKey("inodes_used_max", "%", default=95, source="own choice; as for the space")

DF_USE = Probe(
    "df_use",
    (
        *("df", "-l", "-x", "squashfs", "-x", "iso9660", "-x", "devtmpfs", "-x", "efivarfs", "-B1"),
        "--output=fstype,size,used,avail,itotal,iused,target",
    ),
)
"""Images of a fixed size are always full. File servers are left out: a dead one would hang the probe."""
_NAME = "disk_usage"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    mounted = parse_df_use(readings.result(DF_USE).stdout or readings.text(DF_USE))
    if not mounted:
        raise UnmeasuredError("df lists no local file system", remedy="run df on the node and read what it lists")
    bad = [finding for one in mounted for finding in _bad(one, expected.limits)]
    yield from bad
    readings.text(DF_USE)  # raises where df could not read them all, as for a dead mount of FUSE
    if not bad:
        fullest = max(one.space for one in mounted)
        limit = expected.limits[DISK_USED_MAX]
        cause = f"no file system of {len(mounted)} is nearly full; the fullest is shown"
        yield passed(_NAME, cause, measured=limit.quantity(fullest), expected=limit.at_most)


def _bad(one: FilesystemUse, limits: Limits) -> Iterator[Finding]:
    kinds = (
        (DISK_USED_MAX, Code.DISK_FULL, one.space, "is nearly full", "du -x -h --max-depth=2"),
        (INODES_USED_MAX, Code.INODES_FULL, one.inodes, "has few inodes left", "du -x --inodes --max-depth=2"),
    )
    for key, code, percent, what, command in kinds:
        limit = limits[key]
        if percent is not None and percent > limit.value:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=code,
                subject=one.mount,
                cause=f"{one.mount} ({one.kind}) {what}",
                measured=limit.quantity(percent),
                expected=limit.at_most,
                remedy=f"find what fills {one.mount} ({command}) and remove it, or install the node again",
            )
            return


CHECK = Check(
    _NAME,
    (DF_USE,),
    _judge,
    area=Area.STORAGE,
    causes=(Cause("disk_space", same_part=True),),
    limits=(DISK_USED_MAX, INODES_USED_MAX),
)
