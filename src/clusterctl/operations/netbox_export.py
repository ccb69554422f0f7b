"""Export of a site's state to NetBox: stage, status, tags, inventory items, and a journal entry at each quarantine.

Every run looks at NetBox first, notes what it is about to write, and then writes one node after the other. After a kill
the same command goes on: what NetBox has already is not written again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.edges.netbox.api import NetboxApi, NetboxListing
from clusterctl.edges.netbox.kept_records import ExportRecord, export_file, read_export_record
from clusterctl.edges.netbox.reading import site_id
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    ConflictError,
    EdgeError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState
from clusterctl.formats.netbox.nodes import GONE
from clusterctl.formats.netbox.records import DEVICE_FIELDS, NetboxDevice, read_device, read_list
from clusterctl.formats.netbox.writing import (
    DEVICE,
    ENTRY_FIELDS,
    ITEM_FIELDS,
    Item,
    NetboxEntry,
    device_body,
    entry_body,
    item_body,
    marker,
    read_entry,
    read_item,
)
from clusterctl.operations.context import SiteContext
from clusterctl.operations.netbox_export_plan import SET, NodeExport, ValueChange, device_changes, item_changes
from clusterctl.operations.netbox_import import connection, settings_of
from clusterctl.operations.operation import Control, Effect, Event, Failure, Outcome, Preview, Result
from clusterctl.ports import Deadline
from clusterctl.site.netbox import NetboxExport

OPERATION = "export netbox"
ITEMS, ENTRIES, DEVICES = "dcim/inventory-items", "extras/journal-entries", "dcim/devices"


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxExportRequest:
    """Nothing to choose: the site names what is exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportPreview(Preview):
    """`changes` by node and field; those that are kept were changed by a person in NetBox."""

    changes: tuple[ValueChange, ...] = ()


_Pair = tuple[NodeState, NetboxDevice]


@dataclass(frozen=True, slots=True)
class _Plan:
    exports: tuple[NodeExport, ...]
    skipped: Mapping[str, str]
    record: ExportRecord


def _wanted(context: SiteContext) -> NetboxExport:
    found = settings_of(context.site).export
    if found is None:
        remedy = "write export: under netbox: (docs/how-to/netbox.md)"
        raise UsageError("the site does not name what is exported", where=context.site.where("netbox"), remedy=remedy)
    return found


def _opened(context: SiteContext, control: Control) -> NetboxApi:
    seconds = settings_of(context.site).seconds
    return NetboxApi(connection(context.site), Deadline.after(seconds, control.cancelled))


def preview(context: SiteContext, _request: NetboxExportRequest) -> ExportPreview:
    """Return what would be written, per node and value."""
    with _opened(context, Control()) as api:
        return _preview(context, _plan(context, api))


def _preview(context: SiteContext, plan: _Plan) -> ExportPreview:
    acting = [export for export in plan.exports if export.acts]
    url = settings_of(context.site).url
    changes = tuple(change for export in plan.exports for change in export.changes)
    return ExportPreview(
        operation=OPERATION,
        question=f"Write {len(acting)} nodes to {url}?" if acting else "Nothing differs. Go on?",
        effects=tuple(Effect(node=export.node, text=_words(export)) for export in acting),
        skipped=plan.skipped,
        warnings=tuple(_kept(change) for change in changes if change.kept),
        changes=changes,
    )


def _words(export: NodeExport) -> str:
    return ", ".join([*map(str, export.written), *(["journal entry of its quarantine"] if export.mark else [])])


def _kept(change: ValueChange) -> str:
    was = f"NetBox has {change.before}" if change.before else "it was removed in NetBox"
    return f"{change.node}: {change.field} would be {change.after}, but {was} by a person, and is kept"


def _plan(context: SiteContext, api: NetboxApi) -> _Plan:
    """Compare the journal with NetBox."""
    wanted, netbox = _wanted(context), settings_of(context.site)
    record = read_export_record(export_file(context.site.folder), f"{netbox.url} {netbox.site}")
    site = site_id(api, netbox.site, context.site.where("netbox", "site"))
    listed = api.read_all(NetboxListing(page=DEVICES, filters={"site_id": [site]}, fields=DEVICE_FIELDS))
    readable = read_list(listed, read_device, "device", DEVICES)[0]
    devices = [device for device in readable if device.role in netbox.node_roles]
    pairs, skipped = matched(_present(context), devices)
    pairs, leaving = _still_ours(pairs, record)
    skipped = {**skipped, **leaving}
    pairs += _retired(context, wanted, devices)
    items = _items(api, [device.id for _, device in pairs]) if wanted.inventory else {}
    marks = _missing_marks(context, api, pairs) if wanted.journal else {}
    exports = []
    for state, device in pairs:
        changes, same = device_changes(state, device, wanted, record)
        if wanted.inventory and state.stage is not Stage.RETIRED:
            more, known = item_changes(state, device, items.get(device.id, ()), record)
            changes, same = [*changes, *more], {**same, **known}
        exports.append(
            NodeExport(
                node=state.name,
                device=device,
                changes=tuple(changes),
                same=same,
                mark=marks.get(device.id, ""),
                cause=state.cause,
                remedy=state.remedy,
            )
        )
    return _Plan(tuple(exports), skipped, record)


def _present(context: SiteContext) -> list[NodeState]:
    """Return the nodes of the sheet that are not retired."""
    names = {node.name for node in context.site.nodes}
    return [state for state in context.journal.states() if state.name in names and state.stage is not Stage.RETIRED]


def _still_ours(pairs: Sequence[_Pair], record: ExportRecord) -> tuple[list[_Pair], dict[str, str]]:
    """Return the pairs without the devices that a person is taking out of use, and these with the reason."""
    gone = {
        state.name: f"NetBox has the status {device.status} for it"
        for state, device in pairs
        if device.status in GONE and not record.is_ours(device.id, "status", device.status)
    }
    return [(state, device) for state, device in pairs if state.name not in gone], gone


def _retired(context: SiteContext, wanted: NetboxExport, devices: Sequence[NetboxDevice]) -> list[_Pair]:
    """Return the retired machines, where the site exports that stage: by serial alone, since names are used again."""
    stage = Stage.RETIRED.value
    if not (wanted.stage_field or stage in wanted.statuses or stage in wanted.tags):
        return []
    retired: dict[str, NodeState] = {}
    in_use: set[str] = set()
    for state in context.journal.states():
        if state.serial is not None and state.stage is Stage.RETIRED:
            retired[state.serial.casefold()] = state
        else:
            in_use.add((state.serial or state.expected_serial or "").casefold())
    times = Counter(device.serial.casefold() for device in devices)
    return [
        (retired[serial], device)
        for device in devices
        if (serial := device.serial.casefold()) in retired and serial not in in_use and times[serial] == 1
    ]


def matched(states: Iterable[NodeState], devices: Sequence[NetboxDevice]) -> tuple[list[_Pair], dict[str, str]]:
    """Return each node with its device, by serial; by name only where one of the two has no serial.

    The mapping has the nodes without a device, with the reason. A device is one node at most: by its serial first.
    """
    ordered = sorted(states, key=lambda one: one.name)
    known = _Devices.of(devices)
    taken = {device.id for state in ordered for device in known.by_serial.get(_serial(state), ())}
    pairs: list[_Pair] = []
    skipped: dict[str, str] = {}
    for state in ordered:
        found = known.of_node(state)
        if not found:
            skipped[state.name] = "NetBox has no device with its serial or name"
        elif reason := _mismatch(_serial(state), found, taken):
            skipped[state.name] = reason
        else:
            pairs.append((state, found[0]))
    return pairs, skipped


@dataclass(frozen=True, slots=True)
class _Devices:
    by_serial: Mapping[str, Sequence[NetboxDevice]]
    by_name: Mapping[str, Sequence[NetboxDevice]]

    @classmethod
    def of(cls, devices: Iterable[NetboxDevice]) -> _Devices:
        by_serial: dict[str, list[NetboxDevice]] = defaultdict(list)
        by_name: dict[str, list[NetboxDevice]] = defaultdict(list)
        for device in devices:
            by_name[device.name.lower()].append(device)
            if device.serial:
                by_serial[device.serial.casefold()].append(device)
        return cls(dict(by_serial), dict(by_name))

    def of_node(self, state: NodeState) -> Sequence[NetboxDevice]:
        """Return the devices with the node's serial; those with its name where there are none."""
        return self.by_serial.get(_serial(state)) or self.by_name.get(state.name, ())


def _serial(state: NodeState) -> str:
    return (state.serial or state.expected_serial or "").casefold()


def _mismatch(serial: str, found: Sequence[NetboxDevice], taken: Collection[int]) -> str:
    """Return why none of the devices is surely the node; nothing where the only one is.

    taken  the devices that are nodes by their serials
    """
    device = found[0]
    by_serial = bool(serial) and device.serial.casefold() == serial
    if len(found) > 1:
        return f"NetBox has {len(found)} devices with its {'serial' if by_serial else 'name'}"
    if serial and device.serial and not by_serial:
        return f"NetBox has the serial {device.serial} for it, which is another machine"
    if not by_serial and device.id in taken:
        return f"NetBox's device of its name has the serial {device.serial}, which is another node"
    return ""


def _items(api: NetboxApi, devices: Sequence[int]) -> Mapping[int, Sequence[Item]]:
    listed = api.read_by(NetboxListing(page=ITEMS, filters={}, fields=ITEM_FIELDS), "device_id", devices)
    found: dict[int, list[Item]] = defaultdict(list)
    for item in read_list(listed, read_item, "inventory item", ITEMS)[0]:
        found[item.device].append(item)
    return found


def _missing_marks(
    context: SiteContext, api: NetboxApi, pairs: Sequence[tuple[NodeState, NetboxDevice]]
) -> Mapping[int, str]:
    """Return the mark of the last quarantine of each node in quarantine whose entry NetBox does not have."""
    stopped = {state.id: device.id for state, device in pairs if state.stage is Stage.QUARANTINED}
    if not stopped:
        return {}
    last = {event.subject: event.seq for event in context.journal.histories(stopped.keys(), {Kind.NODE_QUARANTINED})}
    listing = NetboxListing(page=ENTRIES, filters={"assigned_object_type": DEVICE}, fields=ENTRY_FIELDS)
    listed = api.read_by(listing, "assigned_object_id", list(stopped.values()))
    known: dict[int, set[str]] = defaultdict(set)
    entries: list[NetboxEntry] = read_list(listed, read_entry, "journal entry", ENTRIES)[0]
    for entry in entries:
        known[entry.device] |= entry.markers
    marks = {device: marker(context.site.settings.name, last[node]) for node, device in stopped.items() if node in last}
    return {device: mark for device, mark in marks.items() if mark not in known[device]}


def run(context: SiteContext, _request: NetboxExportRequest, control: Control) -> Result:
    """Write what differs, one node after the other. A node that fails stops no other. Events: `Event`."""
    with _opened(context, control) as api:
        plan = _plan(context, api)
        control.require(_preview(context, plan))
        file = export_file(context.site.folder)
        _note(plan)
        plan.record.write(file)
        try:
            outcomes, stopped, cancelled = _write_all(plan, _wanted(context), api, control)
        finally:
            plan.record.write(file)
    kept = [change for export in plan.exports for change in export.changes if change.kept]
    return Result(
        operation=OPERATION,
        outcomes=tuple(outcomes),
        skipped={**plan.skipped, **{f"{one.node} {one.field}": "changed by a person in NetBox" for one in kept}},
        stopped=stopped,
        cancelled=cancelled,
    )


def _note(plan: _Plan) -> None:
    """Note the values that NetBox has already, and those that are about to be written."""
    for export in plan.exports:
        for field, value in export.same.items():
            plan.record.settle(export.device.id, field, value)
        for change in export.written:
            plan.record.intend(export.device.id, change.field, change.after)


def _write_all(plan: _Plan, wanted: NetboxExport, api: NetboxApi, control: Control) -> tuple[list[Outcome], str, bool]:
    """Return what became of each node, why the export stopped early, and whether it was cancelled."""
    outcomes: list[Outcome] = []
    for export in plan.exports:
        if not export.acts:
            continue
        try:
            outcomes.append(_written(export, wanted, api, plan.record))
        except CancelledError:
            return outcomes, "", True
        except (AuthenticationError, UnreachableError) as error:
            outcomes.append(Outcome(node=export.node, failure=Failure.of(error)))
            return outcomes, "NetBox could not be written to: run the same command again to go on", False
        except ClusterctlError as error:
            outcomes.append(Outcome(node=export.node, failure=Failure.of(error)))
        control.on_event(Event(node=export.node, text=outcomes[-1].text, failure=outcomes[-1].failure))
    return outcomes, "", False


def _written(export: NodeExport, wanted: NetboxExport, api: NetboxApi, record: ExportRecord) -> Outcome:
    """Write one node: its device, its items, its journal entry."""
    own = [change for change in export.written if not change.field.startswith("item ")]
    if own:
        _write_device(export, own, wanted, api)
        for change in own:
            record.settle(export.device.id, change.field, change.after)
    items = [change for change in export.written if change.field.startswith("item ")]
    if new := [change for change in items if not change.item]:
        _create_items(export, new, api)
    for change in items:
        if change.item:
            _change_item(export, change, api)
        record.settle(export.device.id, change.field, change.after)
    if export.mark:
        api.create(ENTRIES, entry_body(export.device.id, export.cause, export.remedy, export.mark))
    return Outcome(node=export.node, text=_words(export))


def _write_device(export: NodeExport, changes: Sequence[ValueChange], wanted: NetboxExport, api: NetboxApi) -> None:
    """Change a device that is still as it was compared, and check that NetBox took it."""
    body, etag = api.look(DEVICES, export.device.id)
    present = read_device(body)
    if _differs(present, export.device, changes, wanted):
        raise ConflictError("was changed in NetBox meanwhile", where=export.node, remedy="run the command again")
    by_field = {change.field: change.after for change in changes}
    tags = {field.removeprefix("tag "): value for field, value in by_field.items() if field.startswith("tag ")}
    new_tags = (present.tags - tags.keys()) | {slug for slug, value in tags.items() if value == SET}
    custom = {wanted.stage_field: by_field["stage"]} if "stage" in by_field else {}
    change = device_body(by_field.get("status"), custom, new_tags if tags else None)
    after = read_device(api.change(DEVICES, export.device.id, change, etag))
    missing = [one.field for one in changes if _value(after, one.field, wanted) != one.after]
    if missing:
        remedy = "check that the custom field and the tags exist in NetBox, for devices"
        raise EdgeError(f"NetBox did not take {', '.join(missing)}", where=export.node, remedy=remedy)


def _differs(present: NetboxDevice, before: NetboxDevice, changes: Sequence[ValueChange], wanted: NetboxExport) -> bool:
    """Return whether it is another machine by now, or a value that is to be changed is another one."""
    moved = present.serial.casefold() != before.serial.casefold()
    return moved or any(_value(present, one.field, wanted) != one.before for one in changes)


def _value(device: NetboxDevice, field: str, wanted: NetboxExport) -> str:
    """Return the value of one of our fields of a device."""
    if field == "status":
        return device.status
    if field == "stage":
        return device.custom.get(wanted.stage_field, "")
    return SET if field.removeprefix("tag ") in device.tags else ""


def _create_items(export: NodeExport, changes: Sequence[ValueChange], api: NetboxApi) -> None:
    """Write all new items of a node by one request: a first export of a site has dozens for each node."""
    bodies = [item_body(export.device.id, _item_name(one), one.model, one.after) for one in changes]
    for change, made in zip(changes, api.create_all(ITEMS, bodies), strict=True):
        _require_taken(export, change, made)


def _change_item(export: NodeExport, change: ValueChange, api: NetboxApi) -> None:
    body, etag = api.look(ITEMS, change.item)
    if read_item(body).serial != change.before:
        message = f"{_item_name(change)} was changed in NetBox meanwhile"
        raise ConflictError(message, where=export.node, remedy="run it again")
    wanted = {"serial": change.after, "part_id": change.model[:50]}
    _require_taken(export, change, api.change(ITEMS, change.item, wanted, etag))


def _require_taken(export: NodeExport, change: ValueChange, made: Mapping[str, Any]) -> None:
    if read_item(made).serial != change.after:
        message = f"NetBox did not take the serial of {_item_name(change)}"
        raise EdgeError(message, where=export.node, remedy="look at it in NetBox")


def _item_name(change: ValueChange) -> str:
    return change.field.removeprefix("item ")
