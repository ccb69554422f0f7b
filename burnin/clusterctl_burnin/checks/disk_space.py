"""disk_space: the system's file systems have room for logs, dumps and containers."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import parse_df
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings

DISK_FREE_MIN = LimitKey("disk_free_min", "GiB")

_PATHS = ("/", "/var", "/tmp")  # noqa: S108 — looked at, not written to
DF = Probe("df", ("df", "-P", "-B1", *_PATHS))
_NAME = "disk_space"
_GIB = 2**30


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[DISK_FREE_MIN]
    filesystems = parse_df(readings.text(DF), len(_PATHS))
    full = [f for f in filesystems if f.free < limit.value * _GIB]
    remedy = "find what fills it (du -x -h --max-depth=2) and remove it, or install the node again"
    for filesystem in full:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.DISK_FULL,
            subject=filesystem.mount,
            cause=f"{filesystem.mount} is nearly full",
            measured=limit.quantity(filesystem.free / _GIB),
            expected=limit.at_least,
            remedy=remedy,
        )
    if not full:
        least = min(f.free for f in filesystems) / _GIB
        yield passed(_NAME, "there is room", measured=limit.quantity(least), expected=limit.at_least)


CHECK = Check(_NAME, (DF,), _judge, area=Area.STORAGE, limits=(DISK_FREE_MIN,))
