"""docker: a stand-in that can say how its daemon is, and that no container runs; it cannot start any.

`docker info` and `docker ps` answer as Docker's command does: with a daemon from the fields of the Engine API's
`GET /info`, without one with its complaint on standard error and, in JSON, in `ServerErrors` (docker/cli pull request
3594). The daemon is `docker.service` of the same lab, which does nothing but run.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clusterctl.lab.faces.tools.host.facts import load

RUNNING = Path(os.environ.get("CLUSTERCTL_LAB_DOCKER", "/run/clusterctl-lab-docker"))
"""The service's runtime folder: systemd makes it when the service starts and removes it when it ends."""
VERSION = "26.1.5"
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
AS_JSON = ("{{json .}}", "json")
PS = "CONTAINER ID   IMAGE     COMMAND   CREATED   STATUS    PORTS     NAMES\n"


def main(argv: Sequence[str]) -> int:
    runs = RUNNING.is_dir()
    match list(argv):
        case ["info", "--format" | "-f", form] if form in AS_JSON:
            if not runs:
                sys.stderr.write(f"{NO_DAEMON}\n")
            sys.stdout.write(f"{json.dumps(_info(runs))}\n")
            return 0
        case ["ps", *_]:
            (sys.stdout if runs else sys.stderr).write(PS if runs else f"{NO_DAEMON}\n")
            return 0 if runs else 1
    sys.stderr.write("docker: the rehearsal lab's stand-in knows `info --format '{{json .}}'` and `ps`\n")
    return 1


def _info(runs: bool) -> dict[str, Any]:
    client = {"Debug": False, "Version": VERSION, "Context": "default", "Plugins": [], "Warnings": None}
    counts = dict.fromkeys(("Containers", "ContainersRunning", "ContainersPaused", "ContainersStopped", "Images"), 0)
    if not runs:
        return {"ID": "", **counts, "ServerErrors": [NO_DAEMON], "ClientInfo": client}
    facts = load()
    return {
        "ID": f"LAB:{facts.serial}",
        **counts,
        "Driver": "overlay2",
        "LoggingDriver": "json-file",
        "CgroupDriver": "systemd",
        "KernelVersion": platform.release(),
        "OSType": "linux",
        "Architecture": platform.machine(),
        "MemTotal": facts.memory_gib << 30,
        "DockerRootDir": "/var/lib/docker",
        "Name": facts.name,
        "ServerVersion": VERSION,
        "Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}},
        "DefaultRuntime": "runc",
        "Warnings": None,
        "ClientInfo": client,
    }
