"""Storage layouts: `flat` (one root filesystem) and `blank`. MAAS's other layouts are not emulated."""

from __future__ import annotations

import re
import uuid

from clusterctl_lab.emulators.maas.model import MIB4, Disk, Node, Partition, Store
from clusterctl_lab.emulators.maas.refusal import RefusedError, bad_form

LAYOUTS = ("blank", "vmfs7", "lvm", "vmfs6", "bcache", "flat", "custom")
BOOT_BYTES = 1024**3
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def set_layout(store: Store, node: Node, layout: str, root_device: str, root_size: str) -> None:
    """Set the layout; raise `RefusedError` (400) with MAAS's message, and 501 for layouts that the lab does not
    support.
    """
    _check(node, layout, root_device)
    if layout == "blank":
        clear(node)
        return
    chosen = [disk for disk in node.disks if str(disk.id) == root_device]
    disk = next(iter(chosen), node.boot_disk)
    if disk is None:
        raise RefusedError(409, "Machine is missing a boot disk; no storage layout can be applied.")
    size = _bytes(root_size) if root_size else None
    if size is not None and size > disk.size - BOOT_BYTES:
        raise bad_form(root_size=f"Size is too large. Maximum size is {disk.size - BOOT_BYTES}.")
    lay_flat(store, node, disk, size)


def _check(node: Node, layout: str, root_device: str) -> None:
    if not layout:
        raise bad_form(storage_layout="This field is required.")
    if layout not in LAYOUTS:
        raise bad_form(storage_layout=_not_valid(layout, "storage_layout", LAYOUTS))
    if layout not in ("flat", "blank"):
        raise RefusedError(501, f"The rehearsal lab does not lay out {layout!r}.")
    ids = [str(disk.id) for disk in node.disks]
    if root_device and root_device not in ids:
        raise bad_form(root_device=_not_valid(root_device, "root_device", ids))


def lay_flat(store: Store, node: Node, disk: Disk, size: int | None) -> None:
    """Create `/` on `disk` with `size` bytes or the whole disk; the other disks stay empty."""
    clear(node)
    wanted = disk.usable if size is None else size // MIB4 * MIB4
    disk.root = Partition(store.next_id("partition"), str(uuid.uuid4()), str(uuid.uuid4()), wanted)


def clear(node: Node) -> None:
    for disk in node.disks:
        disk.root = None


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise bad_form(root_size="Invalid size. Must be a number of bytes with an optional suffix.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def _not_valid(value: str, field: str, choices: tuple[str, ...] | list[str]) -> str:
    listed = ", ".join(f"'{choice}'" for choice in choices)
    return f"'{value}' is not a valid {field}.  It should be one of: {listed}."
