"""zpool: `status -p` of a host whose pool has given one of its data drives up; every other host has no pool.

Layout: zpool status recorded of OpenZFS on virtual metal (tests/burnin/data/zpool); words of the state: OpenZFS's
zpool_main.c, ZPOOL_STATUS_FAULTED_DEV_R, and the row's note of a device with too many errors.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Disk, load

POOL, MOUNTPOINT = "data", "/data"
_HEAD = """\
  pool: {pool}
 state: DEGRADED
status: One or more devices are faulted in response to persistent errors.
\tSufficient replicas exist for the pool to continue functioning in a
\tdegraded state.
action: Replace the faulted device, or use 'zpool clear' to mark the device
\trepaired.
config:

"""
_END = "\nerrors: No known data errors\n"


def main(argv: Sequence[str]) -> int:
    if list(argv) != ["status", "-p"]:
        sys.stderr.write("zpool: the rehearsal lab's stand-in knows status -p\n")
        return 2
    facts = load()
    sys.stdout.write(_status(facts.disks) if facts.pool_degraded else "no pools available\n")
    return 0


def _status(disks: Sequence[Disk]) -> str:
    names = [f"nvme-{disk.model.replace(' ', '_')}_{disk.serial}" for disk in disks if not disk.boot]
    rows = [(POOL, "DEGRADED", ""), ("  raidz1-0", "DEGRADED", ""), *((f"    {name}", "ONLINE", "") for name in names)]
    rows[-1] = (rows[-1][0], "FAULTED", "  too many errors")
    width = max(len(name) for name, *_ in rows)
    table = f"\t{'NAME':{width}}  {'STATE':8}  READ WRITE CKSUM\n"
    for name, state, note in rows:
        counts = (6, 61, 0) if note else (0, 0, 0)
        table += f"\t{name:{width}}  {state:8}  {counts[0]:4} {counts[1]:5} {counts[2]:5}{note}\n"
    return f"{_HEAD.format(pool=POOL)}{table}{_END}"
