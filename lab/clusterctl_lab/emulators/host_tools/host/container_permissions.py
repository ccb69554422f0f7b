"""container-permissions: modes of Docker's socket and data, and of the device files of GPUs and adapters.

Stands in for a burn-in program that would read the controller's own files. The modes of the adapters' files are those
of a host with rdma-core (Mellanox/k8s-rdma-shared-dev-plugin, issue 98); those of GPUs are the driver's default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Facts, load

TOOLKIT = """\
#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true

[nvidia-container-cli]
environment = []
#no-cgroups = false
"""


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's container-permissions takes no arguments\n")
        return 2
    facts = load()
    docker = {
        "sockets": [_file("/run/docker.sock", 0o666 if facts.docker_open else 0o660, "docker")],
        "tcp": [],
        "tls_verify": False,
        "data": _file("/var/lib/docker", 0o710),
    }
    json.dump({"docker": docker, "toolkit": TOOLKIT, "devices": _devices(facts)}, sys.stdout)
    return 0


def _devices(facts: Facts) -> list[dict[str, object]]:
    gpus = [gpu for gpu in facts.gpus if gpu.on_bus]
    found = [_file(f"/dev/nvidia{number}", 0o666) for number in range(len(gpus))]
    found += [_file(path, 0o666) for path in ("/dev/nvidiactl", "/dev/nvidia-uvm")] if gpus else []
    found += [_file(f"/dev/infiniband/uverbs{number}", 0o666) for number in range(len(facts.hcas))]
    return found + [_file(f"/dev/infiniband/umad{number}", 0o600) for number in range(len(facts.hcas))]


def _file(path: str, mode: int, group: str = "root") -> dict[str, object]:
    return {"path": path, "mode": mode, "group": group, "acl": False}
