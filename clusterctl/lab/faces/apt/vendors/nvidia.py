"""Stand-in packages for NVIDIA's repository: real names and dependencies, no driver inside.

Names as in NVIDIA's Driver Installation Guide (docs.nvidia.com/datacenter/tesla/driver-installation-guide): the
meta-package `nvidia-open` draws in the open kernel modules and the CUDA part of the driver, where nvidia-smi is.
"""

from __future__ import annotations

from clusterctl.lab.faces.apt.stand_in import StandIn

DRIVER_VERSION = "570.148.08"
"""What the lab's site asks for."""

NEWER_DRIVER_VERSION = "575.57.08"
"""Also there, as in a real repository: a role that does not pin its version would install this one."""

_NVIDIA_SMI = """\
#!/bin/sh
exec /usr/lib/clusterctl-lab/nvidia-smi "$@"
"""

_PERSISTENCE_DAEMON = """\
#!/bin/sh
exec sleep infinity
"""

_PERSISTENCE_UNIT = """\
[Unit]
Description=NVIDIA Persistence Daemon (stand-in of the rehearsal lab)

[Service]
ExecStart=/usr/bin/nvidia-persistenced

[Install]
WantedBy=multi-user.target
"""


def packages() -> tuple[StandIn, ...]:
    return (*_driver(DRIVER_VERSION), *_driver(NEWER_DRIVER_VERSION))


def _driver(version: str) -> tuple[StandIn, ...]:
    """One driver version: the upstream version with NVIDIA's packaging revision."""
    package_version = f"{version}-1"
    parts = ("nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced")
    return (
        StandIn("nvidia-open", package_version, tuple(f"{part} (>= {package_version})" for part in parts)),
        StandIn(
            "nvidia-driver-cuda",
            package_version,
            (f"nvidia-kernel-open-dkms (= {package_version})",),
            {
                "/usr/bin/nvidia-smi": (_NVIDIA_SMI, 0o755),
                "/usr/lib/clusterctl-lab/driver-version": (f"{version}\n", 0o644),
            },
        ),
        StandIn("nvidia-kernel-open-dkms", package_version),
        StandIn(
            "nvidia-persistenced",
            package_version,
            (),
            {
                "/usr/bin/nvidia-persistenced": (_PERSISTENCE_DAEMON, 0o755),
                "/usr/lib/systemd/system/nvidia-persistenced.service": (_PERSISTENCE_UNIT, 0o644),
            },
        ),
    )
