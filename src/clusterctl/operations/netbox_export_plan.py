"""What an export would write for one node: each value that differs, and why some are kept. No request is made here.

A value that a person changed since the last export is kept. A first export has no such memory: its preview shows what
it replaces. Tags are only ever removed if an export has set them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.edges.netbox.kept_records import ExportRecord
from clusterctl.fleet.node import Drive, Gpu, Hca, Inventory, Stage
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.state import NodeState
from clusterctl.formats.netbox.records import NetboxDevice
from clusterctl.formats.netbox.writing import MAX_NAME, MAX_SERIAL, Item
from clusterctl.site.netbox import NetboxExport

SET = "set"
"""The value of a tag that a device has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChange:
    """One value of a node. `kept`: a person has changed it in NetBox, or removed it, so it stays.

    field  `status`, `stage`, `tag SLUG` or `item NAME`
    item   the inventory item that is changed; 0 where one is created, and for other fields
    model  of a part
    """

    node: str
    field: str
    before: str
    after: str
    kept: bool = False
    item: int = 0
    model: str = ""

    def __str__(self) -> str:
        if self.field.startswith("tag "):
            return f"{'+' if self.after else '−'}{self.field}"
        return f"{self.field} {self.before or 'empty'} → {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeExport:
    """What becomes of one node. `mark` is the mark of a journal entry that is to be written; empty for none."""

    node: str
    device: NetboxDevice
    changes: tuple[ValueChange, ...]
    same: Mapping[str, str]
    mark: str = ""
    cause: str = ""
    remedy: str = ""

    @property
    def written(self) -> tuple[ValueChange, ...]:
        return tuple(change for change in self.changes if not change.kept)

    @property
    def acts(self) -> bool:
        return bool(self.written or self.mark)


def device_changes(
    state: NodeState, device: NetboxDevice, wanted: NetboxExport, record: ExportRecord
) -> tuple[list[ValueChange], dict[str, str]]:
    """Return the changes of the device itself, and the values that NetBox has already."""
    changes: list[ValueChange] = []
    same: dict[str, str] = {}
    for field, before, after in _values(state.stage, device, wanted):
        if before == after:
            same[field] = after
        elif (change := _change(state.name, device, (field, before, after), record)) is not None:
            changes.append(change)
    return changes, same


def _values(stage: Stage, device: NetboxDevice, wanted: NetboxExport) -> Iterator[tuple[str, str, str]]:
    """Yield each field with its present and its wanted value."""
    status = wanted.statuses.get(stage.value)
    if status:
        yield "status", device.status, status
    if wanted.stage_field:
        yield "stage", device.custom.get(wanted.stage_field, ""), stage.value
    own = wanted.tags.get(stage.value, "")
    for slug in sorted(set(wanted.tags.values())):
        yield f"tag {slug}", SET if slug in device.tags else "", SET if slug == own else ""


def _change(node: str, device: NetboxDevice, values: tuple[str, str, str], record: ExportRecord) -> ValueChange | None:
    """Return the change of one value; None for a tag that no export has set, which is a person's."""
    field, before, after = values
    base = record.base(device.id, field)
    ours = record.is_ours(device.id, field, before)
    if field.startswith("tag "):
        if not after and not ours:
            return None
        kept = bool(after) and base == SET
    else:
        kept = base is not None and not ours
    return ValueChange(node=node, field=field, before=before, after=after, kept=kept)


@dataclass(frozen=True, slots=True)
class _Part:
    name: str
    model: str
    serial: str


def item_changes(
    state: NodeState, device: NetboxDevice, items: Sequence[Item], record: ExportRecord
) -> tuple[list[ValueChange], dict[str, str]]:
    """Return the inventory items to create or change, and those that NetBox has already."""
    serials = {item.serial.casefold() for item in items if item.serial}
    by_name: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        by_name[item.name].append(item)
    changes: list[ValueChange] = []
    same: dict[str, str] = {}
    for part in parts_of(state.inventory):
        field = f"item {part.name}"
        if part.serial.casefold() in serials:
            same[field] = part.serial
            continue
        changes.append(_item_change(state.name, device, part, by_name[part.name], record))
    return changes, same


def _item_change(
    node: str, device: NetboxDevice, part: _Part, present: Sequence[Item], record: ExportRecord
) -> ValueChange:
    field = f"item {part.name}"
    if not present:
        removed = record.base(device.id, field) == part.serial
        return ValueChange(node=node, field=field, before="", after=part.serial, kept=removed, model=part.model)
    one = present[0]
    ours = not one.serial or record.is_ours(device.id, field, one.serial)
    return ValueChange(
        node=node,
        field=field,
        before=one.serial,
        after=part.serial,
        kept=len(present) > 1 or not ours,
        item=one.id,
        model=part.model,
    )


def parts_of(inventory: Inventory | None) -> list[_Part]:
    """Return the GPUs, adapters and drives with a serial, by names that NetBox can hold; each serial once."""
    if inventory is None:
        return []
    found: dict[str, _Part] = {}
    names: set[str] = set()
    for kind, part in _kinds(inventory):
        name = visible_line(f"{kind} {part.slot}", MAX_NAME)
        serial = visible_line(part.serial or "", MAX_SERIAL + 1)
        if serial and len(serial) <= MAX_SERIAL and serial.casefold() not in found and name not in names:
            names.add(name)
            found[serial.casefold()] = _Part(name, visible_line(part.model), serial)
    return list(found.values())


def _kinds(inventory: Inventory) -> Iterator[tuple[str, Gpu | Hca | Drive]]:
    yield from (("GPU", part) for part in inventory.gpus or ())
    yield from (("NIC", part) for part in (*(inventory.hcas or ()), *(inventory.ethernet_adapters or ())))
    yield from (("Drive", part) for part in inventory.drives or ())
