"""Runs on a node, as the built-in probe `transceivers`: what the module in each InfiniBand port reports of itself.

Standard library only, Python 3.9. Each port is asked by `mlxlink` (NVIDIA's MFT), or by `mstlink`, the same tool of the
distribution's package mstflint; both need root. `AT_ONCE` ports are asked at a time, so that eight that hang are over
before the probe's time is.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, Iterable, List

from clusterctl_burnin.node.processes import Result
from clusterctl_burnin.node.processes import ask as ask_tool

PATIENCE = float(os.environ.get("CLUSTERCTL_PATIENCE", "1"))  # how many times as long a host is given
TIMEOUT = 10.0 * PATIENCE  # seconds that one answer may take
AT_ONCE = 4
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
TOOLS = ("mlxlink", "mstlink")

Ask = Callable[..., Result]
Gather = Callable[[Callable[[str], Dict[str, Any]], List[str]], Iterable[Dict[str, Any]]]


def entry(name: str, code: int, out: str, stderr: str) -> dict[str, Any]:
    """Return the entry. `answer` is the tool's document; null where it gave none."""
    try:
        answer = json.loads(out)
    except ValueError:
        answer = None
    printed = COLOUR.sub("", stderr + out).strip()
    return {"name": name, "code": code, "output": printed[-300:] if answer is None else "", "answer": answer}


def at_once(look: Callable[[str], dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(look, names))


def main(ask: Ask, tool: str | None, gather: Gather = at_once) -> int:
    """Print `{"ports": [{name, code, output, answer}]}`."""
    if tool is None:
        sys.stderr.write("neither mlxlink (MFT) nor mstlink (package mstflint) is installed\n")
        return 127
    code, names, stderr = ask("ibstat", "-l")
    if code != 0:
        sys.stderr.write(stderr)
        return code
    ports = gather(lambda name: entry(name, *ask(tool, "-d", name, "-m", "--json")), names.split())
    json.dump({"ports": list(ports)}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(functools.partial(ask_tool, seconds=TIMEOUT), next(filter(shutil.which, TOOLS), None)))
