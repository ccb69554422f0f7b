"""The site and its journal, opened for one run of an operation."""

from __future__ import annotations

import getpass
import logging
import math
import os
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.site import Site, SiteNode, load_site
from clusterctl.edges.site.load import check_journal_file, journal_connected
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream, node_event
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.node import Location, NodeId, Serial, Stage
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.ports.journal import Claim, Journal
from clusterctl.site.urls import place_of

if TYPE_CHECKING:
    from clusterctl.fleet.payloads.hardware import FabricFault

log = logging.getLogger(__name__)

DESCRIBE_ATTEMPTS = 5
SERIALS_S = 10.0
"""Seconds for which a node without a serial in the journal is not looked up again."""


def current_user() -> str:
    """Return the acting user: the one behind sudo where there is one."""
    return os.environ.get("SUDO_USER") or getpass.getuser()


@dataclass(frozen=True, slots=True)
class Invocation:
    """Who runs which command (`burnin nightly`): both are written into the journal. `run`: empty for a new id.

    under  the claim on the run, where a worker carries it out: without it the journal takes nothing of this run
    """

    actor: str = field(default_factory=current_user)
    command: str = ""
    run: str = ""
    under: Claim | None = None


def new_run_id() -> str:
    """Return an id for a run; ids sort by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S-") + uuid.uuid4().hex[:4]


@dataclass(frozen=True, slots=True)
class SiteContext:
    """The site as its files describe it, the journal as it happened, and the id of this run.

    connect  makes the adapters to the outside systems, for tests and simulations; None: the real ones
    on_wait  receives what the run waits for: another run's installs, reboots, power-ons or requests
    """

    site: Site
    journal: Journal
    run: str
    connect: Callable[[Site, Access], Adapters] | None = None
    on_wait: Callable[[str], None] = log.info

    def adapters(self, access: Access = Access.FULL) -> Adapters:
        """Return adapters to the outside systems; the caller closes them."""
        if self.connect is not None:
            return self.connect(self.site, access)
        from clusterctl.operations.shared_limits import SharedLimits  # here: what only reads the journal starts sooner
        from clusterctl.operations.site_adapters import SiteAdapters

        return SiteAdapters(self.site, access, SharedLimits(self.journal, self.on_wait))

    def reporting(self, on_wait: Callable[[str], None]) -> SiteContext:
        """Return the same site and run, which reports what it waits for."""
        return replace(self, on_wait=on_wait)

    def nodes(self) -> tuple[NodeSummary, ...]:
        """Return the fleet by name: what the journal knows, and nodes that only the site names so far."""
        return self.with_unseen(self.journal.summaries())

    def names(self) -> tuple[str, ...]:
        """Return the names of `nodes`, without reading the nodes."""
        return tuple(sorted({*self.journal.names(), *(node.name for node in self.site.nodes)}))

    def with_unseen(self, known: Iterable[NodeSummary]) -> tuple[NodeSummary, ...]:
        """Return these nodes and those that only the site names so far, by name."""
        by_name = {node.name: node for node in known}
        new = [summarise(_unseen(node)) for node in self.site.nodes if node.name not in by_name]
        return tuple(sorted([*by_name.values(), *new], key=lambda node: node.name))

    def listed(self) -> list[NodeSummary]:
        """Return the nodes that the site names, by name."""
        names = {node.name for node in self.site.nodes}
        return [node for node in self.nodes() if node.name in names]

    def summaries(self, names: Collection[str]) -> list[NodeSummary]:
        """Return the nodes of the journal that have one of these names, in the journal's order."""
        return [node for node in self.journal.summaries() if node.name in names]

    def node(self, name: str) -> NodeState:
        """Return a node of the journal by its name."""
        (state,) = self.named([name])
        return state

    def named(self, names: Iterable[str]) -> list[NodeState]:
        """Return nodes of the journal by their names, in that order; reads the fleet once."""
        known = self.journal.names()
        return [self.journal.state(known[name] if name in known else self._refuse(name)) for name in names]

    def states(self, names: Iterable[str]) -> list[NodeState]:
        """Return nodes by their names; those that only the site names as the site describes them.

        All nodes of the journal are read at once: a query for each costs as much as reading its state.
        """
        wanted = list(names)
        known = self.journal.names()
        found = {state.id: state for state in self.journal.states()} if known.keys() <= set(wanted) else {}
        return [
            (found.get(known[name]) or self.journal.state(known[name])) if name in known else self.unseen(name)
            for name in wanted
        ]

    def _refuse(self, name: str) -> NoReturn:
        if any(node.name == name for node in self.site.nodes):
            remedy = "run clusterctl discover first"
            raise UsageError(f"the journal has no event of {name} yet", where=name, remedy=remedy)
        raise UsageError(f"there is no node {name!r}", where=name, remedy="clusterctl nodes lists their names")

    def faults(self) -> tuple[FabricFault, ...]:
        """Return the fabric's faults that concern no single node, as of its last reading."""
        from clusterctl.fleet.fabric.history import open_faults

        return open_faults(self.journal.latest(Stream.FABRIC, Kind.FABRIC_FAULT_SEEN))

    def unseen(self, name: str) -> NodeState:
        """Return a node without events, as the site describes it. Raises `UsageError` for an unknown name."""
        found = next((_unseen(node) for node in self.site.nodes if node.name == name), None)
        return found if found is not None else self._refuse(name)

    def describe(self) -> None:
        """Write the site's description of its nodes into the journal where it is new or has changed.

        Where another run described the same nodes at the same moment, its events are read and hold.
        """
        import stamina

        for attempt in stamina.retry_context(on=ConflictError, attempts=DESCRIBE_ATTEMPTS, wait_max=1.0):
            with attempt:
                self._describe()

    def _describe(self) -> None:
        fleet = self.journal.summaries()
        known = {node.name: node for node in fleet}
        renamed = _renamed(self.site.nodes, fleet)
        for name, node in renamed.items():
            log.warning("%s is the machine that was %s, by its serial %s", name, node.name, node.serial)
        events = [_description(node, known.get(node.name) or renamed.get(node.name)) for node in self.site.nodes]
        new = [event for event in events if event is not None]
        if new:
            self.journal.append(new)

    def ordered_here(self, nodes: Iterable[NodeId], kind: Kind) -> frozenset[str]:
        """Return those of the nodes of which this very run has written such an order: begun again, it goes on with it.

        Another worker begins a run again where its first one was lost, however far that one came.
        """
        events = self.journal.histories(tuple(nodes), (kind,))
        return frozenset(event.subject for event in events if event.run == self.run)

    def evidence(self, digests: Iterable[Digest]) -> Mapping[Digest, Evidence]:
        """Return the evidence that the journal holds of these digests, in their order."""
        return self.journal.evidences(digests)


def open_site(folder: Path, invocation: Invocation | None = None, *, thorough: bool = False) -> SiteContext:
    """Read the site and open its journal; the caller closes the journal. Errors name what is wrong.

    Nothing is changed but the journal's tables. `thorough` reads everything that the site names, secrets included: for
    operations that act on machines.
    """
    began = time.monotonic()
    site = load_site(folder)
    log.info("site file %s: %d nodes, read in %.2f s", site.document.file, len(site.nodes), time.monotonic() - began)
    if thorough:
        from clusterctl.edges.site.contents import check_contents  # here, not above: it imports all checks

        check_contents(site)
    check_journal_file(site)
    by = invocation or Invocation()
    run = by.run or new_run_id()
    holder = Holder(run, by.actor, by.command, lease_s=site.settings.claims.lease_s, under=by.under)
    began = time.monotonic()
    journal = open_journal(site.journal_url(), CLOCK, holder)
    journal_connected(site)
    log.info("journal %s: opened in %.2f s", place_of(site.journal_url()), time.monotonic() - began)
    return SiteContext(site.knowing(_Serials(journal)), journal, run)


def on_replica(context: SiteContext) -> SiteContext:
    """Return the same site with a journal that reads from its replica; itself where the site names none.

    For what shows the fleet. What decides reads the journal's database: a replica may be some moments behind.
    """
    url = context.site.replica_url()
    if not url:
        return context
    journal = open_journal(context.site.journal_url(), CLOCK, Holder(context.run), replica=url)
    return replace(context, journal=journal)


class _Serials:
    """Return a node's serial by the journal; a missing one is looked up again after `SERIALS_S`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, str] = {}
        self._asked = -math.inf

    def __call__(self, name: str) -> str:
        if not self._known.get(name) and time.monotonic() - self._asked > SERIALS_S:
            self._asked = time.monotonic()
            self._known = {node.name: node.serial or "" for node in self._journal.summaries()}
        return self._known.get(name, "")


def _unseen(node: SiteNode) -> NodeState:
    return NodeState(
        NodeId(node.name),
        node.name,
        bmc=node.bmc,
        location=Location(node.rack, node.unit),
        expected_serial=Serial(node.serial) if node.serial else None,
        boot_mac=node.boot_mac,
    )


def _renamed(listed: Iterable[SiteNode], fleet: Iterable[NodeSummary]) -> Mapping[str, NodeSummary]:
    """Return the nodes that the site lists under a new name, by that: the machine's serial is known by another one.

    The former name must be gone from the site, and no node of the journal may have the new one.
    """
    names = {node.name for node in listed}
    known = {node.name for node in fleet}
    gone = {node.serial: node for node in fleet if node.serial and node.name not in names}
    living = {serial: node for serial, node in gone.items() if node.stage is not Stage.RETIRED}
    new = (node for node in listed if node.name not in known and node.serial)
    return {node.name: living[Serial(node.serial)] for node in new if node.serial in living}


def _description(node: SiteNode, known: NodeSummary | None) -> NewEvent | None:
    """Return the site's description of a node as an event; None where the journal has it already."""
    described = (node.name, node.bmc, Location(node.rack, node.unit), node.serial or None, node.boot_mac)
    if known is not None:
        as_known = (known.name, known.bmc, known.location, known.expected_serial, known.boot_mac)
        if described == as_known:
            return None
    from clusterctl.fleet.payloads.node import NodeDescribed

    payload = NodeDescribed(
        name=node.name,
        bmc=node.bmc,
        rack=node.rack,
        unit=node.unit,
        serial=Serial(node.serial) if node.serial else None,
        boot_mac=node.boot_mac,
    )
    return node_event(known.id if known else uuid.uuid4().hex[:12], payload)
