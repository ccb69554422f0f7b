"""Runs stand-in tools of one lab host in one process: argv lists as JSON on stdin, their output as JSON on stdout.

Started by `offline_kit`; the facts of the machine come by the environment, as for the tools themselves.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys

from clusterctl_burnin.node.programs import (
    clock_sync,
    container_gpus,
    containers,
    drive_smart,
    nvme_health,
    port_counters,
    transceivers,
)

REQUIREMENTS = json.loads(os.environ["CLUSTERCTL_REQUIREMENTS"])
PROGRAMS = frozenset(
    {"clock-sync", "container-gpus", "containers", "drive-smart", "nvme-health", "port-counters", "transceivers"}
)
HOST = "clusterctl_lab.emulators.host_tools.host"


def run(*argv: str, **_limits: float) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the stand-in that `argv[0]` names; none takes long enough to be held to limits."""
    tool = importlib.import_module(f"{HOST}.{argv[0].replace('-', '_')}")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = int(tool.main(argv[1:]))
    return code, out.getvalue(), err.getvalue()


def run_or_missing(*argv: str, seconds: float) -> tuple[int, str, str]:
    """As on a host without systemd: there is no stand-in for its tools."""
    return run(*argv, seconds=seconds) if argv[0] == "chronyc" else (127, "", f"{argv[0]}: No such file")


def ask(*argv: str) -> tuple[int, str]:
    code, out, err = run(*argv)
    return code, out + err


def answer(argv: list[str]) -> tuple[int, str, str]:
    """As the burn-in's bundle: some are programs of its own, all else is a tool."""
    if argv[0] not in PROGRAMS:
        return run(*argv)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if argv[0] == "port-counters":
            code = port_counters.main(float(argv[1]), ask)
        elif argv[0] == "container-gpus":
            code = container_gpus.main(REQUIREMENTS, 1.0, run)
        elif argv[0] == "containers":
            code = containers.main(REQUIREMENTS, run)
        elif argv[0] == "transceivers":
            code = transceivers.main(run, "mlxlink", map)  # standard output is one, so in turn
        elif argv[0] == "clock-sync":
            code = clock_sync.main(run_or_missing)
        else:
            program = nvme_health if argv[0] == "nvme-health" else drive_smart
            code = program.main(run, lambda look, names: {name: look(name) for name in names})
    return code, out.getvalue(), ""


json.dump([answer(argv) for argv in json.load(sys.stdin)], sys.stdout)
