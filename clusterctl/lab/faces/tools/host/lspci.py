"""lspci: `-D -vv -d VENDOR:`, the adapters (15b3) and GPUs (10de) with their links; `-n -d 10de::0680`, the NVSwitches;
`-D -n`, numbers, bridges too.

As recorded with lspci 3.7 on 8 x H100 with ConnectX-7 (leptonai/gpud, Apache-2.0), in the lines that tell of the link.
Of a device that has left the bus all registers read as ones: revision ff and no header type (lspci.c of pciutils).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl.lab.faces.tools.host.bridges import bridges
from clusterctl.lab.faces.tools.host.facts import Facts, load

GONE = "\t!!! Unknown header type 7f"
NVIDIA, MELLANOX = "10de:", "15b3:"
NVSWITCHES = ["-n", "-d", "10de::0680"]
SWITCH_BUSES = (0x07, 0x08, 0x09, 0x0A)
"""As in NVIDIA's HGX H100 with eight GPUs, which has four."""


def main(argv: Sequence[str]) -> int:
    if list(argv) == NVSWITCHES:
        buses = SWITCH_BUSES if load().gpus else ()
        sys.stdout.write("".join(f"{bus:02x}:00.0 0680: 10de:22a3 (rev a1)\n" for bus in buses))
        return 0
    words = [word for word in argv if word not in ("-D", "-n", "-v", "-vv", "-vvv")]
    if words not in ([], ["-d", NVIDIA], ["-d", MELLANOX]):
        sys.stderr.write("the lab's lspci knows -D, -vv and -d 10de: or 15b3:, and -n -d 10de::0680\n")
        return 1
    vendor = words[1] if words else ""
    if "-n" in argv:
        sys.stdout.write("".join(f"{line}\n" for line in sorted(_numbers(load(), vendor))))
        return 0
    for line in sorted(_devices(load(), vendor)):
        sys.stdout.write(f"{line}\n" if "-vv" in argv else f"{line.splitlines()[0]}\n")
    return 0


def _numbers(facts: Facts, vendor: str) -> list[str]:
    """Class, vendor and device: a ConnectX-7, an H100 SXM5, a port of a PCIe switch."""
    found = [f"{hca.pci} 0207: 15b3:1021" for hca in facts.hcas if vendor in ("", MELLANOX)]
    found += [f"{gpu.address} 0302: 10de:2330 (rev a1)" for gpu in facts.gpus if vendor in ("", NVIDIA) and gpu.on_bus]
    return found + ([f"{bridge} 0604: 1000:c030 (rev b0)" for bridge in bridges()] if not vendor else [])


def _devices(facts: Facts, vendor: str) -> list[str]:
    found = []
    if vendor in ("", MELLANOX):
        name = "Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]"
        found += [_device(hca.pci, name, hca.pcie_width) for hca in facts.hcas]
    if vendor in ("", NVIDIA):
        name = "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB]"
        found += [_device(gpu.address, f"{name} (rev a1)", gpu.pcie_width) for gpu in facts.gpus if gpu.on_bus]
        found += [f"{gpu.address} {name} (rev ff) (prog-if ff)\n{GONE}\n" for gpu in facts.gpus if not gpu.on_bus]
    return found


def _device(address: str, name: str, width: int) -> str:
    state = "ok" if width == 16 else "downgraded"
    return (
        f"{address} {name}\n\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n"
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
        f"\t\tLnkSta:\tSpeed 32GT/s (ok), Width x{width} ({state})\n"
    )
