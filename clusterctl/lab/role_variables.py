"""What a lab's site says to the roles, and which packages its virtual machines can get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from clusterctl.lab.faces.apt import DRIVER_VERSION, ensure_repository, vendor_repository
from clusterctl.lab.faces.apt.closure import HOST_PACKAGES
from clusterctl.lab.faces.apt.repository import Contents
from clusterctl.lab.faces.maas.metal import read_boot_files
from clusterctl.lab.metal import BOOT_FOLDER
from clusterctl.lab.os_packages import package_status

MPI = ("openmpi-bin", "python3-mpi4py")
"""What starts the ranks of the stand-in of all_reduce_perf; hosts in namespaces have it in their image."""
SOFT_ROCE = ("ibverbs-providers", "perftest")
"""To be had, and installed by nobody but who wants to try RDMA in virtual machines."""


def metal_packages(image: str, say: Callable[[str], None]) -> Path:
    """The repositories for virtual machines that are installed with that image of the boot folder."""
    files = read_boot_files(BOOT_FOLDER, image)
    status = package_status(files.folder / files.image, files.sha256)
    return ensure_repository(status, say, contents=Contents((*HOST_PACKAGES, *MPI, *SOFT_ROCE)))


def host_variables(packages: Path, address: str) -> Mapping[str, object]:
    """What hosts in namespaces need that no role may presume: their repository; no kernel of their own, so no headers,
    and no settings that only a whole kernel has.
    """
    return {
        **_repositories(packages, address),
        "base_sysctl": {"net.core.somaxconn": 4096, "net.ipv4.tcp_mtu_probing": 1, "vm.zone_reclaim_mode": 0},
    }


def metal_variables(packages: Path, address: str) -> Mapping[str, object]:
    """Virtual machines have a whole kernel; the driver that they get is a stand-in, with no module to build or load."""
    return {**_repositories(packages, address), "base_extra_packages": list(MPI)}


def _repositories(packages: Path, address: str) -> Mapping[str, object]:
    url, key = vendor_repository("nvidia", packages, address)
    return {
        "nvidia_driver_version": DRIVER_VERSION,
        "nvidia_repository_url": url,
        "nvidia_repository_key": key,
        "nvidia_driver_kernel_headers": [],
    }
