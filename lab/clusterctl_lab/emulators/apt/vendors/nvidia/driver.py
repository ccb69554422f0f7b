"""The driver, open and proprietary: meta-packages, the part with nvidia-smi, the modules, the persistence daemon.

Names as in NVIDIA's Driver Installation Guide (docs.nvidia.com/datacenter/tesla/driver-installation-guide): the
meta-packages `nvidia-open` and `cuda-drivers` depend on the kernel modules and on the CUDA part of the driver, which
contains nvidia-smi. DKMS builds nothing in the lab: a package's script writes the module that DKMS would build.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from clusterctl_lab.emulators.apt.emulated_package import StandIn

_RELOCATABLE, _X86_64, _STRING_TABLE, _PROGRAM_BITS, _ALLOCATED = 1, 62, 3, 1, 2
_HEADER_BYTES, _SECTION_BYTES = 64, 64
_NAMES = b"\0.modinfo\0.shstrtab\0"


def module_file(fields: Mapping[str, str]) -> bytes:
    """Return the file's content; `fields` are those that `modinfo` prints, such as `version`."""
    info = b"".join(f"{key}={value}".encode() + b"\0" for key, value in fields.items())
    sections = _HEADER_BYTES + len(info) + len(_NAMES)
    padding = -sections % 8
    identity = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)  # 64 bits, little-endian, version 1
    header = identity + struct.pack(
        "<HHIQQQIHHHHHH",
        *(_RELOCATABLE, _X86_64, 1, 0, 0, sections + padding, 0),
        *(_HEADER_BYTES, 0, 0, _SECTION_BYTES, 3, 2),
    )
    table = (
        _section(0, 0, 0, 0, 0)
        + _section(_NAMES.index(b".modinfo"), _PROGRAM_BITS, _ALLOCATED, _HEADER_BYTES, len(info))
        + _section(_NAMES.index(b".shstrtab"), _STRING_TABLE, 0, _HEADER_BYTES + len(info), len(_NAMES))
    )
    return header + info + _NAMES + bytes(padding) + table


def _section(name: int, kind: int, flags: int, offset: int, size: int) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, flags, 0, offset, size, 0, 0, 1, 0)


def module_package_script(name: str, fields: Mapping[str, str]) -> str:
    """Return a `postinst` that puts the module below the running kernel's modules, as DKMS does, and runs depmod."""
    octal = "".join(f"\\{byte:03o}" for byte in module_file(fields))
    return f"""\
#!/bin/sh
set -e
[ "$1" = configure ] || exit 0
folder="/lib/modules/$(uname -r)/updates/dkms"
mkdir -p "$folder"
printf '{octal}' > "$folder/{name}.ko"
depmod --all
"""


DRIVER_VERSION = "570.148.08"
"""The version that the lab's site requests."""

NEWER_DRIVER_VERSION = "575.57.08"
"""A newer version, as in a real repository: a role that does not pin its version would install it."""

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
