"""nvme-read: the speed of random reads from the machine's data drives. It reads nothing: the drives have no content.

Stands in for a burn-in program that would run fio on the controller's own drives. The JSON fields are those of fio 3.33
for a file (Debian 12), limited to the fields of the result.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Disk, load

IOPS, SLOW = 800_000.0, 60_000.0
WORDS = 4


def main(argv: Sequence[str]) -> int:
    if len(argv) != WORDS or not all(word.isdigit() for word in argv):
        sys.stderr.write("the lab's nvme-read takes SECONDS RAMP JOBS DEPTH\n")
        return 2
    seconds = int(argv[0])
    disks = [disk for disk in load().disks if disk.name.startswith("nvme")]
    drives = [_drive(disk, seconds) for disk in disks if not disk.boot]
    json.dump({"drives": drives, "system": [disk.name for disk in disks if disk.boot]}, sys.stdout)
    return 0


def _drive(disk: Disk, seconds: int) -> dict[str, object]:
    iops = SLOW if disk.slow else IOPS
    latency_ns = int(256e9 / iops)
    read = {
        "io_bytes": int(iops) * seconds * 4096,
        "iops": iops,
        "runtime": seconds * 1000,
        "total_ios": int(iops) * seconds,
        "clat_ns": {"percentile": {"50.000000": latency_ns, "99.000000": 3 * latency_ns}},
    }
    none = {"io_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0, "clat_ns": {}}
    job = {"jobname": "nvme_read", "groupid": 0, "error": 0, "read": read, "write": none, "trim": none}
    reported = {"fio version": "fio-3.33", "jobs": [job]}
    head = {"name": disk.name, "serial": disk.serial, "model": disk.model}
    return {**head, "path": f"/dev/{disk.name}", "code": 0, "output": "", "fio": reported}
