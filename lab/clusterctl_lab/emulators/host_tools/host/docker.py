"""docker: a stand-in that reports the state of its daemon and of the host's one container; it cannot start any.

`docker info` and `docker ps` answer as Docker's command does: with a daemon from the fields of the Engine API's `GET
/info`, without one with its error on standard error and, in JSON, in `ServerErrors` (docker/cli pull request 3594). The
daemon is `docker.service` of the same lab, which only runs. Of all container commands only `nvidia-smi -L` is answered,
and its image exists: as in a container with GPUs, or as by a daemon without NVIDIA's runtime (NVIDIA/nvidia-docker
issue 1470).

Where Docker itself is installed (the role docker on a virtual machine) Docker answers everything else: there is no GPU.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clusterctl_lab.emulators.host_tools.host.facts import load
from clusterctl_lab.emulators.host_tools.host.zpool import MOUNTPOINT

RUNNING = Path(os.environ.get("CLUSTERCTL_LAB_DOCKER", "/run/clusterctl-lab-docker"))
"""The service's runtime folder: systemd makes it when the service starts and removes it when it ends."""
PACKAGED = Path(os.environ.get("CLUSTERCTL_LAB_PACKAGED_DOCKER", "/usr/bin/docker"))
VERSION = "26.1.5"
NO_DAEMON = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
AS_JSON = ("{{json .}}", "json")
PS = "CONTAINER ID   IMAGE     COMMAND   CREATED   STATUS    PORTS     NAMES\n"
NO_GPUS = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].'


def main(argv: Sequence[str]) -> int:
    match list(argv):
        case ["run", *_, "--gpus", "all", _, "nvidia-smi", "-L"]:
            return _nvidia_smi(_daemon_runs())
        case ["image", "inspect", _]:
            return 0 if _daemon_runs() else 1
    if PACKAGED.exists():
        os.execv(PACKAGED, [str(PACKAGED), *argv])  # noqa: S606 — another program's arguments, no shell
    return _stand_in(argv, runs=RUNNING.is_dir())


def _daemon_runs() -> bool:
    return _packaged_runs() if PACKAGED.exists() else RUNNING.is_dir()


def _packaged_runs() -> bool:
    silent = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    asked = os.posix_spawn(PACKAGED, [str(PACKAGED), "ps", "--quiet"], os.environ, file_actions=silent)
    return os.waitpid(asked, 0)[1] == 0


def _stand_in(argv: Sequence[str], *, runs: bool) -> int:
    match list(argv):
        case ["info", "--format" | "-f", form] if form in AS_JSON:
            if not runs:
                sys.stderr.write(f"{NO_DAEMON}\n")
            sys.stdout.write(f"{json.dumps(_info(runs))}\n")
            return 0
        case ["info", "--format", "{{.DockerRootDir}}"] if runs:
            sys.stdout.write(f"{_root()}\n")
            return 0
        case ["ps", "--all", "--no-trunc", "--format", form] if form in AS_JSON and runs:
            sys.stdout.write("".join(f"{json.dumps(row)}\n" for row in _containers()))
            return 0
        case ["ps", *_]:
            (sys.stdout if runs else sys.stderr).write(PS if runs else f"{NO_DAEMON}\n")
            return 0 if runs else 1
    sys.stderr.write("docker: the rehearsal lab's stand-in knows info as JSON, ps, and run … nvidia-smi -L\n")
    return 1


def _root() -> str:
    """Return where Docker keeps its data: on the host's pool, where it has one."""
    return f"{MOUNTPOINT}/docker" if load().pool_degraded else "/var/lib/docker"


def _containers() -> list[dict[str, str]]:
    return [{"Names": name, "State": "running", "Status": status} for name, status in load().containers.items()]


def _nvidia_smi(runs: bool) -> int:
    facts = load()
    if not runs or not facts.container_gpus:
        sys.stderr.write(f"{NO_GPUS if runs else f'docker: {NO_DAEMON}'}\n")
        return 125
    on_bus = [gpu for gpu in facts.gpus if gpu.on_bus]
    sys.stdout.write("".join(f"GPU {at}: {gpu.model} (UUID: {gpu.uuid})\n" for at, gpu in enumerate(on_bus)))
    return 0


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
        "DockerRootDir": _root(),
        "Name": facts.name,
        "ServerVersion": VERSION,
        "Runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}},
        "DefaultRuntime": "runc",
        "Warnings": None,
        "ClientInfo": client,
    }
