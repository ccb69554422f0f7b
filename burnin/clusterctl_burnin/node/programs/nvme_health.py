"""Runs on a node, as the built-in probe `nvme-health SECONDS`: health and error log of each NVMe drive, all at once.

Standard library only, Python 3.9. The drives are those of lsblk; each is read by `nvme smart-log` and `nvme error-log`
(nvme-cli). Those that hold the running system's root or boot partition are marked. A drive that does not answer within
SECONDS is reported as such; the others' answers are printed.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from typing import Any, Callable, Dict, Iterable

from clusterctl_burnin.node.processes import Result, ask, ask_all

Ask = Callable[..., Result]
Gather = Callable[[Callable[[str], Result], Iterable[str]], Dict[str, Result]]
BOOT = frozenset({"/", "/boot", "/boot/efi"})
LISTED = ("lsblk", "--json", "--bytes", "--output", "NAME,TYPE,MODEL,SERIAL,MOUNTPOINT")


def mounted(device: dict[str, Any]) -> set[str]:
    """Return the mount points of the device and of all above it, as `nvme_read` does: programs are sent alone."""
    own = {device["mountpoint"]} if device.get("mountpoint") else set()
    return own.union(*(mounted(child) for child in device.get("children", [])))


def drives(listed: str) -> dict[str, dict[str, Any]]:
    """Return the NVMe drives by their kernel names; of a drive with several namespaces, the first."""
    found: dict[str, dict[str, Any]] = {}
    for disk in json.loads(listed)["blockdevices"]:
        serial = (disk["serial"] or "").strip()
        known = {drive["serial"] for drive in found.values() if drive["serial"]}
        if disk["type"] != "disk" or not disk["name"].startswith("nvme"):
            continue
        if serial not in known:
            model = (disk["model"] or "").strip()
            found[disk["name"]] = {"serial": serial, "model": model, "boot": bool(mounted(disk) & BOOT)}
        elif mounted(disk) & BOOT:
            next(drive for drive in found.values() if drive["serial"] == serial)["boot"] = True
    return found


def main(ask: Ask, gather: Gather) -> int:
    """Print `{"drives": [{name, serial, model, boot, code, output, log, errors}]}`; a log is null after a failure."""
    code, listed, stderr = ask(*LISTED)
    if code != 0:
        sys.stderr.write(stderr)
        return code
    found = drives(listed)
    errors: Dict[str, Any] = {}

    def look(name: str) -> Result:
        health = ask("nvme", "smart-log", "--output-format=json", f"/dev/{name}")
        if health[0] == 0:
            errors[name] = error_log(ask("nvme", "error-log", "--output-format=json", f"/dev/{name}"))
        return health

    answers = gather(look, found)
    entries = [{**entry(name, drive, answers[name]), "errors": errors.get(name)} for name, drive in found.items()]
    json.dump({"drives": entries}, sys.stdout)
    sys.stdout.flush()
    return 0


def error_log(answer: Result) -> Any:
    """Return the entries of the error log; None where the drive keeps none that the tool can read."""
    try:
        return json.loads(answer[1])["errors"] if answer[0] == 0 else None
    except (KeyError, TypeError, ValueError):
        return None


def entry(name: str, drive: dict[str, Any], answer: Result) -> dict[str, Any]:
    code, out, stderr = answer
    try:
        log = json.loads(out) if code == 0 else None
    except ValueError:
        code, log, stderr = 65, None, f"no JSON: {out[:100]}"
    return {"name": name, **drive, "code": code, "output": (stderr or out).strip()[:300], "log": log}


if __name__ == "__main__":
    limit = float(sys.argv[1]) * float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))
    ended = main(ask, functools.partial(ask_all, seconds=limit))
    sys.stdout.flush()
    os._exit(ended)  # a thread that waits for a dead drive would keep the program
