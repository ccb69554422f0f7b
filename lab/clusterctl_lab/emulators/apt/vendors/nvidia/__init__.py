"""Stand-in packages for NVIDIA's repository: real names, versions and dependencies; no content drives hardware."""

from __future__ import annotations

from clusterctl_lab.emulators.apt.emulated_package import StandIn
from clusterctl_lab.emulators.apt.vendors.nvidia import container_toolkit, cuda, dcgm, driver, fabric_manager
from clusterctl_lab.emulators.apt.vendors.nvidia.driver import DRIVER_VERSION, NEWER_DRIVER_VERSION

__all__ = ["DRIVER_VERSION", "NEWER_DRIVER_VERSION", "packages"]


def packages() -> tuple[StandIn, ...]:
    return (
        *driver.packages(),
        *fabric_manager.packages(),
        *dcgm.packages(),
        *container_toolkit.packages(),
        *cuda.packages(),
    )
