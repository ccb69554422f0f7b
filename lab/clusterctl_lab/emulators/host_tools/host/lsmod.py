"""lsmod: the kernel modules of NVIDIA's driver and of the adapters, in the columns of kmod's lsmod.

Namespaces share the controller's kernel, whose modules are not this machine's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import driver_version, load

ADAPTER = (("mlx5_ib", 462848, ()), ("ib_uverbs", 167936, ("mlx5_ib",)), ("ib_core", 434176, ("ib_uverbs", "mlx5_ib")))
GPU = (
    ("nvidia_uvm", 2076672, ()),
    ("nvidia_peermem", 16384, ()),
    ("nvidia", 9760768, ("nvidia_uvm", "nvidia_peermem")),
)
WITHOUT_PEERMEM = (("nvidia_uvm", 2076672, ()), ("nvidia", 9760768, ("nvidia_uvm",)))


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("Usage: lsmod\n")
        return 1
    facts = load()
    modules = list(ADAPTER) if facts.hcas else []
    if facts.gpus and driver_version():
        modules += GPU if facts.peermem else WITHOUT_PEERMEM
    sys.stdout.write("Module                  Size  Used by\n")
    for name, size, users in modules:
        sys.stdout.write(f"{name:<19} {size:>8}  {len(users)} {','.join(users)}".rstrip() + "\n")
    return 0
