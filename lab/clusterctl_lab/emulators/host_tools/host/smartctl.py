"""smartctl: `--json --scan` and `--json --xall /dev/NAME` of this host's SATA drives.

The keys are those of smartctl 7.4 for a SATA solid-state drive (prometheus-community/smartctl_exporter, testdata); for
a drive that fails by its own verdict, bit 3 of the exit code is set (smartctl(8)).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from clusterctl_lab.emulators.host_tools.host.facts import Disk, load

FAILING, NOT_OPENED = 0x08, 0x02
ATTRIBUTES = ((5, "Reallocated_Sector_Ct"), (187, "Reported_Uncorrect"), (197, "Current_Pending_Sector"))


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if words[:1] != ["--json"] or words[1:2] not in (["--scan"], ["--xall"]):
        sys.stderr.write("the lab's smartctl knows --json --scan and --json --xall DEVICE\n")
        return 1
    disks = {f"/dev/{disk.name}": disk for disk in load().disks if disk.name.startswith("sd")}
    if words[1] == "--scan":
        document: dict[str, Any] = {"devices": [{"name": path, "type": "scsi", "protocol": "SCSI"} for path in disks]}
        code = 0
    elif words[-1] in disks:
        disk = disks[words[-1]]
        code = FAILING if disk.failed else 0
        document = {"smartctl": {"version": [7, 4], "exit_status": code}, **_report(words[-1], disk)}
    else:
        code = NOT_OPENED
        message = {"string": f"Smartctl open device: {words[-1]} failed: No such device", "severity": "error"}
        document = {"smartctl": {"version": [7, 4], "messages": [message], "exit_status": code}}
    json.dump(document, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return code


def _report(path: str, disk: Disk) -> dict[str, Any]:
    values = {197: disk.pending_sectors}
    table = [{"id": number, "name": name, "raw": _raw(values.get(number, 0))} for number, name in ATTRIBUTES]
    used = {"offset": 8, "name": "Percentage Used Endurance Indicator", "size": 1, "value": disk.used_percent}
    return {
        "device": {"name": path, "info_name": f"{path} [SAT]", "type": "sat", "protocol": "ATA"},
        "model_name": disk.model,
        "serial_number": disk.serial,
        "smart_support": {"available": True, "enabled": True},
        "smart_status": {"passed": not disk.failed},
        "ata_smart_attributes": {"revision": 1, "table": table},
        "ata_device_statistics": {"pages": [{"number": 7, "name": "Solid State Device Statistics", "table": [used]}]},
    }


def _raw(value: int) -> dict[str, Any]:
    return {"value": value, "string": str(value)}
