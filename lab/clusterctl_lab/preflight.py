"""What a machine must have to carry a lab, and what a lab will change on it, reported before the change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.hosts import to_raise
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.image import CACHE
from clusterctl_lab.metal import MEMORY_MIB, check_metal
from clusterctl_lab.settings import LabSettings

TOOLS = {
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "tar": "tar",
    "mmdebstrap": "mmdebstrap",
    "dpkg-deb": "dpkg",
    "apt-ftparchive": "apt-utils",
    "gpg": "gpg",
    "ibsim": "ibsim-utils",
    "opensm": "opensm",
    "ibnetdiscover": "infiniband-diags",
}
"""Program → the Debian package that has it."""


def check_machine(*, virtual: bool = False) -> None:
    """Raise `EnvironmentBrokenError` without root, or naming the packages that are missing; `virtual`: virtual metal
    needs more.
    """
    if os.geteuid() != 0:
        raise EnvironmentBrokenError(
            "the lab needs root: it makes network interfaces, namespaces and mounts",
            remedy="Run the command through sudo.",
        )
    if virtual:
        check_metal()
    places = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool, path=places) is None})
    if missing:
        raise EnvironmentBrokenError(
            f"the lab needs programs that this machine lacks, of: {', '.join(missing)}",
            remedy=f"apt-get install --no-install-recommends {' '.join(missing)}",
        )


def changes(settings: LabSettings) -> Iterator[str]:
    """What starting this lab makes or changes on the machine, a line each."""
    names, paths = LabNames(settings.name), settings.paths
    services = ", ".join(_services(settings))
    yield f"interface {names.uplink} with the addresses of {settings.subnet} that the lab serves ({services})"
    if pods := settings.layout.pods:
        found = [name for pod in pods for name in (names.controller(pod.number), names.equipment(pod.number))]
        yield f"network namespaces {', '.join(found)}"
    if settings.virtual:
        yield f"{settings.hosts} virtual machines of {MEMORY_MIB} MiB, while they have power; drives in {paths.state}"
    else:
        yield f"{settings.hosts} hosts as processes in namespaces and cgroups of their own, once they are installed"
        for name, (now, then) in sorted(to_raise().items()):
            yield f"kernel setting {name.replace('/', '.')}: {now} → {then} until the last lab is down"
    yield f"files in {paths.run} and {paths.state}; images and packages kept for the next lab in {CACHE}"
    yield f"site directory {settings.site}"


def _services(settings: LabSettings) -> Iterator[str]:
    yield "BMCs"
    if settings.has_maas:
        yield "MAAS"
    yield "packages"
    if settings.virtual and settings.has_maas:
        yield "DHCP and network boot"
