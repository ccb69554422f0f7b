"""gpudirect_rdma: adapters can read and write GPU memory, and nothing sends that traffic on a detour.

Three things: the kernel shares GPU memory (nvidia-peermem, or dma-buf of NVIDIA's open modules from Linux 5.12 on);
no switch above a GPU or adapter redirects traffic between them (PCIe Access Control Services); no IOMMU translates it.
Ports of switches only: what goes through a root port has left the switch in any case.

Sources: NCCL's user guide, troubleshooting (docs.nvidia.com/deeplearning/nccl); GPUDirect RDMA with dma-buf
(docs.nvidia.com/datacenter/cloud-native/gpu-operator); Linux, Documentation/ABI/testing/sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.linux import parse_modules
from clusterctl.formats.host.pci import PciDevice, PciPort, PciTree
from clusterctl_burnin.check import Area, Check, Expected, inconclusive
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.lspci import LSPCI, PRIVILEGE, absent, endpoints, read_tree

MODULES = Probe("lsmod", ("lsmod",))
KERNEL = Probe("gpu_sharing", ("gpu-sharing",))
"""The kernel's release, the driver's modules for it, and how each IOMMU group translates."""
_NAME = "gpudirect_rdma"
_DMA_BUF_SINCE = (5, 12)
_RELEASE = re.compile(r"^kernel (\d+)\.(\d+)", re.MULTILINE)
_GROUP = re.compile(r"^/sys/kernel/iommu_groups/(\d+)/type (\S+)$", re.MULTILINE)
_ACS = "run systemctl restart clusterctl-pcie-acs-off on the node (role gpudirect_rdma), or switch ACS off in the BIOS"
_IOMMU = "boot with iommu=pt on the kernel's command line (role gpudirect_rdma), or switch the IOMMU off in the BIOS"
_VERSION = "read /proc/driver/nvidia/version on the node"
_SHARE = "load nvidia-peermem, or install NVIDIA's open kernel modules (roles gpudirect_rdma, nvidia_driver)"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.sku.gpu_count or not expected.sku.hca_count:
        yield not_applicable(_NAME, "the SKU has no GPU, or no adapter")
        return
    kernel_text = readings.text(KERNEL)
    tree = read_tree(readings)
    found = [
        *absent(_NAME, tree, expected),
        *_handed_out(readings, kernel_text),
        *_redirected(tree, expected),
        *_translated(tree, kernel_text, expected),
    ]
    yield from found
    if not found:
        yield passed(_NAME, "adapters reach GPU memory directly")


def _handed_out(readings: Readings, kernel_text: str) -> Iterator[Finding]:
    modules = parse_modules(readings.text(MODULES))
    release = _RELEASE.search(kernel_text)
    if release is None:
        raise ParseError("it does not name the kernel's release", where=KERNEL.name)
    if "nvidia" not in modules:
        cause, remedy = (
            "the NVIDIA driver's kernel module is not loaded",
            ("read dmesg on the node, then configure the node again"),
        )
        yield Finding(check=_NAME, verdict=Verdict.FAIL, code=Code.DRIVER_NOT_LOADED, cause=cause, remedy=remedy)
    elif "nvidia_peermem" not in modules and "nvidia_peer_memory" not in modules:
        if "NVRM version:" not in kernel_text:
            raise UnmeasuredError("the driver does not report its kernel modules", remedy=_VERSION)
        recent = (int(release[1]), int(release[2])) >= _DMA_BUF_SINCE
        if "Open Kernel Module" not in kernel_text or not recent:
            why = (
                "the driver's modules are not the open ones"
                if recent
                else f"Linux {release[1]}.{release[2]} is too old"
            )
            cause = f"adapters cannot reach GPU memory: nvidia-peermem is not loaded, and for dma-buf {why}"
            yield Finding(
                check=_NAME, verdict=Verdict.FAIL, code=Code.GPU_MEMORY_NOT_SHARED, cause=cause, remedy=_SHARE
            )


def _redirected(tree: PciTree, expected: Expected) -> Iterator[Finding]:
    """Yield one finding for all ports: ACS was switched on everywhere, or no service switched it off."""
    above = {bridge.address: bridge for _, device in endpoints(tree, expected) for bridge in tree.above(device)}
    unknown = [address for address, bridge in above.items() if bridge.port is None]
    if unknown:
        error = UnmeasuredError(f"lspci does not show what {', '.join(unknown)} is", remedy=PRIVILEGE)
        yield inconclusive(_NAME, error)
    ports = [bridge for bridge in above.values() if bridge.port is PciPort.DOWNSTREAM and bridge.redirects]
    if ports:
        yield _acs_is_on(ports)


def _acs_is_on(ports: Sequence[PciDevice]) -> Finding:
    where = ", ".join(bridge.address for bridge in ports)
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.ACS_REDIRECTS,
        cause=f"{len(ports)} ports of PCIe switches above GPUs and adapters redirect traffic between them: {where}",
        measured=", ".join(sorted({flag for bridge in ports for flag in bridge.redirects or ()})),
        expected="none",
        remedy=_ACS,
    )


def _translated(tree: PciTree, kernel_text: str, expected: Expected) -> Iterator[Finding]:
    """Yield the translated devices. A device in no IOMMU group has no IOMMU before it."""
    types = {int(group): kind for group, kind in _GROUP.findall(kernel_text)}
    bad: dict[str, list[str]] = {}
    for subject, device in endpoints(tree, expected):
        if device.iommu_group is None:
            continue
        kind = types.get(device.iommu_group)
        if kind is None:
            error = UnmeasuredError(f"the kernel does not report the type of IOMMU group {device.iommu_group}")
            yield inconclusive(_NAME, error, subject)
        elif kind != "identity":
            bad.setdefault(kind, []).append(subject)
    for kind, subjects in bad.items():
        cause = f"the IOMMU translates what {', '.join(subjects)} read and write"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.IOMMU_TRANSLATES,
            cause=cause,
            measured=kind,
            expected="identity",
            remedy=_IOMMU,
        )


CHECK = Check(_NAME, (LSPCI, MODULES, KERNEL), _judge, area=Area.PCIE)
