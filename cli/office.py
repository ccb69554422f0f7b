"""A site and its journal, opened for one command: what every command but `init` and `lab` begins with."""

from __future__ import annotations

import getpass
import os
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.edges.site import Site, SiteNode, load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Location, NodeId, Serial
from clusterctl.fleet.state import NodeState, Summary, summarise


class SystemClock:
    """The controller's clock, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Office:
    """The site as its person wrote it, the journal as it happened, and the id of this run."""

    site: Site
    journal: SqlJournal
    run: str

    def nodes(self) -> tuple[Summary, ...]:
        """The fleet by name: what the journal knows, and what only the site names so far (nothing is written)."""
        known = {node.name: node for node in self.journal.summaries()}
        fresh = [_unseen(node) for node in self.site.nodes if node.name not in known]
        return tuple(sorted([*known.values(), *fresh], key=lambda node: node.name))

    def node(self, name: str) -> NodeState:
        """A node of the journal by its name."""
        for node in self.journal.summaries():
            if node.name == name:
                return self.journal.state(node.id)
        if any(node.name == name for node in self.site.nodes):
            remedy = "run clusterctl discover first"
            raise UsageError(f"nothing has happened to {name} yet", where=name, remedy=remedy)
        raise UsageError(f"there is no node {name!r}", where=name, remedy="clusterctl nodes lists their names")

    def describe(self) -> None:
        """Write what the site says of its nodes where that is new or has changed."""
        known = {node.name: node for node in self.journal.summaries()}
        events = [_description(node, known.get(node.name)) for node in self.site.nodes]
        new = [event for event in events if event is not None]
        if new:
            self.journal.append(new)

    def evidence(self, digests: Iterable[Digest]) -> dict[str, Evidence]:
        found = {digest: self.journal.evidence(digest) for digest in digests}
        return {digest: item for digest, item in found.items() if item is not None}


def open_office(folder: Path) -> Office:
    """Read the site, open its journal. Errors name what is wrong; nothing is changed but the journal's tables."""
    site = load_site(folder)
    run = datetime.now(UTC).strftime("%Y%m%dT%H%M%S-") + uuid.uuid4().hex[:4]
    return Office(site, open_journal(_journal_url(site), CLOCK, run=run, actor=_actor()), run)


def state_dir(site: Site) -> Path:
    """Where the site keeps what is neither the person's nor the journal's: host keys, run directories. Mode 0700."""
    path = site.folder / "state"
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def _actor() -> str:
    """Who acts: the person behind sudo where there is one."""
    return os.environ.get("SUDO_USER") or getpass.getuser()


def _journal_url(site: Site) -> str:
    url = site.settings.journal
    name = url.removeprefix("sqlite:///")
    return url if name == url or name.startswith("/") else f"sqlite:///{site.folder / name}"


def _unseen(node: SiteNode) -> Summary:
    location = Location(node.rack, node.unit)
    expected = Serial(node.serial) if node.serial else None
    state = NodeState(NodeId(node.name), node.name, bmc=node.bmc, location=location, expected_serial=expected)
    return summarise(state)


def _description(node: SiteNode, known: Summary | None) -> NewEvent | None:
    """The site's words on a node as an event; None where the journal has them already."""
    said = (node.bmc, Location(node.rack, node.unit), node.serial or None)
    if known is not None and said == (known.bmc, known.location, known.expected_serial):
        return None
    data = {"name": node.name, "bmc": node.bmc, "serial": node.serial, "rack": node.rack, "unit": node.unit}
    return NewEvent("node", known.id if known else uuid.uuid4().hex[:12], Kind.NODE_DESCRIBED, data)
