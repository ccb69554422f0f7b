"""What a lab's site says to the roles."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl_lab.emulators.apt import DRIVER_VERSION, vendor_repository
from clusterctl_lab.metal.packages import MPI


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
