"""The burn of a fabric: hosts write to each other until every link was loaded in both directions, stage after stage.

What is loaded is known by the switches' counters, read while the flows run, never by the plan alone. Each stage is
journaled with its readings when it ends: a killed burn goes on with the links that no stage has loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import ceil

from clusterctl.cabling.burn.coverage import MOST_INEXACT, BurnReport, Coverage, Snapshot, StageReading, Way
from clusterctl.cabling.burn.plan import BurnPlan, Lengths, Scope, plan_burn
from clusterctl.cabling.burn.routes import DirectedLink, Routes
from clusterctl.cabling.burn.scope import BurnScope, links_within, named_links
from clusterctl.cabling.burn.stages import BurnStage
from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.cabling.health.judge import lost_switches
from clusterctl.cabling.mass_failure import FEWEST
from clusterctl.fleet.errors import EdgeError, ParseError, UsageError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Transceiver
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.runs import (
    BurnEnded,
    BurnStageMeasured,
    BurnStarted,
    BurnSwitchBack,
    BurnSwitchGone,
    FailedFlow,
)
from clusterctl.fleet.state import NodeState
from clusterctl.formats.identifiers import guid_of
from clusterctl.formats.infiniband.adapters import parse_ibstat
from clusterctl.formats.infiniband.fabric_file import decode_telemetry, reading_s
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.infiniband.opensm import parse_dump_fts
from clusterctl.ports import Claim, CounterReader, Deadline, FabricReader, HostAddress, Journal, Shell, TableReader
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.node_under_test import SessionFailure, SkuLimits, read_probes
from clusterctl.steps.cable.link_health import counters_read
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl_burnin.checks.gpu_topology import TOPOLOGY
from clusterctl_burnin.checks.host_network import ADDRESSES
from clusterctl_burnin.limits.methods import PairMethod
from clusterctl_burnin.loads import fabric_flows
from clusterctl_burnin.loads.fabric_flows import AdapterFlow, FlowEnd, FlowResult
from clusterctl_burnin.loads.model import Answer, Participant
from clusterctl_burnin.loads.rank_placement import seat
from clusterctl_burnin.probe import script
from clusterctl_burnin.probes.ibstat import IBSTAT
from clusterctl_burnin.sweep import at_most

LOOK_S = 120.0
"""Seconds for a host to report its adapters."""
READ_S = 300.0
"""Seconds for one reading of the fabric, its tables or its counters."""
RETRIES = 3
"""So many stages in a row may be without a result before the burn stops."""
PAUSE_S = 30.0
"""Seconds after a stage without a result: by then the subnet manager has seen a change."""
SEPARATIONS = 4
"""So many stages of a cycle look for the slow links of slow flows."""
_NAMED = 5
"""Failed flows of a stage that are printed; the journal has all."""
_STAGE_TAKES = 1.5
"""A stage, with its readings, takes at most so many times as long as it loads its links."""
_WARM_UP_S = 30.0
"""Seconds that flows get at most until they run."""
_USABLE = 0.75
"""Share of a stage that is left for both readings and the time between them, whatever its length."""
_MARGIN = 1.25
"""So much longer than the last reading needs, since the next one may be slower."""
_PROBES = (IBSTAT, TOPOLOGY, ADDRESSES)


@dataclass(frozen=True, slots=True)
class BurnHost:
    """A host that takes part. `rails`: the place of each adapter among the member's devices, by node GUID."""

    host: HostAddress
    member: Participant
    rails: Mapping[Guid, int]
    method: PairMethod


@dataclass(frozen=True, slots=True)
class BurnServices:
    """What a burn works with; `profiles`: by SKU."""

    shell: Shell
    fabric: FabricReader
    tables: TableReader
    counters: CounterReader
    journal: Journal
    access: SshAccess
    profiles: Mapping[str, SkuLimits]


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnSettings:
    """How a burn is made.

    scope      the links that it is about
    stage_s    seconds for which a stage loads its links
    longest_s  seconds that a stage may load them where a reading of the counters takes long
    cycles     so many times every link is loaded; None: until the time is over
    adaptive   the switches route adaptively
    limits     by which loads and counters are judged
    plan       for the names and places of ports
    modules    cables and transceivers as the fabric's history has them, for their serials
    nodes      names and patterns that were ordered
    """

    scope: BurnScope
    stage_s: int
    longest_s: int
    cycles: int | None
    adaptive: bool
    limits: FabricLimits
    plan: WiringPlan
    modules: Mapping[PortId, Transceiver] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    """The fabric and its tables, read one after the other, and their plan."""

    read: Observed[str]
    fabric: Fabric
    plan: BurnPlan


def look_at(services: BurnServices, node: NodeState, deadline: Deadline) -> BurnHost | str:
    """Return the host with its adapters by its own report; in words why it cannot take part."""
    host, profile = services.access.address(node), services.profiles.get(node.sku)
    if host is None:
        return "its address or host key is unknown"
    if profile is None:
        return f"the site has no SKU {node.sku or 'for it'}"
    answer, _ = read_probes(
        services.shell, host, script(_PROBES), deadline.within(min(LOOK_S, at_most(_PROBES))), privileged=False
    )
    if isinstance(answer, SessionFailure):
        return answer.cause
    try:
        member = seat(answer, host.address, profile.sku).member(host.name, host.address)
        guids = {adapter.name: guid_of(adapter.node_guid) for adapter in parse_ibstat(answer.text(IBSTAT))}
        rails = {guids[device]: rail for rail, device in enumerate(member.devices)}
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        return peer_error(error, host.name).message
    if not member.devices:
        return "it shows no InfiniBand adapter of its SKU"
    return BurnHost(host, member, rails, profile.limits.methods.ib_write_bw)


@dataclass(slots=True)
class FabricBurn:
    """One burn, `subject` in the journal's stream `campaign`, under the claim that only one burn has.

    on_event  receives a line of text for everything that an operator wants to follow
    """

    services: BurnServices
    settings: BurnSettings
    hosts: dict[str, BurnHost]
    subject: str
    claim: Claim
    on_event: Callable[[str], None]
    coverage: Coverage = field(init=False)
    stage_s: int = field(init=False)
    cycle: int = 1
    stages: int = 0
    _failures: int = 0
    _separations: int = 0
    _slow: int = 0
    _flows: int = 0
    _within: set[DirectedLink] = field(default_factory=set)
    _gone: set[Guid] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.stage_s = self.settings.stage_s
        self.coverage = Coverage(self.settings.limits, adaptive=self.settings.adaptive)

    def start(self) -> None:
        """Write that the burn begins, or goes on."""
        settings = self.settings
        payload = BurnStarted(
            hosts=tuple(sorted(self.hosts)),
            rails=tuple(sorted(settings.scope.rails)),
            stage_s=settings.stage_s,
            adaptive=settings.adaptive,
            limits=settings.limits.digest,
            leaves=tuple(sorted(settings.scope.leaves)),
            nodes=settings.nodes,
            links=tuple(sorted(f"{port.device}:{port.port}" for port in settings.scope.links)),
        )
        self._append(payload)

    def recall(self, stages: Iterable[BurnStageMeasured]) -> int:
        """Add the stages that the journal has of this burn; return their number."""
        for stage in stages:
            digests = stage.readings
            found = self.services.journal.evidences(digests)
            if len(found) < len(set(digests)):
                self.on_event("a stage does not count: the journal has not all of its readings")
                continue
            *texts, ways = [found[digest].content.decode() for digest in digests]
            before, after = _snapshot(*texts[:2]), _snapshot(*texts[2:])
            self.coverage.add(StageReading(stage.cycle, _ways_in(ways, before.fabric), before, after))
            self.cycle = max(self.cycle, stage.cycle)
            self.stages += 1
        if self.coverage.fabric is not None and self.coverage.latest is not None:
            self._gone = set(lost_switches(self.coverage.fabric, self.coverage.latest))
        return self.stages

    def ready(self, deadline: Deadline, suspects: frozenset[DirectedLink] = frozenset()) -> Ready:
        """Read the fabric and its tables, and plan the stages that are left of this cycle, or the one that separates
        the suspects.

        Raises `ParseError` where they do not fit together, as while the subnet manager changes them.
        """
        read = self.services.fabric.ibnetdiscover(deadline.within(READ_S))
        tables = parse_dump_fts(
            self.services.tables.dump_fts(deadline.within(READ_S)).value.splitlines(), file="dump_fts"
        )
        fabric = parse_ibnetdiscover(read.value, file="ibnetdiscover")
        adapters = self._adapters()
        wanted = named_links(self.settings.scope, fabric, self.settings.plan)
        scope = Scope(adapters, self.coverage.loaded_in(self.cycle), suspects, wanted)
        plan = plan_burn(fabric, tables, None, Lengths(rounds=0), scope)
        if not self.settings.scope.whole:
            self._within |= links_within(fabric, plan, adapters) if wanted is None else wanted
        return Ready(read, fabric, plan)

    def _adapters(self) -> dict[Guid, PortName]:
        rails = self.settings.scope.rails
        return {
            guid: PortName(name, one.member.devices[rail])
            for name, one in self.hosts.items()
            for guid, rail in one.rails.items()
            if not rails or rail in rails
        }

    def run(self, deadline: Deadline) -> str:
        """Run stages until every link was loaded in each cycle, or no further stage fits before the deadline.

        Return why the burn ended before every link was loaded once; empty where all were.
        """
        while self.settings.cycles is None or self.cycle <= self.settings.cycles:
            deadline.check_cancelled("burning the fabric")
            if deadline.remaining < self.stage_s * _STAGE_TAKES:
                return self._end("" if self.cycle > 1 else "the time was over before every link was loaded")
            try:
                done = not self._next(deadline)
            except (EdgeError, ParseError) as error:
                if reason := self._failed(error, deadline):
                    return self._end(reason)
                continue
            if reason := self._stop_reason():
                return self._end(reason)
            if done and not self._separate(deadline):
                self.cycle += 1
        return self._end("")

    def _failed(self, error: EdgeError | ParseError, deadline: Deadline) -> str:
        """Wait before the next try; return why there is none, empty where there is one."""
        self._failures += 1
        self.on_event(f"a stage has no result: {error}")
        if self._failures >= RETRIES:
            return f"{RETRIES} stages in a row had no result, the last one because {error.message}"
        if deadline.remaining > PAUSE_S:
            deadline.sleep(PAUSE_S, "waiting for the subnet manager")
        return ""

    def _stop_reason(self) -> str:
        """Return why the burn must stop: so much is bad that the cause is no single link."""
        report, most = self.report(), self.settings.limits.value("broken_links_max")
        if self._slow > FEWEST and 100 * self._slow / self._flows > most:
            counts = f"{self._slow} of {self._flows} flows of a stage do not reach their rate (at most {most:g} %)"
            return f"{counts}: stop, and find their common cause before any cable is touched"
        return report.health.stop.reason if report is not None and report.health.stop is not None else ""

    def _end(self, reason: str) -> str:
        self._append(BurnEnded(reason=reason))
        return reason

    def _next(self, deadline: Deadline) -> bool:
        """Run the next stage of this cycle; return False where every link is loaded."""
        ready = self._ready(deadline)
        left = ready.plan.stages.stages
        if not left:
            return False
        self.on_event(
            f"cycle {self.cycle}: {len(left)} stages left; {len(left[0].flows)} flows load {len(left[0].links)} "
            "directed links"
        )
        before = len(self.coverage.loaded_in(self.cycle))
        if not self._stage(ready, left[0], deadline):
            return True
        loaded = len(self.coverage.loaded_in(self.cycle)) - before
        self.on_event(f"cycle {self.cycle}: {loaded} more directed links loaded")
        if not loaded:
            why = f": {self.coverage.doubt}" if self.coverage.doubt else ""
            raise EdgeError(f"no link carried what was sent{why}", where="burn", remedy="look at the failed flows")
        self._failures = 0
        return True

    def _separate(self, deadline: Deadline) -> bool:
        """Run a stage that separates the links of slow flows; return whether there may be more to learn."""
        suspects = self.coverage.unseparated
        if not suspects or self._separations >= SEPARATIONS:
            self._separations = 0
            return False
        self._separations += 1
        ready = self._ready(deadline, suspects)
        stage = ready.plan.stages.stages[0]
        if not stage.flows:
            return False
        self.on_event(f"cycle {self.cycle}: {len(stage.flows)} flows find the slow ones among {len(suspects)} links")
        if not self._stage(ready, stage, deadline):
            return True
        return self.coverage.unseparated != suspects

    def _ready(self, deadline: Deadline, suspects: frozenset[DirectedLink] = frozenset()) -> Ready:
        """Return what `ready` does, once switches that went away or came back are written down.

        Raises `EdgeError` where fewer than two hosts are left in the fabric.
        """
        try:
            ready = self.ready(deadline, suspects)
        except UsageError as error:
            if not self.stages:
                raise
            raise EdgeError(error.message, where="burn", remedy=error.remedy) from None
        self._note(ready.fabric)
        return ready

    def _note(self, fabric: Fabric) -> None:
        """Write which switches of this burn have gone away or come back since the last reading."""
        self.coverage.begin(fabric)
        whole = self.coverage.fabric or fabric
        away = lost_switches(whole, fabric)
        for guid in sorted(away.keys() - self._gone):
            name = self._switch(whole, guid)
            self.on_event(f"the switch {name} went away, and {away[guid]} links with it")
            self._append(BurnSwitchGone(switch=name, guid=guid, links=away[guid]))
        for guid in sorted(self._gone - away.keys()):
            name = self._switch(whole, guid)
            self.on_event(f"the switch {name} is there again; its links are loaded in this cycle")
            self._append(BurnSwitchBack(switch=name, guid=guid))
        self._gone = set(away)

    def _switch(self, fabric: Fabric, guid: Guid) -> str:
        return fabric_labels(fabric, self.settings.plan).device(guid)

    def _stage(self, ready: Ready, stage: BurnStage, deadline: Deadline) -> bool:
        """Send the flows, read the counters meanwhile, and write the result.

        Return False where the stage was too short for two readings and has no result; the next ones are longer.
        """
        flows = [self._flow(one.source.name, one.target.name) for one in stage.flows]
        method = next(iter(self.hosts.values())).method
        user = next(iter(self.hosts.values())).host.user
        sent = fabric_flows.commands(flows, method, self.stage_s, user)
        with ThreadPoolExecutor(max(1, len(sent)), "flows") as pool:
            asked = {
                name: pool.submit(
                    read_probes,
                    self.services.shell,
                    self.hosts[name].host,
                    one.command.stdin,
                    deadline.within(one.timeout),
                    privileged=False,
                )
                for name, one in sent.items()
            }
            readings = self._readings(deadline)
            answers = {name: future.result()[0] for name, future in asked.items()}
        if readings is None:
            self._drop_lost(answers)
            return False
        words = {name: one.cause if isinstance(one, SessionFailure) else one for name, one in answers.items()}
        found = tuple(_result(flow, method, words) for flow in flows)
        self._drop_lost(answers)
        after = self.services.fabric.ibnetdiscover(deadline.within(READ_S))
        ways = _way_names(ready.plan.routes, stage)
        self._record(found, ways, _Reading(ready.read, readings[0]), _Reading(after, readings[1]))
        return True

    def _readings(self, deadline: Deadline) -> tuple[Observed[str], Observed[str]] | None:
        """Read the counters once the flows run, and again before the first one ends.

        Return None where the stage is too short for that; the next ones are longer.
        """
        seconds, timer = float(self.stage_s), deadline.timer
        began = timer.now()
        warm_up = min(_WARM_UP_S, seconds / 6)
        deadline.sleep(warm_up, "waiting until the flows run")
        early = self.services.counters.traffic(deadline.within(READ_S))
        took = timer.now() - began - warm_up
        left = seconds - (timer.now() - began) - took - seconds / 12
        between = max(took, reading_s(early.value) / MOST_INEXACT)  # from reading to reading, for rates to be exact
        if left + took < between:
            self._lengthen(took, between)
            return None
        deadline.sleep(left, "loading the links")
        return early, self.services.counters.traffic(deadline.within(READ_S))

    def _lengthen(self, took: float, between: float) -> None:
        """Make the stages that follow long enough for two readings. Raises `UsageError` where that is not allowed."""
        message = f"a reading of the counters takes {took:.0f} s: a stage of {self.stage_s} s is too short for two"
        needed = max(self.stage_s + 1, ceil(_MARGIN * (between + took) / _USABLE))
        if needed > self.settings.longest_s:
            raise UsageError(message, where="--stage", remedy=f"give --stage {needed}s or more")
        self.stage_s = needed
        self.on_event(f"{message}; it counts for nothing, and the next ones take {needed} s")

    def _flow(self, source: PortName, target: PortName) -> AdapterFlow:
        return AdapterFlow(self._end_of(source), self._end_of(target))

    def _end_of(self, name: PortName) -> FlowEnd:
        member = self.hosts[name.device].member
        return FlowEnd(member, member.devices.index(name.port))

    def _drop_lost(self, answers: Mapping[str, object]) -> None:
        """Leave out of further stages what does not answer any more."""
        for name, answer in sorted(answers.items()):
            if isinstance(answer, SessionFailure) and answer.lost:
                self.on_event(f"{name} takes no further part: {answer.cause}")
                del self.hosts[name]

    def _record(self, found: Sequence[FlowResult], ways: str, first: _Reading, last: _Reading) -> None:
        before = first.snapshot()
        reading = StageReading(self.cycle, _ways_in(ways, before.fabric), before, last.snapshot())
        self._slow, self._flows = self.coverage.add(reading), len(found)
        self._note(reading.after.fabric)
        kept = [one.evidence[0] for one in (first.fabric, first.counters, last.fabric, last.counters)]
        kept.append(replace(kept[1], source="cable burn: ways of the flows", content=ways.encode()))
        self.services.journal.store(kept)
        failed = tuple(
            FailedFlow(source=str(one.flow.source), target=str(one.flow.target), cause=one.cause)
            for one in found
            if one.gbps is None
        )
        for one in failed[:_NAMED]:
            self.on_event(f"{one.source} → {one.target}: {one.cause}")
        if failed[_NAMED:]:
            self.on_event(f"{len(failed) - _NAMED} more flows failed")
        digests = [one.digest for one in kept]
        for fabric, counters in ((kept[0], kept[1]), (kept[2], kept[3])):
            read = counters_read((fabric, counters), counters.at, len(reading.after.telemetry.counters))
            self.services.journal.append([read], claim=self.claim)
        self._append(
            BurnStageMeasured(
                cycle=self.cycle,
                flows=len(found),
                fabric_before=digests[0],
                counters_before=digests[1],
                fabric_after=digests[2],
                counters_after=digests[3],
                ways=digests[4],
                failed=failed,
            )
        )
        self.stages += 1

    def report(self) -> BurnReport | None:
        """Return what is proven so far; None before the first stage."""
        fabric = self.coverage.fabric
        if fabric is None:
            return None
        within = None if self.settings.scope.whole else frozenset(self._within)
        return self.coverage.report(fabric_labels(fabric, self.settings.plan), self.settings.modules, within)

    def _append(self, payload: Payload) -> None:
        self.services.journal.append([NewEvent(Stream.CAMPAIGN, self.subject, payload)], claim=self.claim)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Texts of the fabric and of its counters, read at about the same time."""

    fabric: Observed[str]
    counters: Observed[str]

    def snapshot(self) -> Snapshot:
        return _snapshot(self.fabric.value, self.counters.value)


def _snapshot(fabric: str, counters: str) -> Snapshot:
    found = parse_ibnetdiscover(fabric, file="ibnetdiscover")
    return Snapshot(found, decode_telemetry(counters.encode(), found, file="ibqueryerrors"))


def _result(flow: AdapterFlow, method: PairMethod, answers: Mapping[str, Answer]) -> FlowResult:
    """Return the result of a flow; what its hosts answer can spoil no other flow."""
    try:
        return fabric_flows.result(flow, method, answers)
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        return FlowResult(flow, None, peer_error(error, f"{flow.source} → {flow.target}").message)


def _way_names(routes: Routes, stage: BurnStage) -> str:
    """Return the ways of the stage's flows as JSON: the sending port of each link, `GUID:number`."""
    ways = [[routes.links[link].source for link in flow.way] for flow in stage.flows]
    return json.dumps([[f"{port.guid}:{port.number}" for port in way] for way in ways])


def _ways_in(text: str, fabric: Fabric) -> tuple[Way, ...]:
    """Return the ways that `_way_names` wrote, by the links of the fabric of that moment."""
    far = {end: other for link in fabric.cables() for end, other in ((link.a, link.b), (link.b, link.a))}
    ports = [
        [PortId(Guid(guid), int(number)) for guid, _, number in (one.partition(":") for one in way)]
        for way in json.loads(text)
    ]
    return tuple(tuple(DirectedLink(port, far[port]) for port in way if port in far) for way in ports)
