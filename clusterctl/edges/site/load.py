"""Reads a site directory into one frozen `Site`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.edges.resources import resource
from clusterctl.edges.site.model import ListedNode, SiteFile, SkuFile, expand_range
from clusterctl.edges.site.secrets import private_text, resolve
from clusterctl.edges.site.sheet import Row, read_sheet
from clusterctl.edges.site.textfile import read_yaml
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.sku import RootDisk, Sku
from clusterctl.formats.yaml_document import Document, validate
from clusterctl.ports import BmcAddress

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")


@dataclass(frozen=True, slots=True)
class SiteNode:
    """One machine that the site names. `user` and `password` are its factory ones, empty where the site's apply."""

    where: str
    name: str
    bmc: str
    serial: str = ""
    rack: str = ""
    unit: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Site:
    """Everything that a person said about the site. Secrets stay references until asked for."""

    folder: Path
    settings: SiteFile
    nodes: tuple[SiteNode, ...]
    skus: tuple[Sku, ...]
    by_name: Mapping[str, SiteNode]

    def bmc_address(self, node: str) -> BmcAddress:
        """How to log in to a node's BMC; reads the secret now."""
        found = self.by_name[node]
        bmc = self.settings.bmc
        password = found.password
        if not password:
            if bmc.password is None:
                raise UsageError(
                    f"no password for the BMC of {node}",
                    where=f"{self.folder / 'site.yml'} bmc.password",
                    remedy="set bmc.password, or a bmc_password column in the sheet",
                )
            password = resolve(bmc.password, self.folder, f"{self.folder / 'site.yml'} bmc.password")
        return BmcAddress(found.bmc, found.user or bmc.user, password, bmc.port, self.path(bmc.ca_file))

    def maas_api_key(self) -> str:
        where = f"{self.folder / 'site.yml'} provisioning.api_key"
        return resolve(self.settings.provisioning.api_key, self.folder, where)

    def path(self, name: str) -> str:
        """A path of the site file, relative to the site directory; empty stays empty."""
        return str((self.folder / name).resolve()) if name else ""

    def check_secrets(self) -> None:
        """Resolve every reference once, so that a missing secret is found before anything is touched."""
        self.maas_api_key()
        private_text(Path(self.path(self.settings.ssh.private_key)), f"{self.folder / 'site.yml'} ssh.private_key")
        without = next((node for node in self.nodes if not node.password), None)
        if without is not None:
            self.bmc_address(without.name)


def load_site(folder: Path) -> Site:
    """Read and validate `folder/site.yml` and everything it points to. Raises `UsageError`."""
    document = read_yaml(folder / "site.yml")
    settings = validate(document, SiteFile, "docs/site-file.md")
    nodes = tuple(_nodes(folder, settings, document))
    _unique(nodes)
    skus = tuple(_sku(folder, name, document.where("skus", i)) for i, name in enumerate(settings.skus))
    return Site(folder.resolve(), settings, nodes, skus, {node.name: node for node in nodes})


def _nodes(folder: Path, settings: SiteFile, document: Document) -> Iterator[SiteNode]:
    nodes = settings.nodes
    if nodes.csv is not None:
        for row in read_sheet(folder / nodes.csv):
            yield _from_row(row)
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


def _from_row(row: Row) -> SiteNode:
    if not _NAME.match(row.name):
        raise UsageError(
            f"name {row.name!r} is no host name",
            where=row.where,
            remedy="use lower-case letters, digits and dashes, 63 at most",
        )
    return SiteNode(row.where, row.name, row.bmc, row.serial, row.rack, row.unit, row.user, row.password)


def _from_list(item: ListedNode, where: str) -> SiteNode:
    return SiteNode(where, item.name, item.bmc, item.serial, item.rack, item.unit)


def _unique(nodes: tuple[SiteNode, ...]) -> None:
    if not nodes:
        raise UsageError("the site names no machine", where="site.yml nodes", remedy="fill the sheet or the ranges")
    for what in ("name", "bmc", "serial"):
        first: dict[str, SiteNode] = {}
        for node in nodes:
            value = getattr(node, what)
            if value and value in first:
                raise UsageError(
                    f"{what} {value} is given twice, first at {first[value].where}",
                    where=node.where,
                    remedy="each machine has its own",
                )
            first[value] = node


def _sku(folder: Path, name: str, where: str) -> Sku:
    """A SKU of the site's own `skus/`, else a shipped one."""
    own = folder / "skus" / f"{name}.yml"
    file = own if own.exists() else resource("skus") / f"{name}.yml"
    if not file.exists():
        shipped = ", ".join(sorted(f.stem for f in resource("skus").glob("*.yml")))
        raise UsageError(
            f"there is no SKU {name!r}", where=where, remedy=f"write skus/{name}.yml, or use a shipped one: {shipped}"
        )
    sku = validate(read_yaml(file), SkuFile, "docs/how-to-add-a-sku.md")
    disk = sku.root_disk
    gigabyte = 1_000_000_000
    rule = RootDisk(Serial(disk.serial), disk.model, disk.min_gb * gigabyte, disk.max_gb * gigabyte)
    return Sku(**(sku.model_dump(exclude={"root_disk"}) | {"root_disk": rule}))
