"""What a site requires of its hosts' software.

The requirements travel with the probes and come back with their output, so that recorded evidence can be judged again
without the site.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class StorageSource:
    """What the load `storage_read` reads: a URL, which may be signed and is then a secret, or else a file's path.

    gbps  the least rate of a node in Gb/s (10**9 bits)
    """

    url: str = field(default="", repr=False)
    path: str = ""
    gbps: float = 0.0


NO_STORAGE = StorageSource()


@dataclass(frozen=True, slots=True)
class HostRequirements:
    """An empty field requires nothing.

    release     the OS release by its code name, such as jammy
    kernel      the kernel's release, as `uname -r` prints it
    names       names for which each name server of a host must have an address
    gpu_image   a container image, present on every host, in which all GPUs must be visible
    containers  names of the containers that must run on every host
    ofed        the release of NVIDIA's OFED, or `inbox` for the distribution's RDMA drivers
    dcgm_exporter  the URL of dcgm-exporter's metrics, as a host reaches its own
    storage     what `storage_read` reads; only a burn-in names it
    """

    release: str = ""
    kernel: str = ""
    names: tuple[str, ...] = ()
    gpu_image: str = ""
    containers: tuple[str, ...] = ()
    ofed: str = ""
    dcgm_exporter: str = ""
    storage: StorageSource = NO_STORAGE

    def without_storage(self) -> HostRequirements:
        """Return the same without the storage, whose URL may be a secret: for all sessions but that of its load."""
        return replace(self, storage=NO_STORAGE)

    def data(self) -> dict[str, Any]:
        """Return the requirements as the programs on the node read them."""
        return asdict(self)
