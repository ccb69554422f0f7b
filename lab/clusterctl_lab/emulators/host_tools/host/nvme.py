"""nvme: `smart-log` and `error-log --output-format=json /dev/NAME`, two logs of one of this host's drives.

The keys are those of nvme-cli 2.x, the values those of a drive of the NVM Express Base Specification (log pages 01h and
02h).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Disk, Facts, load
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

RELIABILITY, SPARE = 0x04, 0x01
THRESHOLD = 10
UNRECOVERED_READ, LOST_LBA = 0x281, 423660112


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if words[:1] not in (["smart-log"], ["error-log"]) or words[1:2] != ["--output-format=json"] or len(words) != 3:
        sys.stderr.write("the lab's nvme knows smart-log and error-log --output-format=json DEVICE\n")
        return 1
    disk = _disk(load(), words[2].removeprefix("/dev/"))
    if disk is None:
        sys.stderr.write(f"{words[2]}: No such file or directory\n")
        return 1
    json.dump(_log(disk) if words[0] == "smart-log" else {"errors": [_error(disk)]}, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


def _disk(facts: Facts, name: str) -> Disk | None:
    """Return the drive. A virtual machine's kernel may number its drives in another order; there the serial identifies
    the drive.
    """
    serial = text_of(f"/sys/block/{name}/device/serial").strip()
    if facts.own_kernel and serial:
        return next((disk for disk in facts.disks if disk.serial == serial), None)
    return next((disk for disk in facts.disks if disk.name == name and name.startswith("nvme")), None)


def _error(disk: Disk) -> dict[str, int]:
    """Return the log's entry: an empty one, or one for a read that failed."""
    fields = dict.fromkeys(("cmdid", "phase_tag", "parm_error_location", "vs", "trtype", "cs", "trtype_spec_info"), 0)
    if not disk.lost_block:
        return {"error_count": 0, "sqid": 0, "status_field": 0, "lba": 0, "nsid": 0, **fields}
    return {"error_count": 1, "sqid": 3, "status_field": UNRECOVERED_READ, "lba": LOST_LBA, "nsid": 1, **fields}


def _log(disk: Disk) -> dict[str, int]:
    spare = 100 - disk.used_percent if disk.used_percent < 100 else 0
    return {
        "critical_warning": RELIABILITY * disk.failed | SPARE * (spare < THRESHOLD),
        "temperature": 311,
        "avail_spare": spare,
        "spare_thresh": THRESHOLD,
        "percent_used": disk.used_percent,
        "endurance_grp_critical_warning_summary": 0,
        "data_units_read": 28167,
        "data_units_written": 171788,
        "host_read_commands": 561183,
        "host_write_commands": 1717888,
        "controller_busy_time": 13,
        "power_cycles": 12,
        "power_on_hours": 136,
        "unsafe_shutdowns": 3,
        "media_errors": int(disk.lost_block),
        "num_err_log_entries": int(disk.lost_block),
        "warning_temp_time": 0,
        "critical_comp_time": 0,
    }
