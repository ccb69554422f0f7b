"""What the PCIe checks share: one `lspci -D -vvv`, the GPUs and adapters in it and what lies above them."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding
from clusterctl.fleet.hardware.sku import Sku, adapter_family
from clusterctl.formats.host.pci import PciDevice, PciTree, parse_pci_tree
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import missing

PCIE_WIDTH_MIN = LimitKey("pcie_width_min", "lanes")
PCIE_SPEED_MIN = LimitKey("pcie_speed_min", "GT/s")

LSPCI = Probe("lspci", ("lspci", "-D", "-vvv"), timeout=30, max_bytes=8 * 1024 * 1024, role="base")
"""A server of eight GPUs has five hundred functions, in 1 MB of text."""
PRIVILEGE = "let the probes run with sudo: lspci needs it to see links and Access Control Services"


def family(sku: Sku) -> str:
    """Return what the name of the SKU's adapters contains in lspci, in lower case: lspci prints the family only."""
    return adapter_family(sku.hca_model).lower()


def read_tree(readings: Readings) -> PciTree:
    """Return the tree. Raise `UnmeasuredError` where lspci was not read to its end, or ran without privileges."""
    text = readings.text(LSPCI)
    if len(text) >= LSPCI.max_bytes:
        raise UnmeasuredError("lspci printed more than the probe reads", remedy="read lspci -vvv on the node")
    tree = parse_pci_tree(text)
    if all(device.port is None for device in tree.devices):
        raise UnmeasuredError("lspci shows no PCI Express capability of any device", remedy=PRIVILEGE)
    return tree


def gpus(tree: PciTree) -> tuple[PciDevice, ...]:
    return tuple(d for d in tree.devices if d.kind in ("3D controller", "VGA compatible controller") and _nvidia(d))


def adapters(tree: PciTree, sku: Sku) -> tuple[PciDevice, ...]:
    """Return those of the SKU's model: other Mellanox parts (storage, management) are not judged by its figures."""
    name = family(sku)
    return tuple(d for d in tree.devices if "controller" in d.kind and name in d.name.lower())


def endpoints(tree: PciTree, expected: Expected) -> tuple[tuple[str, PciDevice], ...]:
    """Return each GPU and adapter, with the word that findings name it by."""
    found = [(f"gpu {device.address}", device) for device in gpus(tree)]
    return (*found, *((f"hca {device.address}", device) for device in adapters(tree, expected.sku)))


def absent(check: str, tree: PciTree, expected: Expected) -> Iterator[Finding]:
    """Yield INCONCLUSIVE where lspci shows fewer GPUs or adapters than the SKU has."""
    yield from missing(check, len(gpus(tree)), expected.sku.gpu_count, "GPUs")
    yield from missing(check, len(adapters(tree, expected.sku)), expected.sku.hca_count, "adapters")


def _nvidia(device: PciDevice) -> bool:
    return "NVIDIA" in device.name
