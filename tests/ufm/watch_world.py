"""A fabric with bad links, its tools, its UFM, a ticket system and technicians, all on one clock that tests move.

The links' errors grow as time passes; a repair ends them. `Killed` is raised in place of any call at which a test ends
the process: what was carried out stays, what follows does not happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from clusterctl.cabling.burn.coverage import UNLOADED, BurnReport
from clusterctl.cabling.burn.verdicts import LinkLoad, LoadVerdict
from clusterctl.cabling.health.findings import FabricLabels, HealthFinding, fabric_labels
from clusterctl.cabling.health.judge import FabricHealth
from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.edges.site import Site, load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.alarms import AlarmList
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId, PortState
from clusterctl.fleet.finding import Evidence, Observed, Origin, Verdict
from clusterctl.fleet.incidents.ticket_text import Attachment, TicketText
from clusterctl.fleet.node import Guid
from clusterctl.formats.ufm.rest import read_events
from clusterctl.operations import fabric_watch, tickets
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.cable_burn import CableBurnRequest, CableBurnResult
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_watch import WatchRequest, WatchResult
from clusterctl.operations.operation import Control, ignore
from clusterctl.ports import Deadline, Journal, LinkModel
from clusterctl.ports.tickets import Ticket
from tests.edges.site.ready import write_ready_site
from tests.formats.infiniband import printers
from tests.ufm.emulator import Ufm

START = datetime(2026, 3, 1, 8, tzinfo=UTC)
MINUTES = timedelta(minutes=1)


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Clock:
    at: datetime = START

    def now(self) -> datetime:
        return self.at


def fat_tree(leaves: int, spines: int, hosts: int) -> Fabric:
    """Leaves with so many hosts each, and two cables from each leaf to each spine."""
    switches = [
        Device(Guid(f"{0xA000 + n:016x}"), DeviceKind.SWITCH, f"leaf-{n}", 64, lids=(n,)) for n in range(1, leaves + 1)
    ]
    tops = [
        Device(Guid(f"{0xC000 + n:016x}"), DeviceKind.SWITCH, f"spine-{n}", 200, lids=(500 + n,))
        for n in range(1, spines + 1)
    ]
    adapters, links = [], []
    for at, leaf in enumerate(switches):
        for port in range(1, hosts + 1):
            number = at * hosts + port
            guid = Guid(f"{0xB0000 + number:016x}")
            name = f"node{number:04} mlx5_0"
            adapters.append(Device(guid, DeviceKind.CA, name, 1, port_guids=(guid,), lids=(1000 + number,)))
            links.append(Link(PortId(leaf.guid, port), PortId(guid, 1), 4, "NDR"))
        for up, spine in enumerate(tops):
            for twin in range(2):
                near = PortId(leaf.guid, hosts + 2 * up + twin + 1)
                links.append(Link(near, PortId(spine.guid, 2 * at + twin + 1), 4, "NDR"))
    return Fabric({device.guid: device for device in (*switches, *tops, *adapters)}, tuple(links))


def plan_csv(fabric: Fabric) -> str:
    """The wiring plan that the fabric was built by."""
    lines = ["source_device,source_port,destination_device,destination_port"]
    for link in fabric.links:
        a, b = (fabric.devices[end.guid] for end in (link.a, link.b))
        far = b.description.replace(" ", ",") if b.kind is DeviceKind.CA else f"{b.description},{link.b.number}"
        lines.append(f"{a.description},{link.a.number},{far}")
    return "\n".join(lines) + "\n"


def uplinks(fabric: Fabric) -> list[Link]:
    """The links between switches."""
    kinds = {guid: device.kind for guid, device in fabric.devices.items()}
    return [one for one in fabric.links if kinds[one.a.guid] is kinds[one.b.guid] is DeviceKind.SWITCH]


@dataclass
class World:
    """`sick`: links whose errors grow. `set`: each change of a port, in order. `kill_at`: the call that ends the process."""

    fabric: Fabric
    clock: Clock = field(default_factory=Clock)
    sick: set[Link] = field(default_factory=set)
    disabled: set[PortId] = field(default_factory=set)
    counts: dict[PortId, int] = field(default_factory=dict)
    set: list[tuple[PortId, bool]] = field(default_factory=list)
    ufm: Ufm = field(default_factory=Ufm)
    tickets: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    kill_at: int = -1
    kill_after: bool = False

    def pass_time(self, minutes: float) -> None:
        """Let time pass: the errors of sick links that are in use grow, too slowly to fill a counter of 16 bits in days."""
        self.clock.at += minutes * MINUTES
        for link in self.sick:
            if link.a not in self.disabled and link.b not in self.disabled:
                for end in (link.a, link.b):
                    self.counts[end] = self.counts.get(end, 0) + int(9 * minutes)

    def seen(self) -> Fabric:
        """The fabric as a sweep finds it: without devices that no link leads to."""
        links = tuple(one for one in self.fabric.links if one.a not in self.disabled and one.b not in self.disabled)
        linked = {end.guid for link in links for end in (link.a, link.b)}
        return Fabric({guid: one for guid, one in self.fabric.devices.items() if guid in linked}, links)

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call of the outside; the process may end before it or right after it."""
        self.calls += 1
        struck = self.calls == self.kill_at
        if struck and not self.kill_after:
            raise Killed
        yield
        if struck:
            raise Killed


@dataclass
class Tools:
    """Meets `FabricReader`, `CounterReader`, `PortAdmin` and `AlarmReader` for a world."""

    world: World

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]:
        with self.world.call():
            return self._observed("ibnetdiscover", printers.ibnetdiscover(self.world.seen()))

    def ibqueryerrors(self, deadline: Deadline) -> Observed[str]:
        errors = {port: {"SymbolErrorCounter": min(count, 0xFFFF)} for port, count in self.world.counts.items()}
        with self.world.call():
            return self._observed("ibqueryerrors", printers.ibqueryerrors(self.world.seen(), errors))

    def traffic(self, deadline: Deadline) -> Observed[str]:
        raise AssertionError("no traffic is read")

    def device(self, lid: int, deadline: Deadline) -> Observed[Guid]:
        (guid,) = [guid for guid, device in self.world.fabric.devices.items() if device.lids == (lid,)]
        return Observed(guid, self._observed("smpquery", str(guid)).evidence)

    def state(self, lid: int, port: int, deadline: Deadline) -> Observed[PortState]:
        return self._state(PortId(self.device(lid, deadline).value, port))

    def set_disabled(self, lid: int, port: int, disabled: bool, deadline: Deadline) -> Observed[PortState]:
        one = PortId(self.device(lid, deadline).value, port)
        with self.world.call():
            self.world.set.append((one, disabled))
            (self.world.disabled.add if disabled else self.world.disabled.discard)(one)
        return self._state(one)

    def alarms(self, deadline: Deadline) -> Observed[AlarmList]:
        with self.world.call():
            return Observed(read_events(self.world.ufm.events, UTC, "ufm"))

    def _state(self, port: PortId) -> Observed[PortState]:
        out = port in self.world.disabled
        return Observed(
            PortState("Down" if out else "Active", "Disabled" if out else "LinkUp"),
            self._observed("ibportstate", str(out)).evidence,
        )

    def _observed(self, source: str, text: str) -> Observed[str]:
        return Observed(text, (Evidence(source, "controller", self.world.clock.now(), Origin.REAL, text.encode()),))


@dataclass
class TicketSystem:
    """Meets `Tickets` for a world."""

    world: World

    def find(self, incident: str, since: datetime, deadline: Deadline) -> Ticket | None:
        found = [one for one in self.world.tickets if one["incident"] == incident]
        return self._ticket(found[0]) if found else None

    def create(self, text: TicketText, deadline: Deadline) -> Ticket:
        with self.world.call():
            key = f"OPS-{len(self.world.tickets) + 1}"
            one = {"key": key, "incident": text.incident, "body": text.body, "closed": False, "notes": []}
            self.world.tickets.append(one)
        return self._ticket(one)

    def attach(self, key: str, attachment: Attachment, deadline: Deadline) -> None:
        raise AssertionError("a link has no sheet")

    def note(self, key: str, text: str, deadline: Deadline) -> None:
        with self.world.call():
            self._named(key)["notes"].append(text)

    def has_note(self, key: str, marker: str, deadline: Deadline) -> bool:
        return any(marker in note for note in self._named(key)["notes"])

    def read(self, key: str, deadline: Deadline) -> Ticket:
        return self._ticket(self._named(key))

    def _named(self, key: str) -> dict[str, Any]:
        return next(one for one in self.world.tickets if one["key"] == key)

    def _ticket(self, one: Mapping[str, Any]) -> Ticket:
        return Ticket(key=one["key"], url=f"https://ops.example/{one['key']}", closed=one["closed"])


@dataclass
class SiteAdapters:
    """Meets what the watch uses of `Adapters`."""

    tools: Tools
    telemetry: None = None

    @property
    def fabric(self) -> Tools:
        return self.tools

    @property
    def fabric_ports(self) -> Tools:
        return self.tools

    @property
    def counters(self) -> Tools:
        return self.tools

    def close(self) -> None:
        """Close nothing."""


@dataclass
class Burns:
    """Burns of single links. `asked`: the links of each one; `share`: % of its rate that each direction carries, and
    `one_way`: only the first; `slow`: links that are named as slow; `refusal`: why none begins;
    `killed`: the process ends once the result is written.
    """

    asked: list[tuple[str, ...]] = field(default_factory=list)
    requests: list[CableBurnRequest] = field(default_factory=list)
    share: float = 97.0
    one_way: bool = False
    slow: bool = False
    refusal: str = ""
    killed: bool = False
    stuck: dict[str, str] = field(default_factory=dict)

    def run(self, world: World, request: CableBurnRequest) -> CableBurnResult:
        self.asked.append(request.links)
        world.kill_at = world.calls + 2 if self.killed else world.kill_at
        self.requests.append(request)
        if self.refusal:
            raise UsageError(self.refusal, where="NODE")
        labels = fabric_labels(world.fabric)
        links = [
            link for link in world.seen().links if f"{labels.device(link.a.guid)}:{link.a.number}" in request.links
        ]
        ways = [
            self._way(*ends, first=ends[0] == link.a) for link in links for ends in ((link.a, link.b), (link.b, link.a))
        ]
        slow = [self._finding(labels, link) for link in links if self.slow]
        health = FabricHealth(len(links), 0, len(slow), request.stage_s, None, tuple(slow), ())
        report = BurnReport(tuple(ways), 0, health)
        return CableBurnResult(hosts=("a", "b"), skipped={}, stages=1, report=report, goal=97.0, stuck=self.stuck)

    def _way(self, source: PortId, target: PortId, *, first: bool) -> LoadVerdict:
        if self.one_way and not first:
            return LoadVerdict(LinkLoad(source, target, 400, None), Verdict.INCONCLUSIVE, UNLOADED)
        return LoadVerdict(LinkLoad(source, target, 400, self.share), Verdict.FAIL if self.slow else Verdict.PASS)

    def _finding(self, labels: FabricLabels, link: Link) -> HealthFinding:
        ends = (labels.name(link.a), labels.name(link.b))
        return HealthFinding(HealthKind.SLOW, Verdict.FAIL, f"it carried {self.share:g} %", "replace the cable", ends)


class StruckJournal:
    """A journal of a world: each append is a call at which the process may end."""

    def __init__(self, journal: SqlJournal, world: World) -> None:
        self._journal = journal
        self._world = world

    def append(self, events: Any, *, claim: Any = None) -> Any:
        with self._world.call():
            return self._journal.append(events, claim=claim)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)


@dataclass
class Watched:
    """A site whose fabric is the world. `kills`: how often the process was ended."""

    folder: Path
    world: World
    site: Site
    runs: int = 0
    kills: int = 0
    links: LinkModel | None = None
    burns: Burns = field(default_factory=Burns)

    def opened(self) -> SiteContext:
        """The context of a new process, on the world's clock."""
        self.runs += 1
        url = f"sqlite:///{self.folder}/watch.db"
        journal = open_journal(url, self.world.clock, Holder(f"run-{self.runs}"))
        tools = SiteAdapters(Tools(self.world))
        struck = cast("Journal", StruckJournal(journal, self.world))
        return SiteContext(self.site, struck, f"run-{self.runs}", lambda _site, _access: cast("Adapters", tools))

    def once(self, *, dry_run: bool = False, sync: bool = True) -> WatchResult:
        """One pass by a new process, then its tickets. `Killed` ends the process."""
        context = self.opened()
        tools = Tools(self.world)
        try:
            request, control = WatchRequest(dry_run=dry_run), Control(None, ignore)
            result = fabric_watch.run(context, request, control, {"ufm": tools}, self.links, self.burned)
            if sync and not dry_run:
                tickets.run(context, lambda _node: "", TicketSystem(self.world), timedelta(0))
            return result
        finally:
            context.journal.close()

    def burned(self, context: SiteContext, request: CableBurnRequest, control: Control) -> CableBurnResult:
        """Play the burn that the pass asks for; time passes meanwhile."""
        with self.world.call():
            result = self.burns.run(self.world, request)
            self.world.pass_time(request.stage_s / 60)
            return result

    def after(self, minutes: float) -> WatchResult:
        """Let time pass, and do one pass; a process that is killed is started again."""
        self.world.pass_time(minutes)
        while True:
            try:
                return self.once()
            except Killed:
                self.kills += 1
                self.world.kill_at = -1


SECTION = """\
  watch: {act: %s, adaptive: %s}
"""
TICKETS = "tickets: {kind: webhook, url: 'https://ops.example', token: {env: OPS_TOKEN}}\n"


def watched(folder: Path, fabric: Fabric, *, act: bool = True, adaptive: bool = False) -> Watched:
    """A site with the fabric's plan and a ticket system; the watch may act."""
    write_ready_site(folder)
    text = (folder / "site.yml").read_text()
    section = SECTION % (str(act).lower(), str(adaptive).lower())
    (folder / "site.yml").write_text(text.replace("\nfabric:\n", f"\nfabric:\n{section}") + TICKETS)
    (folder / "wiring.csv").write_text(plan_csv(fabric))
    return Watched(folder, World(fabric), load_site(folder))


def sick(world: World, links: list[Link]) -> None:
    """From now on these links have errors."""
    world.sick |= set(links)


def repaired(world: World, link: Link) -> None:
    """A technician has replaced the cable."""
    world.sick.discard(link)


def slower(fabric: Fabric, link: Link) -> Fabric:
    """The fabric with one link at half its width."""
    links = tuple(replace(one, width=2) if one == link else one for one in fabric.links)
    return Fabric(fabric.devices, links)
