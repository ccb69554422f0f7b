"""What a site says of its hosts' software, for checks to hold them to. It travels with the probes and comes back with
their answers, so that recorded evidence can be judged again without the site.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HostWishes:
    """Empty: the site says nothing of it.

    release     the OS release by its code name, such as jammy
    kernel      the kernel's release, as `uname -r` says it
    names       names that each name server of a host must have an address for
    gpu_image   an image, there on every host, in which all GPUs must be seen
    containers  names of the containers that must run on every host
    """

    release: str = ""
    kernel: str = ""
    names: tuple[str, ...] = ()
    gpu_image: str = ""
    containers: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """As the programs on the node read it."""
        return asdict(self)
