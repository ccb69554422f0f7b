"""lspci: `-D -vv -d VENDOR:`, the adapters (15b3) and GPUs (10de) with their links; `-D -vvv`, the bridges too; `-n -d
10de::0680`, the NVSwitches; `-D -n`, numbers, bridges too.

As recorded with lspci 3.7 on 8 x H100 with ConnectX-7 (leptonai/gpud, Apache-2.0), in the lines about the link. All
registers of a device that has left the bus read as ones: revision ff and no header type (lspci.c of pciutils).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.bridges import LANES, Bridge, bridges
from clusterctl_lab.emulators.host_tools.host.facts import Facts, load

GONE = "\t!!! Unknown header type 7f"
NVIDIA, MELLANOX = "10de:", "15b3:"
NVSWITCHES = ["-n", "-d", "10de::0680"]
ACS_FLAGS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
"""Bits of the ACS control register, from the lowest (PCI Express specification; lspci's ls-ecaps.c)."""
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
        sys.stdout.write(f"{line}\n" if "-vv" in argv or "-vvv" in argv else f"{line.splitlines()[0]}\n")
    return 0


def _numbers(facts: Facts, vendor: str) -> list[str]:
    """Class, vendor and device: a ConnectX-7, an H100 SXM5, a port of a PCIe switch."""
    found = [f"{hca.pci} 0207: 15b3:1021" for hca in facts.hcas if vendor in ("", MELLANOX)]
    found += [f"{gpu.address} 0302: 10de:2330 (rev a1)" for gpu in facts.gpus if vendor in ("", NVIDIA) and gpu.on_bus]
    return found + ([f"{bridge.address} 0604: 1000:c030 (rev b0)" for bridge in bridges()] if not vendor else [])


def _devices(facts: Facts, vendor: str) -> list[str]:
    found = [] if vendor else [_bridge(bridge) for bridge in bridges()]
    if vendor in ("", MELLANOX):
        name = "Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]"
        found += [_device(hca.pci, name, hca.pcie_width) for hca in facts.hcas]
    if vendor in ("", NVIDIA):
        name = "3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB]"
        found += [_device(gpu.address, f"{name} (rev a1)", gpu.pcie_width) for gpu in facts.gpus if gpu.on_bus]
        found += [f"{gpu.address} {name} (rev ff) (prog-if ff)\n{GONE}\n" for gpu in facts.gpus if not gpu.on_bus]
    return found


def _device(address: str, name: str, width: int) -> str:
    head = f"{address} {name}\n\tIOMMU group: {iommu_group(address)}\n"
    return f"{head}\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n{_link(width)}"


def iommu_group(address: str) -> int:
    """Return the IOMMU group: each GPU and adapter is alone on its bus, and has its own group."""
    return int(address.split(":")[1], 16)


def _bridge(bridge: Bridge) -> str:
    """Return the bridge's lines about link, buses and ACS."""
    name = "PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])"
    buses = f"secondary={bridge.behind:02x}, subordinate={bridge.last:02x}, sec-latency=0"
    text = f"{bridge.address} {name}\n\tBus: primary={bridge.address[5:7]}, {buses}\n"
    text += f"\tCapabilities: [68] Express (v2) {bridge.port}, MSI 00\n{_link(bridge.lanes)}"
    if bridge.control is not None:
        bits = int(bridge.control, 16)
        flags = " ".join(f"{flag}{'+' if bits >> at & 1 else '-'}" for at, flag in enumerate(ACS_FLAGS))
        text += f"\tCapabilities: [170 v1] Access Control Services\n\t\tACSCtl:\t{flags}\n"
    return text


def _link(width: int) -> str:
    state = "ok" if width == LANES else "downgraded"
    return (
        "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
        f"\t\tLnkSta:\tSpeed 32GT/s (ok), Width x{width} ({state})\n"
    )
