"""Import of a site from NetBox: read it, compare it with the site's files, preview the difference, and write it.

`prepare` reads NetBox and the files; `preview` and `run` use what it read, so that what is approved is what is written.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.netbox.api import NetboxApi
from clusterctl.edges.netbox.kept_records import ImportRecord, digest, import_file, read_import_record
from clusterctl.edges.netbox.reading import SiteReading, read_site, site_id
from clusterctl.edges.netbox.session import NetboxConnection
from clusterctl.edges.site import Site, load_site
from clusterctl.edges.site.sheet_import import (
    CellChange,
    CellState,
    SheetImport,
    SourceRow,
    content_digest,
    sheet_import,
)
from clusterctl.edges.tls import Trust
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.formats.netbox.nodes import NodeChoice, NodeRow, node_rows, sku_of
from clusterctl.formats.netbox.records import NetboxConflict, NetboxConflictKind
from clusterctl.operations.netbox_files import FileChange, PlannedFile, planned_files
from clusterctl.operations.operation import Control, Effect, Event, Outcome, Preview, Result, current_time
from clusterctl.ports import Deadline
from clusterctl.site.netbox import NetboxSettings

OPERATION = "import netbox"
EXPECTED = frozenset({NetboxConflictKind.DECOMMISSIONED, NetboxConflictKind.STATUS})
"""Devices that are no nodes yet, or no longer: they are named, and are no failure."""
MOST_LINES = 20
"""Lines of one plan that a preview shows as text; its data has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxImportRequest:
    """`overwrite`: also cells and plans that an operator changed since the last import; a copy of the file is kept."""

    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedConflict:
    """A conflict with the address of its object in NetBox."""

    subject: str
    kind: NetboxConflictKind
    text: str
    url: str
    left_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPreview(Preview):
    """`changes` are those of the sheet, by node and field; `files` are the plans."""

    netbox: str = ""
    changes: tuple[CellChange, ...] = ()
    files: tuple[FileChange, ...] = ()
    conflicts: tuple[NamedConflict, ...] = ()
    only_in_sheet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult(Result):
    """What was written. `complete`: nothing that should be taken over was left out."""

    conflicts: tuple[NamedConflict, ...] = ()
    complete: bool = True

    @property
    def exit_code(self) -> int:
        """0: the site has all of NetBox's nodes and cables; 1: some were left out, and are named."""
        return 0 if self.complete else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """What `prepare` found. `record` is the one that the next import begins with."""

    site: Site
    version: str
    sheet: SheetImport
    files: tuple[PlannedFile, ...]
    record: ImportRecord
    conflicts: tuple[NamedConflict, ...]
    warnings: tuple[str, ...]


def connection(site: Site) -> NetboxConnection:
    """Return where NetBox is, and the token; reads the secret now. Raise `UsageError` where the site names none."""
    token = site.netbox_token()
    netbox = settings_of(site)
    return NetboxConnection(netbox.url, token, Trust(site.path(netbox.ca_file), netbox.tls_fingerprint))


def settings_of(site: Site) -> NetboxSettings:
    """Return the section `netbox` of the site. Raise `UsageError` where it has none."""
    if site.settings.netbox is None:
        remedy = "write netbox: with url, token, site and node_roles (docs/how-to/netbox.md)"
        raise UsageError("the site names no NetBox", where=site.where("netbox"), remedy=remedy)
    return site.settings.netbox


def node_choice(netbox: NetboxSettings) -> NodeChoice:
    """Return which of NetBox's devices are the site's nodes."""
    return NodeChoice(
        roles=frozenset(netbox.node_roles),
        statuses=frozenset(netbox.statuses),
        sku_field=netbox.sku_field,
        bmc_mac_field=netbox.bmc_mac_field,
        skus=netbox.skus,
    )


def prepare(folder: Path, request: NetboxImportRequest, control: Control) -> ImportPlan:
    """Read NetBox, and compare it with the site's files. Changes nothing. Events: `Event`."""
    site = load_site(folder, may_be_empty=True)
    netbox = settings_of(site)
    if site.settings.nodes.csv is None:
        remedy = "name the sheet, such as nodes.csv: bmcs.csv"
        raise UsageError("the import needs a sheet of nodes", where=site.where("nodes"), remedy=remedy)
    sheet = Path(site.path(site.settings.nodes.csv))
    opened = connection(site)
    source = f"{netbox.url} {netbox.site}"
    record = read_import_record(import_file(site.folder), source)
    control.on_event(Event(text=f"reading {netbox.site} from {netbox.url}"))
    with NetboxApi(opened, Deadline.after(netbox.seconds, control.cancelled)) as api:
        choice = node_choice(netbox)
        reading = read_site(api, site_id(api, netbox.site, site.where("netbox", "site")), choice)
    rows, row_conflicts = node_rows(reading.nodes, reading.ports, choice)
    merged = sheet_import(sheet, [_source_row(row) for row in rows], record.nodes, overwrite=request.overwrite)
    names = _names(reading, rows, merged)
    files, cable_conflicts, warnings = planned_files(site, reading, names, record, overwrite=request.overwrite)
    conflicts = [*reading.conflicts, *row_conflicts, *_of_sheet(merged, rows), *cable_conflicts]
    return ImportPlan(
        site=site,
        version=reading.version,
        sheet=merged,
        files=tuple(files),
        record=_next_record(source, merged, files, record),
        conflicts=tuple(_named(conflict, netbox.url) for conflict in conflicts),
        warnings=(*_warnings(site, merged), *_sku_warnings(site, reading, choice), *warnings),
    )


def _source_row(row: NodeRow) -> SourceRow:
    return SourceRow(id=str(row.device), name=row.name, cells=row.cells)


def _names(reading: SiteReading, rows: Sequence[NodeRow], merged: SheetImport) -> Mapping[int, str]:
    """Return the nodes by the ids of their devices: the sheet's names where it has them, NetBox's for the rest.

    A node whose name two devices have is none of the two.
    """
    imported = {row.device: merged.names.get(str(row.device), "") for row in rows}
    times = Counter(device.name.lower() for device in reading.nodes)
    names = {device.id: imported.get(device.id) or device.name.lower() for device in reading.nodes}
    return {id_: name for id_, name in names.items() if imported.get(id_) or times[name] == 1}


def _of_sheet(merged: SheetImport, rows: Sequence[NodeRow]) -> Iterator[NetboxConflict]:
    """Yield a conflict for each node that the sheet cannot have, or has under another name."""
    by_name = {row.name: row for row in rows}
    for name, reason in merged.refused.items():
        path = by_name[name].path
        yield NetboxConflict(subject=name, kind=NetboxConflictKind.DUPLICATE, text=reason, path=path)
    for name, other in merged.renamed.items():
        text = f"NetBox calls it {other}: rename it in the sheet and in NetBox alike; the sheet's name is kept"
        yield NetboxConflict(
            subject=name, kind=NetboxConflictKind.NAME, text=text, path=by_name[other].path, left_out=False
        )


def _named(conflict: NetboxConflict, url: str) -> NamedConflict:
    return NamedConflict(
        subject=conflict.subject,
        kind=conflict.kind,
        text=conflict.text,
        url=f"{url}/{conflict.path}",
        left_out=conflict.left_out,
    )


def _next_record(source: str, merged: SheetImport, files: Sequence[PlannedFile], before: ImportRecord) -> ImportRecord:
    written = {file.change.name: digest(file.text.encode()) for file in files if file.text is not None}
    return ImportRecord(source=source, nodes={**before.nodes, **merged.written}, files={**before.files, **written})


def _warnings(site: Site, merged: SheetImport) -> Iterator[str]:
    netbox = settings_of(site)
    if netbox.url.startswith("http://"):
        yield f"NetBox is reached over plain HTTP ({netbox.url}): the network can read the token (allow_plain_http)"
    kept = [change for change in merged.changes if change.state is CellState.KEPT]
    for change in kept:
        yield (
            f"{change.node}: {change.column} {change.before} was changed by hand and is kept; NetBox has {change.after}"
        )
    if kept:
        yield "correct these in NetBox or in the sheet, or take NetBox's with --overwrite"
    if merged.absent:
        shown = ", ".join(sorted(merged.absent, key=natural_key)[:10])
        more = f" and {len(merged.absent) - 10} more" if len(merged.absent) > 10 else ""
        yield f"only in the sheet, not among NetBox's nodes: {shown}{more}; their lines are kept"


def _sku_warnings(site: Site, reading: SiteReading, choice: NodeChoice) -> Iterator[str]:
    """Yield which SKUs of NetBox the site does not have."""
    known = {sku.name for sku in site.skus}
    missing: dict[str, int] = defaultdict(int)
    for device in reading.nodes:
        sku = sku_of(device, choice)
        if sku and sku not in known:
            missing[sku] += 1
    for sku, number in sorted(missing.items()):
        yield f"{number} nodes have the SKU {sku}, which skus in site.yml lacks: add it, or map it by netbox.skus"


def preview(plan: ImportPlan) -> ImportPreview:
    """Return the difference per node and field, per plan and cable, and what is left out."""
    written = _written(plan)
    files = tuple(file.change for file in plan.files)
    changed = [change for change in files if change.differs and not change.refused]
    return ImportPreview(
        operation=OPERATION,
        question=_question(plan.sheet.file.name, written, changed),
        effects=(*_sheet_effects(written), *(effect for change in changed for effect in _file_effects(change))),
        skipped=_skipped(plan),
        warnings=(*plan.warnings, *(_sentence(item) for item in plan.conflicts if not item.left_out)),
        netbox=f"{settings_of(plan.site).url} (NetBox {plan.version})",
        changes=plan.sheet.changes,
        files=files,
        conflicts=plan.conflicts,
        only_in_sheet=plan.sheet.absent,
    )


def _written(plan: ImportPlan) -> list[CellChange]:
    return [change for change in plan.sheet.changes if change.state is not CellState.KEPT]


def _question(sheet: str, written: Sequence[CellChange], changed: Sequence[FileChange]) -> str:
    nodes = len({change.node for change in written})
    parts = [f"{nodes} nodes in {sheet}"] if nodes else []
    parts += [change.name for change in changed]
    return f"Write {' and '.join(parts)}?" if parts else "Nothing differs. Go on?"


def _sentence(conflict: NamedConflict) -> str:
    return f"{conflict.subject}: {conflict.text} ({conflict.url})"


def _sheet_effects(changes: Sequence[CellChange]) -> Iterator[Effect]:
    """Yield one effect for each node: all its cells that change."""
    by_node: dict[str, list[CellChange]] = defaultdict(list)
    for change in changes:
        by_node[change.node].append(change)
    for node, cells in by_node.items():
        new = any(cell.column == "name" for cell in cells)
        shown = (f"{cell.column} {cell.after}" if new else _cell(cell) for cell in cells if cell.column != "name")
        yield Effect(node=node, text=", ".join((*(("new",) if new else ()), *shown)))


def _cell(change: CellChange) -> str:
    return f"{change.column} {change.before or 'empty'} → {change.after}"


def _file_effects(change: FileChange) -> Iterator[Effect]:
    lines = [*(f"− {line}" for line in change.removed), *(f"+ {line}" for line in change.added)]
    for line in lines[:MOST_LINES]:
        yield Effect(node=change.name, text=line)
    if len(lines) > MOST_LINES:
        yield Effect(node=change.name, text=f"and {len(lines) - MOST_LINES} more (all of them with --json)")


def _skipped(plan: ImportPlan) -> Mapping[str, str]:
    """Return what is left out, with the reasons and NetBox's addresses."""
    found: dict[str, list[str]] = defaultdict(list)
    for conflict in plan.conflicts:
        if conflict.left_out:
            found[conflict.subject].append(f"{conflict.text} ({conflict.url})")
    for file in plan.files:
        if file.change.refused:
            found[file.change.name].append(_refusal(file.change))
    return {subject: "; ".join(reasons) for subject, reasons in found.items()}


def _refusal(change: FileChange) -> str:
    if not change.differs:
        return change.refused
    lines = f"{len(change.added)} lines are only in NetBox, {len(change.removed)} only in the file"
    return f"{change.refused}: {lines}; --overwrite writes NetBox's, and keeps a copy"


def run(plan: ImportPlan, control: Control) -> ImportResult:
    """Write the sheet and the plans, each whole or not at all, then the record of this import."""
    shown = preview(plan)
    control.require(shown)
    _require_unchanged(plan)
    outcomes = [*_write_sheet(plan)]
    for file in plan.files:
        outcomes += _write_file(file)
    plan.record.write(import_file(plan.site.folder))
    complete = not any(conflict.left_out and conflict.kind not in EXPECTED for conflict in plan.conflicts) and not any(
        file.change.refused for file in plan.files
    )
    kept = any(change.state is CellState.KEPT for change in plan.sheet.changes)
    return ImportResult(
        operation=OPERATION,
        outcomes=tuple(outcomes),
        skipped=shown.skipped,
        conflicts=plan.conflicts,
        complete=complete and not kept,
    )


def _require_unchanged(plan: ImportPlan) -> None:
    """Raise `ConflictError` where a file was changed since it was compared: nothing is written then."""
    read = {plan.sheet.file: plan.sheet.before, **{file.path: file.before for file in plan.files}}
    for path, before in read.items():
        if content_digest(path) != before:
            remedy = "run the same command again: it reads the file again"
            raise ConflictError("was changed while NetBox was compared with it", where=str(path), remedy=remedy)


def _write_sheet(plan: ImportPlan) -> Iterator[Outcome]:
    written = [change for change in plan.sheet.changes if change.state is not CellState.KEPT]
    file = plan.sheet.file
    if not written:
        yield Outcome(node=file.name, text="up to date")
        return
    copy = _keep_copy(file) if plan.sheet.by_hand else ""
    with disk_explained("the sheet cannot be written", file):
        write_whole(file.resolve(), plan.sheet.text.encode(), mode=plan.sheet.mode, over=True)
    nodes = len({change.node for change in written})
    yield Outcome(node=file.name, text=f"{nodes} nodes written{copy}")


def _write_file(file: PlannedFile) -> Iterator[Outcome]:
    change = file.change
    if change.refused:
        return
    if file.text is None or not change.differs:
        yield Outcome(node=change.name, text="up to date")
        return
    copy = _keep_copy(file.path) if change.by_hand else ""
    with disk_explained("the plan cannot be written", file.path):
        write_whole(file.path.resolve(), file.text.encode(), mode=0o644, over=True)
    yield Outcome(node=change.name, text=f"{len(change.added)} lines new, {len(change.removed)} gone{copy}")


def _keep_copy(file: Path) -> str:
    """Copy a file in its own folder, and return a clause that names the copy."""
    name = f"{file.name}.{current_time():%Y%m%dT%H%M%S}.bak"
    with disk_explained("no copy of it can be written", file):
        content, mode = file.read_bytes(), file.stat().st_mode & 0o666
        write_whole(file.resolve().with_name(name), content, mode=mode, over=False)
    return f"; the former file is {name}"
