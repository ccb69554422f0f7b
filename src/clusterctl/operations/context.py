"""A site and its journal, opened for one command: what every command but `init` and `lab` begins with."""

from __future__ import annotations

import getpass
import math
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import click
import stamina

from clusterctl.edges.disk import disk_explained
from clusterctl.edges.journal import open_journal
from clusterctl.edges.site import Site, SiteNode, load_site
from clusterctl.edges.site.load import check_journal_file
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.fabric.history import STREAM as FABRIC
from clusterctl.fleet.fabric.history import FabricFault, standing_faults
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Location, NodeId, Serial
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.ports import Journal


class SystemClock:
    """The controller's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


CLOCK = SystemClock()
DESCRIBE_ATTEMPTS = 5
SERIALS_S = 10.0
"""Seconds for which nodes that the journal knows no serial of are taken to have none."""


@dataclass(frozen=True, slots=True)
class Office:
    """The site as its person wrote it, the journal as it happened, and the id of this run."""

    site: Site
    journal: Journal
    run: str

    def nodes(self) -> tuple[NodeSummary, ...]:
        """The fleet by name: what the journal knows, and what only the site names so far (nothing is written)."""
        known = {node.name: node for node in self.journal.summaries()}
        fresh = [summarise(_unseen(node)) for node in self.site.nodes if node.name not in known]
        return tuple(sorted([*known.values(), *fresh], key=lambda node: node.name))

    def node(self, name: str) -> NodeState:
        """A node of the journal by its name."""
        (state,) = self.named([name])
        return state

    def named(self, names: Iterable[str]) -> list[NodeState]:
        """Nodes of the journal by their names, in that order; the fleet is read once for all of them."""
        known = {node.name: node.id for node in self.journal.summaries()}
        return [self.journal.state(known[name] if name in known else self._refuse(name)) for name in names]

    def _refuse(self, name: str) -> NoReturn:
        if any(node.name == name for node in self.site.nodes):
            remedy = "run clusterctl discover first"
            raise UsageError(f"nothing has happened to {name} yet", where=name, remedy=remedy)
        raise UsageError(f"there is no node {name!r}", where=name, remedy="clusterctl nodes lists their names")

    def faults(self) -> tuple[FabricFault, ...]:
        """What was wrong with the fabric, and no node's fault, when it was last read."""
        return standing_faults(self.journal.latest(FABRIC, Kind.FABRIC_FAULT_SEEN))

    def unseen(self, name: str) -> NodeState:
        """A node that nothing has happened to yet, as the site describes it."""
        return next(_unseen(node) for node in self.site.nodes if node.name == name)

    @stamina.retry(on=ConflictError, attempts=DESCRIBE_ATTEMPTS, wait_max=1.0)
    def describe(self) -> None:
        """Write what the site says of its nodes where that is new or has changed.

        Where another run named the same nodes at the same moment, its word is read and holds.
        """
        known = {node.name: node for node in self.journal.summaries()}
        events = [_description(node, known.get(node.name)) for node in self.site.nodes]
        new = [event for event in events if event is not None]
        if new:
            self.journal.append(new)

    def evidence(self, digests: Iterable[Digest]) -> Mapping[Digest, Evidence]:
        """Those of them that the journal has, in their order."""
        return self.journal.evidences(digests)


def open_office(folder: Path, *, thorough: bool = False) -> Office:
    """Read the site, open its journal. Errors name what is wrong; nothing is changed but the journal's tables.

    `thorough` reads all that the site names first, secrets among it: for what will act on machines.
    """
    site = load_site(folder)
    if thorough:
        from clusterctl.edges.site.contents import check_contents

        check_contents(site)
    check_journal_file(site)
    run = datetime.now(UTC).strftime("%Y%m%dT%H%M%S-") + uuid.uuid4().hex[:4]
    lease_s = site.settings.claims.lease_s
    url = site.journal_url()
    journal = open_journal(url, CLOCK, run=run, actor=_actor(), command=_command(), lease_s=lease_s)
    command = click.get_current_context(silent=True)
    if command is not None:
        command.call_on_close(journal.close)
    return Office(site.knowing(_Serials(journal)), journal, run)


class _Serials:
    """Which machine a node is, by the journal; of one that it did not know it is asked again a little later."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, str] = {}
        self._asked = -math.inf

    def __call__(self, name: str) -> str:
        if not self._known.get(name) and time.monotonic() - self._asked > SERIALS_S:
            self._asked = time.monotonic()
            self._known = {node.name: node.serial or "" for node in self._journal.summaries()}
        return self._known.get(name, "")


def state_dir(site: Site) -> Path:
    """Where the site keeps what is neither the person's nor the journal's: host keys, run directories. Mode 0700."""
    path = site.folder / "state"
    with disk_explained("the state directory cannot be made", path):
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def _actor() -> str:
    """Who acts: the person behind sudo where there is one."""
    return os.environ.get("SUDO_USER") or getpass.getuser()


def _command() -> str:
    """The command as a person would name it (`burnin nightly`), without arguments; empty outside of one."""
    names: list[str] = []
    context = click.get_current_context(silent=True)
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name or "")
        context = context.parent
    return " ".join(names)


def _unseen(node: SiteNode) -> NodeState:
    location = Location(node.rack, node.unit)
    expected = Serial(node.serial) if node.serial else None
    identity = NodeId(node.name)
    return NodeState(
        identity, node.name, bmc=node.bmc, location=location, expected_serial=expected, boot_mac=node.boot_mac
    )


def _description(node: SiteNode, known: NodeSummary | None) -> NewEvent | None:
    """The site's words on a node as an event; None where the journal has them already."""
    said = (node.bmc, Location(node.rack, node.unit), node.serial or None, node.boot_mac)
    if known is not None and said == (known.bmc, known.location, known.expected_serial, known.boot_mac):
        return None
    data = {"name": node.name, "bmc": node.bmc, "serial": node.serial, "rack": node.rack, "unit": node.unit}
    data |= {"boot_mac": node.boot_mac} if node.boot_mac else {}
    return NewEvent("node", known.id if known else uuid.uuid4().hex[:12], Kind.NODE_DESCRIBED, data)
