"""Which firmware runs on what, from UpdateService's FirmwareInventory.

Dell lists what is installed, what ran before and what could be rolled back to side by side, told apart by the id;
others list images that wait (`Staging`, `Backup`, `Golden`, `Capsule`). Only what runs is told here.
"""

from __future__ import annotations

import re

from clusterctl.fleet.node import Firmware
from clusterctl.formats.redfish.resource import Resource
from clusterctl.formats.redfish.tree import Tree

_NOT_RUNNING = re.compile(
    r"(previous|available|staged|staging|backup|golden|capsule|redundant)\b|.*\bredundant\b", re.IGNORECASE
)
_DELL_PLACE = re.compile(r"(?:installed|current)-.*?__(.+)", re.IGNORECASE)
_NAMELESS = frozenset({"software inventory", "firmware inventory", ""})


def firmware(tree: Tree) -> tuple[Firmware, ...]:
    """Component and version of all that runs, sorted, each once."""
    service = tree.follow(tree.root, "UpdateService")
    running = [item for item in tree.members(service, "FirmwareInventory") if _runs(item)]
    found = {Firmware(_component(item), item.text("Version")) for item in running}
    return tuple(sorted(found, key=lambda one: (one.component, one.version)))


def _runs(item: Resource) -> bool:
    waiting = any(_NOT_RUNNING.match(text.replace("_", " ")) for text in (item.id, item.text("Name")))
    return bool(item.text("Version")) and not item.absent and not waiting


def _component(item: Resource) -> str:
    """Name and place: eight GPUs have one name. Dell's ids hold the place, HPE's are mere numbers."""
    place = _DELL_PLACE.fullmatch(item.id)
    where = place[1] if place else item.text("Oem", "Hpe", "DeviceContext") or item.id
    name = item.text("Name")
    if name.lower() in _NAMELESS or name == where:
        return where
    return f"{name} ({where})"
