"""The fabric manager and NSCQ: named after the driver's branch before 580 (NVIDIA/gpu-driver-container)."""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn
from clusterctl_lab.emulators.apt.vendors.nvidia.driver import VERSIONS

_PROGRAM = """\
#!/bin/sh
case "$1" in
    --version | -v) echo "Fabric Manager version is : {version}" ;;
    *) exec sleep infinity ;;
esac
"""

_UNIT = """\
[Unit]
Description=NVIDIA fabric manager (stand-in of the rehearsal lab)

[Service]
ExecStart=/usr/bin/nv-fabricmanager

[Install]
WantedBy=multi-user.target
"""


def packages() -> tuple[StandIn, ...]:
    return tuple(package for version in VERSIONS for package in _of(version))


def _of(version: str) -> tuple[StandIn, ...]:
    branch = version.partition(".")[0]
    files = {
        "/usr/bin/nv-fabricmanager": (_PROGRAM.format(version=version), 0o755),
        "/usr/lib/systemd/system/nvidia-fabricmanager.service": (_UNIT, 0o644),
    }
    return (
        StandIn(f"nvidia-fabricmanager-{branch}", f"{version}-1", (), files),
        StandIn(f"libnvidia-nscq-{branch}", f"{version}-1"),
    )
