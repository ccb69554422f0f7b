"""The machines that the site names: the sheet, the list and the ranges together, each machine once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.edges.site.model import ListedNode, SiteFile, expand_range
from clusterctl.edges.site.sheet import Row, read_sheet
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.site.yaml_document import Document

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


@dataclass(frozen=True, slots=True)
class SiteNode(NeverPickled):
    """One machine that the site names. `user` and `password` are its factory ones, empty where the site's apply;
    `login` names one of `bmc.logins`; `boot_mac` is of the host's port, for BMCs that do not tell it; `pdu` names the
    power distribution unit, or the feed, that it hangs on; `address` is the host's own.
    """

    where: str
    name: str
    bmc: str
    serial: str = ""
    rack: str = ""
    unit: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    tls_fingerprint: str = ""
    bmc_mac: Mac | None = None
    login: str = ""
    boot_mac: Mac | None = None
    pdu: str = ""
    address: str = ""


def read_nodes(
    folder: Path, settings: SiteFile, document: Document, *, may_be_empty: bool = False
) -> tuple[SiteNode, ...]:
    """All of them; raises `UsageError` where there is none, or two have something that only one can have."""
    sheet = settings.nodes.csv
    if may_be_empty and sheet is not None and not os.path.lexists(folder / sheet):
        settings = settings.model_copy(update={"nodes": settings.nodes.model_copy(update={"csv": None})})
    nodes = tuple(_nodes(folder, settings, document))
    if not nodes and not may_be_empty:
        remedy = "write a machine a line below the headings" if settings.nodes.csv else "fill the list or the ranges"
        where = document.where("nodes", "csv") if settings.nodes.csv else document.where("nodes")
        raise UsageError("the site names no machine", where=where, remedy=remedy)
    require_unique(nodes)
    return nodes


def require_unique(nodes: Sequence[SiteNode]) -> None:
    """Raises `UsageError` where two have something that only one can have."""
    for what, value_of in _ONLY_ONCE.items():
        _require_unique(nodes, what, value_of)


def _nodes(folder: Path, settings: SiteFile, document: Document) -> Iterator[SiteNode]:
    nodes = settings.nodes
    if nodes.csv is not None:
        for row in read_sheet(folder / nodes.csv, document.where("nodes", "csv")):
            yield from_row(row)
    for index, item in enumerate(nodes.listed):
        yield _from_list(item, document.where("nodes", "list", index))
    taken = {item.bmc for item in nodes.listed}
    number = 0
    for index, text in enumerate(nodes.ranges):
        for host in expand_range(text):
            number += 1
            if host not in taken:
                where = document.where("nodes", "ranges", index)
                yield SiteNode(where, f"{nodes.name_prefix}{number:03d}", host)


def from_row(row: Row) -> SiteNode:
    if not _NAME.match(row.name):
        raise UsageError(
            f"{row.name[:80]!r} is no host name",
            where=f"{row.where} name",
            remedy="use lower-case letters, digits and dashes, 63 at most",
        )
    return SiteNode(
        row.where,
        row.name,
        row.bmc,
        row.serial,
        row.rack,
        row.unit,
        row.user,
        row.password,
        row.tls_fingerprint,
        row.bmc_mac,
        row.login,
        row.boot_mac,
        row.pdu,
        row.address,
    )


def _from_list(item: ListedNode, where: str) -> SiteNode:
    pin, pdu = item.tls_fingerprint, item.pdu
    return SiteNode(
        where,
        item.name,
        item.bmc,
        item.serial,
        item.rack,
        item.unit,
        tls_fingerprint=pin,
        pdu=pdu,
        address=item.address,
    )


def _place(node: SiteNode) -> str:
    return f"{node.rack} U{node.unit}" if node.rack and node.unit is not None else ""


_ONLY_ONCE: Mapping[str, Callable[[SiteNode], str]] = {
    "name": lambda node: node.name,
    "bmc": lambda node: node.bmc,
    "serial": lambda node: node.serial,
    "unit": _place,
    "boot_mac": lambda node: node.boot_mac or "",
}
"""Field → what must be another for each machine; empty where it is not known."""


def _require_unique(nodes: Sequence[SiteNode], what: str, value_of: Callable[[SiteNode], str]) -> None:
    first: dict[str, SiteNode] = {}
    for node in nodes:
        value = value_of(node)
        if value and value.lower() in first:
            raise UsageError(
                f"{value} is given twice, first at {first[value.lower()].where}",
                where=f"{node.where} {what}",
                remedy="each machine has its own: correct the wrong one",
            )
        first[value.lower()] = node
