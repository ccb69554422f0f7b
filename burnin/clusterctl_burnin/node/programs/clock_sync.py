"""Runs on a node, as the built-in probe `clock-sync`: which time sources the node's clock follows.

Standard library only, Python 3.9. The answers are those of `chronyc` (tracking and sources, as CSV) and of
`timedatectl`, which reports the kernel's own flag for whichever service sets the clock.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict

from clusterctl_burnin.node.processes import Result
from clusterctl_burnin.node.processes import ask as ask_tool

Ask = Callable[..., Result]
QUESTIONS = {
    "tracking": ("chronyc", "-n", "-c", "tracking"),
    "sources": ("chronyc", "-n", "-c", "sources"),
    "timedatectl": ("timedatectl", "show", "--property=NTP", "--property=NTPSynchronized"),
}


def main(ask: Ask = ask_tool) -> int:
    """Print `{"tracking": {code, output}, "sources": …, "timedatectl": …}`; code 127: there is no such tool."""
    json.dump({name: answer(ask, *argv) for name, argv in QUESTIONS.items()}, sys.stdout)
    return 0


def answer(ask: Ask, *argv: str) -> Dict[str, Any]:
    code, out, stderr = ask(*argv, seconds=10.0)
    return {"code": code, "output": out if code == 0 else (stderr or out).strip()[:300]}


if __name__ == "__main__":
    sys.exit(main())
