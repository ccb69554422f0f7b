"""What operations read from a site: its state folder, each node's installer, the power-on stagger, the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.edges.disk import disk_explained, free_bytes
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.stagger import Stagger
from clusterctl.ports.scheduler import Scheduler

if TYPE_CHECKING:
    from clusterctl.edges.redfish import KnownBmcs
    from clusterctl.fleet.state import NodeState, NodeSummary


def state_dir(site: Site) -> Path:
    """Return the site's folder for host keys and run directories, mode 0700; make it where it is missing."""
    path = site.folder / "state"
    with disk_explained("the state directory cannot be made", path):
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def forget_host_key(site: Site, name: str) -> None:
    """Remove the SSH host key of a retired node: another machine with its name does not get it."""
    from clusterctl.edges.hostkeys import HostKeys

    HostKeys(state_dir(site) / "host_keys").forget(name)


def free_space(site: Site) -> int:
    """Return the free bytes of the disk that the site's state lies on."""
    return free_bytes(state_dir(site))


def backend_of(site: Site, node: str) -> str:
    """Return the name of the installer that installs the node. Raises `UsageError` where the site names none."""
    for item in site.settings.provisioning:
        if item.serves(node):
            return item.backend
    raise UsageError(
        f"no provisioning backend serves {node}",
        where=site.where("provisioning"),
        remedy="leave nodes out of the last backend, or add a pattern that fits",
    )


def other_drives(site: Site, node: str) -> str:
    """Return what an install does to the drives without the OS; empty where it leaves them as they are.

    MAAS names every drive to curtin with `wipe: superblock` (maasserver/preseed_storage.py), whatever its layout.
    """
    return "wipes the start and the end of its other drives (MAAS)" if backend_of(site, node) == "maas" else ""


def erasing_backend(site: Site, node: str) -> str:
    """Return the name of what erases the node's drives: its installer, or our own PXE where nothing installs it."""
    found = backend_of(site, node)
    return "pxe" if found == "existing" and site.settings.pxe is not None else found


def never_installed(site: Site, node: NodeState | NodeSummary) -> bool:
    """Return whether clusterctl leaves the node's OS as it is: it was adopted, or its backend is `existing`."""
    return node.adopted or backend_of(site, node.name) == "existing"


def stagger(site: Site) -> Stagger:
    """Return how many machines of one group may switch on at once, and at what distance."""
    setting = site.settings.power.stagger
    return Stagger(setting.at_once, setting.seconds)


def stagger_group(site: Site) -> Callable[[str], str]:
    """Return a function from a BMC's address to the rack or PDU of its machine; unknown ones are one group."""
    per = site.settings.power.stagger.per
    if per == "site":
        return lambda _host: ""
    groups = {node.bmc: node.pdu if per == "pdu" else node.rack for node in site.with_bmc}
    return lambda host: groups.get(host, "")


def require_scheduler(site: Site, scheduler: Scheduler | None) -> Scheduler:
    """Return the scheduler. Raises `UsageError` where the site names none: it is unknown which nodes are idle."""
    if scheduler is None:
        raise UsageError(
            "the site names no scheduler: it is unknown which nodes are idle",
            where=site.where("scheduler"),
            remedy="add scheduler: {kind: slurm}, or another kind (docs/how-to/nightly.md)",
        )
    return scheduler


def known_bmcs(site: Site) -> KnownBmcs:
    """Return the pins of BMC certificates; new ones are learnt only where the site permits it."""
    from clusterctl.edges.redfish import KnownBmcs

    return KnownBmcs(site.folder / "state" / "bmc_pins", learn=site.settings.bmc.first_use == "pin")
