"""The packages of CUDA and of NCCL, where the package revision names the CUDA version.

`nvcc` copies its source and makes it executable: the lab's archive of nccl-tests contains scripts.
"""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn

CUDA = "12.8"
NCCL_VERSION = "2.26.2"
NCCL_VERSIONS = (NCCL_VERSION, "2.27.3")
"""The second is newer than the version that the tests request, as in a real repository."""

_NVCC = """\
#!/bin/sh
set -e
[ "$1" = -o ] && [ $# = 3 ] || { echo "the lab's nvcc knows -o PROGRAM SOURCE" >&2; exit 2; }
install -m 755 "$3" "$2"
"""


def packages() -> tuple[StandIn, ...]:
    dashed = CUDA.replace(".", "-")
    compiler = {f"/usr/local/cuda-{CUDA}/bin/nvcc": (_NVCC, 0o755)}
    return (
        StandIn(f"cuda-minimal-build-{dashed}", f"{CUDA}.1-1", (), compiler),
        StandIn(f"cuda-toolkit-{dashed}", f"{CUDA}.1-1", (f"cuda-minimal-build-{dashed}",)),
        *(package for version in NCCL_VERSIONS for package in _nccl(f"{version}-1+cuda{CUDA}")),
    )


def _nccl(version: str) -> tuple[StandIn, ...]:
    return StandIn("libnccl2", version), StandIn("libnccl-dev", version, (f"libnccl2 (= {version})",))
