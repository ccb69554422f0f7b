"""Runs on a node, as the built-in probe `nvme-read SECONDS RAMP JOBS DEPTH`: random reads of 4 KiB from every NVMe data
drive at once, by fio.

Standard library only, Python 3.9. Nothing is written: fio gets `--readonly` and `randread` from here and only four
numbers from its caller, and it is kept from flushing the drive's page cache (`--invalidate=0`). A drive that a pool
or a file system uses is read like any other: it is opened for reading only, and not exclusively. Drives with the
running system on them are left out. A drive that does not end in time is reported as such.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List

from clusterctl_burnin.node.processes import Result, ask, ask_all

Ask = Callable[..., Result]
Gather = Callable[[Callable[[str], Result], Iterable[str]], Dict[str, Result]]
END = 15.0  # seconds that fio may take in addition to reading
SYSTEM = frozenset({"/", "/boot", "/boot/efi", "/usr", "/var", "[SWAP]"})
BY_ID = Path("/dev/disk/by-id")
LISTED = ("lsblk", "--json", "--bytes", "--output", "NAME,TYPE,MODEL,SERIAL,MOUNTPOINT")


def mounted(device: dict[str, Any]) -> set[str]:
    """Return the mount points of the device and of all above it."""
    own = {device["mountpoint"]} if device.get("mountpoint") else set()
    return own.union(*(mounted(child) for child in device.get("children", [])))


def drives(listed: str) -> tuple[dict[str, dict[str, str]], list[str]]:
    """Return the NVMe drives by kernel name (of several namespaces, the first), and those of the running system."""
    found: dict[str, dict[str, str]] = {}
    system: List[str] = []
    for disk in json.loads(listed)["blockdevices"]:
        serial = (disk["serial"] or "").strip()
        known = {drive["serial"] for drive in found.values() if drive["serial"]}
        if disk["type"] != "disk" or not disk["name"].startswith("nvme") or serial in known:
            continue
        if mounted(disk) & SYSTEM:
            system.append(disk["name"])
        else:
            found[disk["name"]] = {"serial": serial, "model": (disk["model"] or "").strip()}
    return found, system


def path_of(name: str, links: Path = BY_ID) -> str:
    """Return its name by identity, which no other drive can have taken meanwhile. fio splits names at colons."""
    device = Path("/dev", name)
    names = sorted(str(link) for link in links.glob("nvme-*") if link.resolve() == device and ":" not in link.name)
    return names[0] if names else str(device)


def command(path: str, seconds: int, ramp: int, jobs: int, depth: int) -> list[str]:
    """Return fio's command, without a random map: that of a large drive would take gigabytes of memory."""
    argv = ["fio", "--readonly", "--name=nvme_read", f"--filename={path}", "--rw=randread", "--bs=4k", "--direct=1"]
    argv += ["--invalidate=0", "--ioengine=libaio", f"--iodepth={depth}", f"--numjobs={jobs}", "--group_reporting"]
    argv += ["--time_based", f"--runtime={seconds}", f"--ramp_time={ramp}", "--norandommap", "--randrepeat=0"]
    return [*argv, "--output-format=json"]


def entry(name: str, drive: dict[str, str], path: str, answer: Result) -> dict[str, Any]:
    """Return one drive's entry. What fio printed before its JSON is added to its errors."""
    code, out, stderr = answer
    before, brace, rest = out.partition("{")
    try:
        report = json.loads(brace + rest) if brace else None
    except ValueError:
        report, before = None, out
    words = f"{stderr}\n{before}".strip()[:300]
    return {"name": name, **drive, "path": path, "code": code, "output": words, "fio": report}


def main(argv: list[str], ask: Ask, gather: Gather) -> int:
    """Print `{"drives": [{name, serial, model, path, code, output, fio}], "system": [name]}`."""
    if len(argv) != 4 or not all(word.isdigit() for word in argv):
        sys.stderr.write("nvme-read takes four numbers: SECONDS RAMP JOBS DEPTH\n")
        return 2
    seconds, ramp, jobs, depth = map(int, argv)
    code, listed, stderr = ask(*LISTED)
    if code != 0:
        sys.stderr.write(stderr)
        return code
    found, system = drives(listed)
    paths = {name: path_of(name) for name in found}
    answers = gather(lambda name: ask(*command(paths[name], seconds, ramp, jobs, depth)), found)
    entries = [entry(name, drive, paths[name], answers[name]) for name, drive in found.items()]
    json.dump({"drives": entries, "system": system}, sys.stdout)
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    waits = sum(int(word) for word in sys.argv[1:3] if word.isdigit()) + END
    ended = main(sys.argv[1:], ask, functools.partial(ask_all, seconds=waits))
    sys.stdout.flush()
    os._exit(ended)  # a thread that waits for a dead drive would keep the program
