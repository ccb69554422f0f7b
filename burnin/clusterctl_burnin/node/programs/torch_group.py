"""Runs on a node, as the built-in probe `torch-group`: this node's ranks of an all-reduce or a training over PyTorch.

Standard library only, Python 3.9. The ranks (torch_group_worker.py; its text is the first argument) run in a Python
that has PyTorch. The first node also runs the watcher, to which all ranks report their progress; it names the missing
ranks when no rank makes progress. All processes are killed when one of them fails or the time is over.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any, Dict, Sequence

from clusterctl_burnin.node.processes import end, start

GRACE = 5.0  # seconds that the others are left once a rank has failed: they print why they end, too
REAP = 5.0  # seconds that a killed process may take to be gone
NO_END = 5  # exit code: the time was over
NO_PYTHON = 127


def options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("torch-group")
    parser.add_argument("worker")
    parser.add_argument("--python", required=True)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="nccl")
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--node", type=int, required=True, help="which of them this one is, from 0")
    parser.add_argument("--ranks", type=int, required=True, help="on each node")
    parser.add_argument("--head", required=True, help="address of the first node")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bytes", type=int, default=0, help="of the sum")
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.0, help="go on for so long instead")
    parser.add_argument("--stall", type=float, required=True, help="seconds without a step after which it hangs")
    parser.add_argument("--start", type=float, default=120.0, help="seconds within which every rank has to come")
    parser.add_argument("--limit", type=float, required=True, help="seconds after which all are killed")
    parser.add_argument("--interface", default="")
    parser.add_argument("--devices", default="")
    parser.add_argument("--layers", type=int, default=0, help="train a transformer of so many layers instead of a sum")
    for name in ("--width", "--sequence", "--batch"):
        parser.add_argument(name, type=int, default=1, help="of the training: see the worker")
    return parser.parse_args(argv)


def environment(chosen: argparse.Namespace) -> dict[str, str]:
    """Return the environment: the network for the libraries below PyTorch."""
    more = {"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "1"}
    if chosen.interface:
        more.update(GLOO_SOCKET_IFNAME=chosen.interface, NCCL_SOCKET_IFNAME="=" + chosen.interface)
    if chosen.devices:
        more["NCCL_IB_HCA"] = "=" + chosen.devices
    return {**os.environ, **more}


def start_role(chosen: argparse.Namespace, role: str, local: int) -> subprocess.Popen[str]:
    spec: Dict[str, Any] = {**vars(chosen), "role": role, "local": local, "rank": chosen.node * chosen.ranks + local}
    spec["world"] = chosen.nodes * chosen.ranks
    del spec["worker"]
    argv = [chosen.python, "-I", "-c", chosen.worker, json.dumps(spec)]
    return start(argv, environment=environment(chosen))


def first_failure(bad: dict[str, int]) -> int:
    """Return the exit code of the first to fail, 0 where none has; print which signal ended it, if one did."""
    for name, code in bad.items():
        if code < 0:
            print(f"# {name} was ended by signal {-code}", flush=True)
        return code
    return 0


def outcome(children: dict[str, subprocess.Popen[str]], limit: float) -> int:
    """Wait for all; return the exit code of the first to fail (the watcher before ranks), or `NO_END`."""
    until, first = time.monotonic() + limit, 0
    while True:
        codes = {name: child.poll() for name, child in children.items()}
        bad = {name: code for name, code in codes.items() if code}
        first = first or first_failure(bad)
        if bad.get("The watcher") or None not in codes.values():
            break
        if bad:
            until = min(until, time.monotonic() + GRACE)
        if time.monotonic() > until:
            first = first or NO_END
            break
        time.sleep(0.05)
    end(children.values(), REAP)
    watcher = children.get("The watcher")
    return (watcher.poll() if watcher else None) or first


def main(argv: Sequence[str]) -> int:
    chosen = options(argv)
    if not os.access(chosen.python, os.X_OK):
        sys.stderr.write(f"there is no Python at {chosen.python}\n")
        return NO_PYTHON
    children = {"The watcher": start_role(chosen, "watch", 0)} if chosen.node == 0 else {}
    for local in range(chosen.ranks):
        children[f"Rank {chosen.node * chosen.ranks + local}"] = start_role(chosen, "rank", local)
    code = outcome(children, chosen.limit)
    if code == NO_END:
        print(f"# No end within {chosen.limit:g} s", flush=True)
    return code if code >= 0 else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
