"""The driver, open and proprietary: meta-packages, the part with nvidia-smi, the modules, the persistence daemon.

Names as in NVIDIA's Driver Installation Guide (docs.nvidia.com/datacenter/tesla/driver-installation-guide): the
meta-packages `nvidia-open` and `cuda-drivers` draw in the kernel modules and the CUDA part of the driver, where
nvidia-smi is. DKMS builds nothing here: a package's script lays down what it would have built.
"""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn
from clusterctl_lab.emulators.apt.module_file import module_package_script

DRIVER_VERSION = "570.148.08"
"""What the lab's site asks for."""

NEWER_DRIVER_VERSION = "575.57.08"
"""Also there, as in a real repository: a role that does not pin its version would install this one."""

VERSIONS = (DRIVER_VERSION, NEWER_DRIVER_VERSION)

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

_OPEN, _PROPRIETARY = "nvidia-kernel-open-dkms", "nvidia-kernel-dkms"
_LICENSES = {_OPEN: "Dual MIT/GPL", _PROPRIETARY: "NVIDIA"}


def packages() -> tuple[StandIn, ...]:
    return tuple(package for version in VERSIONS for package in _driver(version))


def _driver(version: str) -> tuple[StandIn, ...]:
    """One driver version: the upstream version with NVIDIA's packaging revision."""
    package_version = f"{version}-1"
    return (
        _meta("nvidia-open", _OPEN, package_version),
        _meta("cuda-drivers", _PROPRIETARY, package_version),
        StandIn(
            "nvidia-driver-cuda",
            package_version,
            (f"{_OPEN} (= {package_version}) | {_PROPRIETARY} (= {package_version})",),
            {
                "/usr/bin/nvidia-smi": (_NVIDIA_SMI, 0o755),
                "/usr/lib/clusterctl-lab/driver-version": (f"{version}\n", 0o644),
            },
        ),
        *(_modules(name, license_, version) for name, license_ in _LICENSES.items()),
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


def _meta(name: str, modules: str, version: str) -> StandIn:
    parts = ("nvidia-driver-cuda", modules, "nvidia-persistenced")
    return StandIn(name, version, tuple(f"{part} (>= {version})" for part in parts))


def _modules(name: str, license_: str, version: str) -> StandIn:
    fields = {"version": version, "license": license_, "description": "stand-in of the clusterctl rehearsal lab"}
    return StandIn(name, f"{version}-1", ("kmod",), {}, module_package_script("nvidia", fields))
