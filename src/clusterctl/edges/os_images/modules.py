"""Which of a kernel's modules the deployer carries: those that reach a server's network ports and disks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

_VIRTUAL = ("virtio_pci", "virtio_net", "virtio_blk", "virtio_scsi", "virtio_rng", "e1000e", "e1000")
_DISKS = ("nvme", "ahci", "ata_piix", "sd_mod")
_FILES = (
    *("ext4", "crc32c_generic", "crc32c_intel", "crc32c_cryptoapi", "vfat"),
    *("nls_cp437", "nls_ascii", "nls_iso8859-1", "nls_utf8"),
)
_PORTS = (
    *("mlx5_core", "mlx4_core", "mlx4_en"),  # NVIDIA
    *("ixgbe", "ixgbevf", "i40e", "iavf", "ice", "igb", "igc", "idpf"),  # Intel
    *("bnxt_en", "bnx2x", "bnx2", "tg3"),  # Broadcom
    *("qede", "qed", "qlcnic", "cxgb4", "enic", "be2net", "sfc", "ionic", "atlantic", "r8169", "ena", "gve"),
    *("vmxnet3", "hv_netvsc"),
)
_CONTROLLERS = (
    *("vmd", "megaraid_sas", "mpt3sas", "mpi3mr", "smartpqi", "hpsa", "aacraid", "arcmsr", "pm80xx", "mvsas", "isci"),
    *("libahci_platform", "sata_nv", "sata_sil24", "sata_mv", "vmw_pvscsi", "hv_storvsc", "pci_hyperv"),
)
WANTED = (*_VIRTUAL, *_DISKS, *_FILES, *_PORTS, *_CONTROLLERS)


@dataclass(frozen=True, slots=True)
class Chosen:
    """`files`: below the kernel's module folder, as modules.dep writes them. `absent`: asked for, and neither a module
    of this kernel nor built in.
    """

    files: tuple[str, ...]
    absent: tuple[str, ...]


def choose(wanted: Iterable[str], dependencies: str, built_in: str) -> Chosen:
    """The modules `wanted` by name with all that they need. `dependencies` is the text of modules.dep, `built_in` that
    of modules.builtin.
    """
    needs = dict(_parse(dependencies))
    paths = {_name(path): path for path in needs}
    inside = {_name(path) for path in built_in.split()}
    asked = [name.replace("-", "_") for name in wanted]
    files: set[str] = set()
    for name in asked:
        if name in paths:
            _take(paths[name], needs, files)
    absent = tuple(name for name in asked if name not in paths and name not in inside)
    return Chosen(tuple(sorted(files)), absent)


def _take(path: str, needs: Mapping[str, tuple[str, ...]], files: set[str]) -> None:
    if path in files:
        return
    files.add(path)
    for needed in needs.get(path, ()):
        _take(needed, needs, files)


def _parse(dependencies: str) -> Iterable[tuple[str, tuple[str, ...]]]:
    for line in dependencies.splitlines():
        path, colon, needed = line.partition(":")
        if colon:
            yield path.strip(), tuple(needed.split())


def _name(path: str) -> str:
    """`kernel/fs/nls/nls_iso8859-1.ko.xz` is the module nls_iso8859_1."""
    return PurePosixPath(path).name.partition(".ko")[0].replace("-", "_")
