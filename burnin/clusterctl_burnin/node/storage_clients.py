"""Runs on a node: the counters of its NFS mounts and Lustre clients, twice, for `clusterctl job storage`.

Standard library only, Python 3.9. The controller sends this file to `python3 -`, followed by one line that calls
`main`. The files are the kernel's own: a file server that does not answer holds no reading up.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Dict

MOST = 4 << 20
MOUNTSTATS = Path("/proc/self/mountstats")
LLITE = (Path("/sys/kernel/debug/lustre/llite"), Path("/proc/fs/lustre/llite"))


def text_of(path: Path) -> str:
    """Return the first bytes of a file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(MOST).decode(errors="replace")
    except OSError:
        return ""


def llite() -> str:
    """Return the counters of all Lustre clients in the form of `lctl get_param llite.*.stats`."""
    for folder in LLITE:
        found = ["llite.{}.stats=\n{}".format(one.parent.name, text_of(one)) for one in sorted(folder.glob("*/stats"))]
        if found:
            return "\n".join(found)[:MOST]
    return ""


def reading() -> Dict[str, str]:
    return {"mountstats": text_of(MOUNTSTATS), "llite": llite()}


def main(request: Dict[str, Any]) -> None:
    before, began = reading(), time.monotonic()
    time.sleep(request["seconds"])
    after, seconds = reading(), time.monotonic() - began
    json.dump({"version": 1, "seconds": seconds, "before": before, "after": after}, sys.stdout)
