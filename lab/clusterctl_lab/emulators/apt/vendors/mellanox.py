"""Stand-in packages for NVIDIA's DOCA repository: real names, no driver inside.

Names as in NVIDIA's documents: the meta-package `doca-ofed` (docs.nvidia.com/doca/sdk, DOCA installation guide for
Linux, and MLNX_OFED to DOCA-OFED transition guide) depends on the kernel modules for DKMS, the service `openibd` and
`ofed_info`.
"""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn

DOCA_VERSION = "3.2.1"
"""The version that the lab's site requests."""

OFED_VERSION = "25.10-1.7.1"
"""The OFED inside it."""

_OFED_INFO = f"""\
#!/bin/sh
[ "$1" = -s ] || {{ echo "the lab's ofed_info knows -s" >&2; exit 1; }}
echo "OFED-internal-{OFED_VERSION}:"
"""

_OPENIBD = """\
[Unit]
Description=openibd - configure Mellanox devices (stand-in of the rehearsal lab)

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true

[Install]
WantedBy=sysinit.target
"""


def packages() -> tuple[StandIn, ...]:
    doca, ofed = f"{DOCA_VERSION}-045000", f"{OFED_VERSION}.1"
    return (
        StandIn("doca-ofed", doca, ("mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel-utils", "ofed-scripts")),
        StandIn("mlnx-ofed-kernel-dkms", ofed),
        StandIn("mlnx-ofed-kernel-utils", ofed, (), {"/usr/lib/systemd/system/openibd.service": (_OPENIBD, 0o644)}),
        StandIn("ofed-scripts", ofed, (), {"/usr/bin/ofed_info": (_OFED_INFO, 0o755)}),
    )
