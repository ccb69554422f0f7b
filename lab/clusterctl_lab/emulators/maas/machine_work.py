"""MAAS's reactions to a report from a booted machine, simulated or really booted."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from clusterctl_lab.emulators.maas.bmc import PowerError
from clusterctl_lab.emulators.maas.lifecycle import FAILED, Lifecycle
from clusterctl_lab.emulators.maas.model import Disk, Hardware, Node
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.emulators.maas.storage import lay_flat

log = logging.getLogger(__name__)

INSTALLATION_FAILED = "Installation failed (refer to the installation log for more information)."
ERASING_FAILED = "Failed to erase disks."
REBOOTING = "Rebooting"


def record(
    lifecycle: Lifecycle, node: Node, hardware: Hardware, disks: Sequence[Disk], addresses: Mapping[str, str]
) -> None:
    """What commissioning uploads: hardware, drives, the ports' addresses (by MAC); then MAAS's default layout."""
    node.hardware = hardware
    node.disks = list(disks)
    for interface in node.interfaces:
        interface.address = addresses.get(interface.mac, "")
    if node.boot_disk is not None:
        lay_flat(lifecycle.store, node, node.boot_disk, None)


async def ready(lifecycle: Lifecycle, node: Node) -> None:
    """Its work is done: it is off, and free."""
    await switch_off(lifecycle, node)
    lifecycle.background.unwatch(node.system_id)
    node.status, node.owner = Status.READY, ""
    lifecycle.store.log(node, "Ready")


async def switch_off(lifecycle: Lifecycle, node: Node) -> None:
    """A BMC that does not obey is only logged."""
    try:
        await lifecycle.power_goes_off(node)
    except PowerError as error:
        log.warning("%s stays on: %s", node.hostname, error)


def scripts_failed(lifecycle: Lifecycle, node: Node, status: Status) -> None:
    """Record failed scripts that the machine itself reports; MAAS leaves it on, so that an operator can inspect it."""
    lifecycle.background.unwatch(node.system_id)
    if status is Status.FAILED_TESTING:
        node.testing = FAILED
    else:
        node.commissioning = FAILED
    node.status = status
    lifecycle.store.log(node, status.label)


def image_deployed(lifecycle: Lifecycle, node: Node) -> None:
    """The OS is on the disk, and the machine restarts from it; it has its time for that."""
    lifecycle.store.log(node, "Image Deployed", f"deployed {node.osystem}/{node.series}/{node.architecture}")
    node.netboot = False
    lifecycle.store.log(node, REBOOTING)
    lifecycle.watch(node, lifecycle.world.delays.netboot_timeout)


def deployed(lifecycle: Lifecycle, node: Node) -> None:
    """Record that the installed OS runs and has fetched its user-data, which is the meaning of `Deployed`. Other states
    stay.
    """
    if node.status is Status.DEPLOYING and not node.netboot:
        lifecycle.background.unwatch(node.system_id)
        node.status = Status.DEPLOYED
        lifecycle.store.log(node, "Deployed")
