"""The plans that an import writes as whole files: what each would be, and what of it differs from the file there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.netbox.kept_records import ImportRecord, digest
from clusterctl.edges.netbox.reading import SiteReading
from clusterctl.edges.site import Site
from clusterctl.edges.site.host_networks import network_rules
from clusterctl.edges.site.sheet_import import content_digest, is_example
from clusterctl.edges.site.textfile import MAX_PLAN_BYTES, read_bytes
from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PlannedCable, WiringPlan, settle
from clusterctl.fleet.natural_order import natural_key
from clusterctl.formats.file_text import text_in
from clusterctl.formats.netbox.nodes import InterfaceAddress, address_plan
from clusterctl.formats.netbox.records import NetboxConflict
from clusterctl.formats.netbox.wiring import CableChoice, SitePlans, plans
from clusterctl.formats.site.sheets import COLUMNS, read_address_sheet
from clusterctl.formats.wiring.csv_plan import ethernet_csv, read_ethernet_csv, wiring_csv
from clusterctl.formats.wiring.plan import decode_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file that the import would write.

    name     as site.yml names it
    added    lines in words that the file does not have yet
    removed  lines in words that only the file has
    refused  why it is left alone; empty where it is written
    by_hand  an operator changed the file since the last import: a copy of it is kept
    """

    name: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    refused: str = ""
    by_hand: bool = False

    @property
    def differs(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """A file as it would be written; `text` is None where nothing is to be written.

    `before` is the SHA-256 of the file as it was read, empty where there was none.
    """

    path: Path
    change: FileChange
    text: str | None
    before: str


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file that NetBox describes: its text, its lines in words, and how its present lines are read."""

    name: str
    text: str
    lines: Sequence[str]
    present: Callable[[bytes, str], Iterable[str]]


def planned_files(
    site: Site, reading: SiteReading, names: Mapping[int, str], record: ImportRecord, *, overwrite: bool
) -> tuple[list[PlannedFile], list[NetboxConflict], list[str]]:
    """Return the files, the conflicts among cables, and warnings. `names`: the nodes by the ids of their devices."""
    netbox = site.settings.netbox
    roles = frozenset(netbox.node_roles if netbox else ())
    choice = CableChoice(
        nodes=names,
        left_out=frozenset(device.id for device in reading.devices if device.role in roles) - names.keys(),
        devices={device.id: device for device in reading.devices},
        fabric_roles=frozenset(netbox.fabric_roles if netbox else ()),
        ethernet_roles=frozenset(netbox.ethernet_roles if netbox else ()),
        ports=reading.ports,
    )
    found = plans(reading.cables, reading.far_ends, choice)
    warnings: list[str] = []
    if found.left_out:
        warnings.append(f"{found.left_out} cables of devices that are left out are in no plan")
    drafts = [*_plan_drafts(site, found, warnings), *_address_draft(site, reading, names, warnings)]
    return [_planned(site, draft, record, overwrite=overwrite) for draft in drafts], [*found.conflicts], warnings


def _plan_drafts(site: Site, found: SitePlans, warnings: list[str]) -> Iterator[_Draft]:
    """Yield the plans that have cables."""
    fabric, ethernet = found.fabric, found.ethernet
    if fabric.cables:
        name = site.settings.fabric.plan
        yield _Draft(name, wiring_csv(fabric), _cable_lines(fabric), _fabric_lines)
    if ethernet.cables and site.settings.fabric.ethernet:
        yield _Draft(site.settings.fabric.ethernet, ethernet_csv(ethernet), _cable_lines(ethernet), _ethernet_lines)
    elif ethernet.cables:
        warnings.append(
            f"NetBox has {len(ethernet.cables)} Ethernet cables: name a file for them as fabric.ethernet in site.yml"
        )


def _fabric_lines(content: bytes, name: str) -> list[str]:
    return _cable_lines(decode_plan(content, file=name))


def _ethernet_lines(content: bytes, name: str) -> list[str]:
    return _cable_lines(settle(read_ethernet_csv(text_in(content, name), name)))


def _cable_lines(plan: WiringPlan) -> list[str]:
    return [_cable_line(cable, plan) for cable in plan.cables]


def _cable_line(cable: PlannedCable, plan: WiringPlan) -> str:
    """Return what of a cable NetBox describes, in one line."""
    ends = sorted(
        cable.ends, key=lambda end: (end.device in plan.hosts, natural_key(end.device), natural_key(end.port))
    )
    extra = [cable.kind, f"{cable.length_m:g} m" if cable.length_m else ""]
    details = ", ".join(filter(None, extra))
    macs = ", ".join(f"{end} {plan.macs[end]}" for end in ends if end in plan.macs)
    return " ".join(filter(None, (" — ".join(map(str, ends)), f"({details})" if details else "", macs)))


def _address_draft(site: Site, reading: SiteReading, names: Mapping[int, str], warnings: list[str]) -> Iterator[_Draft]:
    """Yield the sheet of addresses, where the site has one, with the interfaces that its rules know."""
    name = site.settings.network.addresses
    if not name:
        return
    rules = network_rules(site)
    known: list[InterfaceAddress] = []
    unknown: list[InterfaceAddress] = []
    for one in address_plan(names, reading.ports):
        is_known = any(link.name == one.interface for link in rules.of(one.node) or ())
        (known if is_known else unknown).append(one)
    if unknown:
        ports = ", ".join(sorted({one.interface for one in unknown}, key=natural_key)[:5])
        warnings.append(
            f"{len(unknown)} addresses of interfaces that network.rules does not name are left out: {ports}"
        )
    rows = sorted(known, key=lambda one: (natural_key(one.node), natural_key(one.interface)))
    if rows:
        text = csv_text([COLUMNS, *((row.node, row.interface, row.address, row.mac or "") for row in rows)])
        yield _Draft(name, text, list(map(_address_line, rows)), _address_lines)


def _address_line(row: InterfaceAddress) -> str:
    return " ".join(filter(None, (row.node, row.interface, row.address, row.mac or "")))


def _address_lines(content: bytes, name: str) -> list[str]:
    rows = read_address_sheet(text_in(content, name), name)
    return [" ".join(filter(None, (row.node, row.interface, row.address, row.mac or ""))) for row in rows]


def _file(path: Path, change: FileChange, text: str | None) -> PlannedFile:
    return PlannedFile(path=path, change=change, text=text, before=content_digest(path))


def _planned(site: Site, draft: _Draft, record: ImportRecord, *, overwrite: bool) -> PlannedFile:
    """Return the file with its differences; refuse one that is no CSV of ours, or that was changed by hand."""
    path = Path(site.path(draft.name))
    if not draft.name.endswith(".csv"):
        refused = "is no .csv: name a .csv file in site.yml, and NetBox's cables are written into it"
        return _file(path, FileChange(name=draft.name, refused=refused), None)
    try:
        draft.present(draft.text.encode(), draft.name)
    except UsageError as error:
        return _file(path, FileChange(name=draft.name, refused=str(error)), None)
    if not path.exists() or is_example(path):
        return _file(path, FileChange(name=draft.name, added=tuple(draft.lines)), draft.text)
    content = read_bytes(path, max_bytes=MAX_PLAN_BYTES)
    if content == draft.text.encode():
        return _file(path, FileChange(name=draft.name), draft.text)
    return _replaced(path, draft, content, record, overwrite=overwrite)


def _replaced(path: Path, draft: _Draft, content: bytes, record: ImportRecord, *, overwrite: bool) -> PlannedFile:
    by_hand = record.files.get(draft.name) != digest(content)
    present = set(_lines_of(draft, content))
    wanted = set(draft.lines)
    refused = "was changed by hand since the last import" if by_hand and not overwrite else ""
    change = FileChange(
        name=draft.name,
        added=tuple(line for line in draft.lines if line not in present),
        removed=tuple(sorted(present - wanted, key=natural_key)),
        refused=refused,
        by_hand=by_hand,
    )
    if by_hand and not change.differs:
        return _file(path, FileChange(name=draft.name), None)
    return _file(path, change, None if refused else draft.text)


def _lines_of(draft: _Draft, content: bytes) -> Iterable[str]:
    """Return the lines of the present file in words; none where it cannot be read."""
    try:
        return draft.present(content, draft.name)
    except UsageError:
        return ()
