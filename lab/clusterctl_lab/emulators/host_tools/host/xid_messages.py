"""The lines that NVIDIA's driver writes into the kernel log when a GPU fails: one per Xid, with the driver's text.

119 and the two lines that introduce the GPU are as recorded on an XE9680 (leptonai/gpud, Apache-2.0); the others follow
NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors) and, for 79, NVIDIA/open-gpu-kernel-modules#507.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.host_tools.host.facts import Gpu

UNKNOWN = "pid='<unknown>', name=<unknown>, "
TEXTS = {
    48: f"{UNKNOWN}An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer.",
    64: f"{UNKNOWN}Row Remapper: Failed to remap row, no spare row is left in its bank.",
    74: f"{UNKNOWN}NVLink: fatal error detected on link 2(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
    79: f"{UNKNOWN}GPU has fallen off the bus.",
    94: "pid=4242, name=python3, Contained: SM (0x1). RST: No, D-RST: Yes",
    95: f"{UNKNOWN}Uncontained: LTC TAG (0x2,0x0). RST: Yes, D-RST: No",
    119: "pid=4242, name=nvidia-smi, Timeout after 6s of waiting for RPC response from GPU{index} GSP! "
    "Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x4).",
}


def messages(gpu: Gpu) -> Iterator[str]:
    """All lines about one GPU; none where it is well."""
    codes = list(gpu.xids)
    if gpu.uncorrectable_ecc and 48 not in codes:
        codes.insert(0, 48)
    if gpu.shows("xid"):
        codes.append(119)
    if not gpu.on_bus and 79 not in codes:
        codes.append(79)
    if not codes:
        return
    short = gpu.address.rpartition(".")[0]
    yield f"NVRM: GPU at PCI:{short}: {gpu.uuid}"
    yield f"NVRM: GPU Board Serial Number: {gpu.serial}"
    for code in codes:
        yield f"NVRM: Xid (PCI:{short}): {code}, {TEXTS[code].format(index=gpu.index)}"
    if not gpu.on_bus:
        yield f"NVRM: GPU {gpu.address}: GPU has fallen off the bus."
