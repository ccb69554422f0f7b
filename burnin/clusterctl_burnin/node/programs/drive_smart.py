"""Runs on a node, as the built-in probe `drive-smart SECONDS`: the SMART data of each SATA and SAS drive, all at once.

Standard library only, Python 3.9. The drives are those of lsblk (`sd*`, without USB and without empty readers), and
those that `smartctl --scan` finds behind RAID controllers; each is read by `smartctl --json --xall`. NVMe drives are
read by `nvme-health`. A drive that does not answer within SECONDS is reported as such.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import Any, Callable, Dict, Iterable

from clusterctl_burnin.node.processes import NOT_FOUND, Result, ask, ask_all

Ask = Callable[..., Result]
Gather = Callable[[Callable[[str], Result], Iterable[str]], Dict[str, Result]]
COLUMNS = "NAME,TYPE,TRAN,SIZE,MODEL,SERIAL"


def disks(listed: str) -> dict[str, dict[str, str]]:
    """Return the SATA and SAS disks, and RAID volumes, by device path."""
    found: dict[str, dict[str, str]] = {}
    for disk in json.loads(listed)["blockdevices"]:
        is_drive = disk["type"] == "disk" and disk["name"].startswith("sd") and int(disk["size"] or 0) > 0
        if is_drive and disk.get("tran") != "usb":
            path = f"/dev/{disk['name']}"
            found[path] = {key: (disk[key] or "").strip() for key in ("serial", "model")}
    return found


def behind_controllers(scanned: Result) -> dict[str, list[str]]:
    """Arguments of smartctl by name, as `megaraid,2`, for each drive that only its RAID controller shows."""
    code, out, _ = scanned
    try:
        devices = json.loads(out).get("devices", []) if code == 0 else []
    except ValueError:
        return {}
    hidden = [device for device in devices if "," in device.get("type", "")]
    return {f"{d['name']} {d['type']}": ["--device", d["type"], d["name"]] for d in hidden}


def main(ask: Ask, gather: Gather) -> int:
    """Print `{"drives": [{name, serial, model, code, output, smart}]}`; `smart` is null where there is no JSON."""
    code, listed, stderr = ask("lsblk", "--json", "--bytes", "--output", COLUMNS)
    if code != 0:
        sys.stderr.write(stderr)
        return code
    found = disks(listed)
    calls = {path: [path] for path in found}
    if found:
        calls.update(behind_controllers(ask("smartctl", "--json", "--scan")))
    answers = gather(lambda name: ask("smartctl", "--json", "--xall", *calls[name]), calls)
    unknown = {"serial": "", "model": ""}
    drives = [entry(name.replace("/dev/", ""), found.get(name, unknown), answers[name]) for name in calls]
    json.dump({"drives": drives}, sys.stdout)
    sys.stdout.flush()
    return 0


def entry(name: str, drive: dict[str, str], answer: Result) -> dict[str, Any]:
    code, out, stderr = answer
    try:
        smart = json.loads(out)
    except ValueError:
        smart = None
        stderr = stderr or f"no JSON: {out[:100]}"
    if code == NOT_FOUND:
        stderr = "smartctl is not installed"
    return {"name": name, **drive, "code": code, "output": stderr.strip()[:300], "smart": smart}


if __name__ == "__main__":
    limit = float(sys.argv[1]) * float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))
    ended = main(ask, functools.partial(ask_all, seconds=limit))
    sys.stdout.flush()
    os._exit(ended)  # a thread that waits for a dead drive would keep the program
