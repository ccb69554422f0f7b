"""Runs on a node, as the built-in probe `adapter-load SECONDS MESSAGE_BYTES`: all InfiniBand adapters write at once.

Standard library only, Python 3.9. Each adapter with an active port writes to itself by perftest (`ib_write_bw`, server
and client on this node): that loads its chip, its PCIe link and the memory, not its cable. The document has what both
ends of each adapter printed.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any, Dict, List, Sequence

from clusterctl_burnin.node.processes import Result, ask, ask_all

FIRST_PORT = 18700  # not those of pairs
MARGIN = 45.0  # seconds for the start and end of one flow
TIMEOUT = 20.0  # of ibstat
PAUSE = 0.2
ACTIVE = re.compile(r"^\s*State: Active\s*$", re.MULTILINE)
INFINIBAND = re.compile(r"^\s*Link layer: InfiniBand\s*$", re.MULTILINE)


def active(listing: str) -> List[str]:
    """Return the adapters with an active InfiniBand port, by `ibstat`."""
    parts = re.split(r"(?m)^CA '", listing)[1:]
    return [part.partition("'")[0] for part in parts if ACTIVE.search(part) and INFINIBAND.search(part)]


def client(argv: Sequence[str], until: float) -> Result:
    """Run the client, again and again while its server is not there yet."""
    while True:
        answer = ask(*argv, "127.0.0.1", seconds=max(0.1, until - time.monotonic()))
        if "Couldn't connect to" not in answer[1] + answer[2] or time.monotonic() + PAUSE >= until:
            return answer
        time.sleep(PAUSE)


def flows(names: Sequence[str], seconds: int, size: int) -> Dict[str, Dict[str, Result]]:
    """Let each adapter write to itself; return how both ends of each ended."""
    until = time.monotonic() + seconds + MARGIN
    method = ["-s", str(size), "-D", str(seconds), "-F", "--report_gbits"]
    commands = {
        name: ["ib_write_bw", "-d", name, "-p", str(FIRST_PORT + number), *method] for number, name in enumerate(names)
    }

    def end(key: str) -> Result:
        kind, _, name = key.partition(" ")
        if kind == "client":
            return client(commands[name], until)
        return ask(*commands[name], seconds=max(0.1, until - time.monotonic()))

    keys = [f"{kind} {name}" for name in names for kind in ("server", "client")]
    answers = ask_all(end, keys, seconds + MARGIN + TIMEOUT)
    return {name: {kind: answers[f"{kind} {name}"] for kind in ("server", "client")} for name in names}


def entry(answer: Result) -> Dict[str, Any]:
    code, out, err = answer
    return {"code": code, "output": out[-4000:], "error": err[-2000:]}


def main(argv: Sequence[str]) -> int:
    """Print the document; `trouble` is why no adapter could be listed."""
    seconds, size = (int(word) for word in argv)
    code, out, err = ask("ibstat", seconds=TIMEOUT)
    ended = flows(active(out) if code == 0 else [], seconds, size)
    adapters = [{"name": name, **{end: entry(answer) for end, answer in both.items()}} for name, both in ended.items()]
    trouble = "" if code == 0 else (err or out).strip()[-300:] or f"ibstat ended with {code}"
    json.dump({"version": 1, "trouble": trouble, "adapters": adapters}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
