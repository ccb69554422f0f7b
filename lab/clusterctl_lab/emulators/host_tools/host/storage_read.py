"""storage-read: how fast this host reads from the site's storage.

Stands in for a burn-in program of that name: the lab has no storage of its own, and reads nothing. The document is that
of the program, printed where it read from a server on the same machine.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

GBPS, SLOW_GBPS = 90.0, 0.9
BYTES_PER_GBIT = 125_000_000


def main(argv: Sequence[str]) -> int:
    if len(argv) != 2:
        sys.stderr.write("storage-read takes two numbers: SECONDS READERS\n")
        return 2
    seconds, readers = map(int, argv)
    wanted = json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}")).get("storage") or {}
    source = (wanted.get("url") or wanted.get("path") or "").partition("?")[0]
    rate = SLOW_GBPS if load().storage_slow else GBPS
    one = {"bytes": int(rate * BYTES_PER_GBIT * seconds / readers), "seconds": float(seconds), "trouble": ""}
    document = {"version": 1, "source": source, "least_gbps": wanted.get("gbps") or 0}
    json.dump({**document, "readers": [one] * readers if source else []}, sys.stdout)
    return 0
