"""The watch of the fabric: one pass reads alarms and counters, disables bad links, and brings repaired ones back.

The counters decide. An event of a fabric manager isolates nothing: it is recorded with its port. A pass that is killed
at any point is finished by the next one: ports are set under the intents of `steps.cable.isolation`, and all else
follows from the journal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.cabling.alarms import new_alarms
from clusterctl.cabling.explain.findings import faults_of_fabric
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.health.findings import HealthFinding, fabric_labels
from clusterctl.cabling.health.groups import ungrouped
from clusterctl.cabling.health.judge import FabricHealth
from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import CancelledError, ClaimLostError, EdgeError
from clusterctl.fleet.event import Event as JournalEvent
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.history import FabricReading, port_name, port_named
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.port_acts import CLAIM, DisabledPort, enabled_since
from clusterctl.fleet.fabric.topology import Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.payloads.fabric import FabricAlarmsRead, FabricLinkSuspected, FabricRepairReported
from clusterctl.fleet.payloads.node import ActIntended
from clusterctl.operations import cable_burn, incidents
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.fabric_managers import compared, watch_master
from clusterctl.operations.fabric_observation import fabric_hosts
from clusterctl.operations.fabric_repairs import record_closed_tickets
from clusterctl.operations.incidents import IncidentUpdate
from clusterctl.operations.link_burn import Burn, LinkBurner, place_of
from clusterctl.operations.link_isolation import BadLink, DisablePlan, carry_out, plan_disable, port_isolator
from clusterctl.operations.operation import Control, Event, Failure, Outcome, Result
from clusterctl.ports import AlarmReader, Claim, Deadline, LinkModel
from clusterctl.site.ufm import WatchSettings
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.isolation import Isolator, ports_out
from clusterctl.steps.cable.link_health import UNREADABLE, LinkCollector, LinkReading, judge_link
from clusterctl.steps.executor.lease import sole_claim

PERIOD = timedelta(hours=6)
"""The links are judged over so long; nights judge them over a day."""
READINGS = 6
"""So many readings of that time are compared."""
ISOLATED = (HealthKind.OVERHEATED, HealthKind.FLAPPING, HealthKind.BIT_ERRORS, HealthKind.PACKET_ERRORS)
"""What takes a link out of use where it fails: the link itself is bad, and is up."""
COMES_UP_S = 60.0
"""Seconds that a pass waits for the link of a port that it has enabled; the next pass looks again."""
MOST_ENABLES = 3
"""So often a port is enabled before its link must be up."""
REPAIRS = 2
WEEK = timedelta(days=7)
"""A link is proven by itself after so many repairs in a week; then an operator decides."""
ALARMS_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """`dry_run`: change no port, whatever the site file has. `deadline_s`: seconds for one pass."""

    dry_run: bool = False
    deadline_s: float = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchResult(Result):
    """One pass. Each outcome is a port that was disabled or enabled; `skipped`: bad links that stay in use, and why.

    acts       whether ports may be changed
    verdict    of the links, over the period; `links` of them, `bad` of them must be repaired
    would      links that would be disabled or enabled, where `acts` is False
    out        links that are out of use; `budget`: how many may be
    waiting    links that are out and wait for their repair, or for their proof
    alarms     new events of fabric managers, by meaning; `unknown`: codes that no table has
    managers   what the events report of the subnet manager, and its hand-over to another one
    stale      why a manager's model of the fabric is not the fabric
    problems   what could not be read
    """

    acts: bool
    verdict: str = ""
    links: int = 0
    bad: int = 0
    would: Mapping[str, str] = field(default_factory=dict)
    out: int = 0
    budget: int = 0
    waiting: Mapping[str, str] = field(default_factory=dict)
    alarms: Mapping[str, int] = field(default_factory=dict)
    unknown: tuple[int, ...] = ()
    managers: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    incidents: IncidentUpdate = field(default_factory=IncidentUpdate)

    @property
    def exit_code(self) -> int:
        """1 where something could not be read or is stale, an act failed, or a bad link stays in use."""
        if self.cancelled:
            return CancelledError.exit_code
        failed = any(outcome.failure for outcome in self.outcomes)
        return 1 if self.problems or self.stale or self.skipped or failed else 0


def settings_of(context: SiteContext) -> WatchSettings:
    """Return the settings of the watch; by default it changes nothing."""
    return context.site.settings.fabric.watch or WatchSettings()


def run(
    context: SiteContext,
    request: WatchRequest,
    control: Control,
    readers: Mapping[str, AlarmReader] | None = None,
    links: LinkModel | None = None,
    burn: Burn = cable_burn.run,
) -> WatchResult:
    """Do one pass, and bring the incidents up to date. Raise `UsageError` where another run acts on the fabric.

    readers  of alarms, by name; the site's by default, with its `links`
    burn     loads repaired links
    """
    settings = settings_of(context)
    acts = settings.act and not request.dry_run
    deadline = Deadline.after(request.deadline_s, control.cancelled)
    limits, plan = limits_for(context.site), wiring_plan(context.site)
    if acts:
        record_closed_tickets(context)
    with closing(context.adapters()) as adapters, sole_claim(context.journal, CLAIM, context.run) as claim:
        if readers is None:
            readers, links = _site_managers(context)
        alarms = _Alarms(context, readers, deadline).read()
        collector = LinkCollector(context.journal, adapters.fabric, adapters.counters, limits, plan, PERIOD, READINGS)
        reading = collector.read(deadline, adapters.telemetry)
        burner = LinkBurner(context, settings, control, claim, burn)
        work = _Pass(context, adapters, claim, limits, plan, deadline, control, burner)
        done = work.over(reading, acts=acts)
        handed = watch_master(context.journal, reading.fabric, reading.evidence)
        model = compared(links, reading.fabric, deadline)
    return replace(
        done,
        alarms=alarms.counts,
        unknown=alarms.unknown,
        managers=(*alarms.managers, *handed),
        stale=model.stale,
        problems=(*alarms.problems, *model.unread, *done.problems),
        incidents=incidents.update(context),
        cancelled=control.cancelled.is_set(),
    )


def _site_managers(context: SiteContext) -> tuple[Mapping[str, AlarmReader], LinkModel | None]:
    from clusterctl.operations.fabric_alarms import site_alarm_readers, site_link_model

    return site_alarm_readers(context), site_link_model(context)


@dataclass(frozen=True, slots=True)
class _AlarmsRead:
    counts: Mapping[str, int]
    unknown: tuple[int, ...]
    managers: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Alarms:
    """Reads each source of alarms, and writes what is new with its cursor, at once. A source that fails is named."""

    context: SiteContext
    readers: Mapping[str, AlarmReader]
    deadline: Deadline

    def read(self) -> _AlarmsRead:
        counts: dict[str, int] = {}
        unknown: set[int] = set()
        managers: list[str] = []
        problems: list[str] = []
        for name, reader in self.readers.items():
            try:
                found = reader.alarms(self.deadline.within(ALARMS_S)).value
            except UNREADABLE as error:
                problems.append(f"{name}: {error}")
                continue
            cursors, known = self._known()
            new = new_alarms(name, found, cursors.get(name), known)
            self.context.journal.append(new.events)
            for meaning, count in new.sorted.counts.items():
                counts[meaning.value] = counts.get(meaning.value, 0) + count
            unknown |= set(new.sorted.unknown)
            managers += [alarm.text for alarm in new.sorted.subnet_manager]
            if new.unread:
                lost = f"{len(new.unread)} of its entries could not be read"
                problems.append(f"{name}: {lost}, the first: {new.unread[0]}")
        return _AlarmsRead(counts, tuple(sorted(unknown)), tuple(managers), tuple(problems))

    def _known(self) -> tuple[dict[str, FabricAlarmsRead], dict[PortId, FabricLinkSuspected]]:
        """Return the cursors by source, and what the journal has of each port."""
        journal = self.context.journal
        cursors = {
            event.subject: event.payload
            for event in journal.latest(Stream.FABRIC, Kind.FABRIC_ALARMS_READ)
            if isinstance(event.payload, FabricAlarmsRead)
        }
        return cursors, suspicions(journal.latest(Stream.FABRIC, Kind.FABRIC_LINK_SUSPECTED))


def suspicions(events: Iterator[JournalEvent]) -> dict[PortId, FabricLinkSuspected]:
    """Return what fabric managers reported of each port."""
    found = ((port_named(event.subject), event.payload) for event in events)
    return {port: payload for port, payload in found if port is not None and isinstance(payload, FabricLinkSuspected)}


@dataclass(frozen=True, slots=True)
class _Pass:
    """Acts on the links by one reading of them."""

    context: SiteContext
    adapters: Adapters
    claim: Claim
    limits: FabricLimits
    plan: WiringPlan
    deadline: Deadline
    control: Control
    burner: LinkBurner

    def over(self, reading: LinkReading, *, acts: bool) -> WatchResult:
        """Return what was done. Without a fabric that could be read, nothing is."""
        judged = reading.judged
        result = WatchResult(
            operation="fabric watch", acts=acts, verdict=judged.verdict, links=judged.links, bad=judged.bad
        )
        if reading.fabric is None:
            return replace(result, problems=(judged.reason,))
        self._observe(reading.fabric, reading)
        problems = () if reading.health is not None else (judged.reason,)
        out = self._out()
        if not acts:
            plan = self._plan(reading.fabric, reading.health)
            would = {effect.node: effect.text for effect in plan.preview().effects}
            return replace(
                result,
                would={
                    **would,
                    **{one.label: "enable, burn and prove: it is repaired" for one in out if self._due(one)},
                },
                skipped=plan.refusals,
                out=len(out),
                budget=plan.cuts.budget,
                problems=problems,
            )
        isolator = port_isolator(self.context, self.adapters, self.claim)
        outcomes = [*self._repaired(isolator, reading, out)]
        plan = self._plan(reading.fabric, reading.health)
        outcomes += self._disabled(isolator, plan)
        stuck: dict[str, str] = {}
        outcomes += self._burned(isolator, reading.fabric, stuck)
        left = self._out()
        return replace(
            result,
            outcomes=tuple(outcomes),
            skipped=plan.refusals,
            out=len(left),
            budget=plan.cuts.budget,
            waiting={one.label: self._waits_for(one) for one in left},
            problems=(*problems, *(f"{name} is still without jobs: {why}" for name, why in stuck.items())),
        )

    def _observe(self, seen: Fabric, reading: LinkReading) -> None:
        """Write what has changed in the fabric, and its faults by the plan, into the journal."""
        journal = self.context.journal
        verification = verify(self.plan, seen, fabric_hosts(journal))
        faults = faults_of_fabric(verification, self.limits.value("broken_links_max"))
        FabricRecord(journal).write(FabricReading(seen, None, faults), reading.evidence)

    def _plan(self, seen: Fabric, health: FabricHealth | None) -> DisablePlan:
        """Return which bad links go out of use: none where so many are bad that their cause is a common one."""
        labels = fabric_labels(seen, self.plan)
        by_name = {labels.name(end): link for link in seen.cables() for end in (link.a, link.b)}
        found = list(_failed(health, by_name)) if health is not None and health.stop is None else []
        return plan_disable(self.context, seen, found, labels)

    def _out(self) -> tuple[DisabledPort, ...]:
        return ports_out(self.context.journal)

    def _repaired(self, isolator: Isolator, reading: LinkReading, out: Sequence[DisabledPort]) -> Iterator[Outcome]:
        """Prove what was enabled, and enable what is repaired."""
        enabled = enabled_since(self.context.journal.latest(Stream.FABRIC, Kind.ACT_INTENDED))
        for one in out:
            if one.enabling:
                yield from self._reported(self._prove(isolator, one, reading, enabled[one.port]))
            elif one.sure and self._due(one):
                yield from self._reported(self._enable(isolator, one))

    def _disabled(self, isolator: Isolator, plan: DisablePlan) -> Iterator[Outcome]:
        """Disable what is bad, after what a killed pass had begun with."""
        for outcome in carry_out(isolator, plan, self.deadline):
            self._renew()
            yield from self._reported(outcome)

    def _burned(self, isolator: Isolator, seen: Fabric, stuck: dict[str, str]) -> Iterator[Outcome]:
        """Load the links that were enabled, and disable those again that a burn proves bad.

        It is the last work of a pass, since it takes minutes. A link is loaded from the pass after its enabling on: by
        then the subnet manager routes packets over it. `stuck` receives hosts that cannot be given back, and why.
        """
        due = [one for one in self._out() if one.enabling and _between(seen, one) and self.burner.is_due(one)]
        if self.control.cancelled.is_set():
            return
        if not due:
            stuck.update(self._given_back())
            return
        stuck.update(self.burner.load(due))
        for one in due:
            if self.burner.fault(one):
                yield from self._reported(self._failed_in_burn(isolator, one))

    def _reported(self, outcome: Outcome | None) -> Iterator[Outcome]:
        if outcome is not None:
            self.control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))
            yield outcome

    def _renew(self) -> None:
        lost = self.context.journal.renew([self.claim])
        if lost:
            raise ClaimLostError(lost[self.claim.node], where="fabric", remedy="see what the other run does")

    # --- repaired links ---------------------------------------------------------------------------------------------

    def _due(self, one: DisabledPort) -> bool:
        """Return whether a repair was reported since the port went out, and it is not repaired again and again."""
        repairs = self._repairs(one)
        newest = max((event.at for event in repairs), default=None)
        if newest is None or not self._reported_since(one):
            return False
        return sum(newest - event.at < WEEK for event in repairs) <= REPAIRS

    def _repairs(self, one: DisabledPort) -> list[JournalEvent]:
        history = self.context.journal.history(Stream.FABRIC, port_name(one.port))
        return [event for event in history if isinstance(event.payload, FabricRepairReported)]

    def _reported_since(self, one: DisabledPort) -> bool:
        return any(event.seq > one.seq for event in self._repairs(one))

    def _waits_for(self, one: DisabledPort) -> str:
        if one.enabling:
            return "; ".join(["its counters are watched", *map(str, self.burner.burns(one)[-1:])])
        place = place_of(one)
        if self._reported_since(one):
            return f"an operator: it was repaired more than {REPAIRS} times in a week; cable enable --port {place}"
        return f"its repair: close its ticket, or clusterctl fabric repaired {place}"

    def _enable(self, isolator: Isolator, one: DisabledPort) -> Outcome:
        self._renew()
        try:
            isolator.enable(one, self.deadline.within(COMES_UP_S))
        except EdgeError as error:
            return Outcome(node=one.label, failure=Failure.of(error))
        return Outcome(node=one.label, text="enabled: its counters are watched until they prove it")

    def _prove(self, isolator: Isolator, one: DisabledPort, reading: LinkReading, since: datetime) -> Outcome | None:
        """Return what the counters since then prove of an enabled link; None where they prove nothing yet."""
        self._renew()
        try:
            link, fault = _between(reading.fabric, one), self.burner.fault(one)
            if link is None and not fault:
                return self._again(isolator, one)
            cause, proof = (f"burned: {fault}", "") if fault or link is None else self._found(one, link, reading, since)
            if cause:
                return self._back(isolator, one, cause)
            if not proof:
                return None
            isolator.proven(one, proof, reading.evidence)
        except EdgeError as error:
            return Outcome(node=one.label, failure=Failure.of(error))
        return Outcome(node=one.label, text=f"in use: {proof}")

    def _found(self, one: DisabledPort, link: Link, reading: LinkReading, since: datetime) -> tuple[str, str]:
        """Return what is wrong with an enabled link, and what proves it; both are empty where nothing is proven yet."""
        if link.gbps < one.gbps:
            return f"it came back at {link.rate}, and had {one.gbps:g} Gb/s before", ""
        alone = Fabric(reading.fabric.devices if reading.fabric else {}, (link,))
        found = judge_link(self.context.journal, alone, self.limits, self.plan, since)
        burned = self.burner.proof(one)
        if found is None or found.verdict is Verdict.INCONCLUSIVE:
            return "", ""
        if not found.verdict.admits:
            return "; ".join(finding.cause for finding in found.findings), ""
        return "", f"BER below {found.proven_ber:g} over {found.seconds:.0f} s; {burned}" if burned else ""

    def _given_back(self) -> Mapping[str, str]:
        """Give back hosts that a killed burn keeps jobs off; return those that stay so, with the reason."""
        if self.context.site.settings.scheduler is None:
            return {}
        try:
            return cable_burn.give_back_left(self.context)
        except UNREADABLE as error:
            return {"the scheduler": error.message}

    def _failed_in_burn(self, isolator: Isolator, one: DisabledPort) -> Outcome:
        try:
            return self._back(isolator, one, f"burned: {self.burner.fault(one)}")
        except EdgeError as error:
            return Outcome(node=one.label, failure=Failure.of(error))

    def _again(self, isolator: Isolator, one: DisabledPort) -> Outcome:
        """Enable a port whose link is not up once more: the run that enabled it may have been killed."""
        if _enables(self.context.journal.history(Stream.FABRIC, port_name(one.port))) >= MOST_ENABLES:
            return self._back(isolator, one, "its link does not come up")
        return self._enable(isolator, one)

    def _back(self, isolator: Isolator, one: DisabledPort, cause: str) -> Outcome:
        isolator.back_out(one, Deadline.after(COMES_UP_S, self.control.cancelled))
        failure = Failure(
            kind="unhealthy", message=f"disabled again: {cause}", remedy="repair it, then report it again"
        )
        return Outcome(node=one.label, failure=failure)


def _enables(events: Iterator[JournalEvent]) -> int:
    """Return how often a port was enabled since it was last disabled."""
    count = 0
    for event in events:
        if isinstance(event.payload, ActIntended):
            count = count + 1 if event.payload.act is Act.PORT_ENABLE else 0
    return count


def _between(fabric: Fabric | None, one: DisabledPort) -> Link | None:
    ends = {one.port, one.peer}
    return next((link for link in (fabric.links if fabric else ()) if {link.a, link.b} == ends), None)


def _failed(health: FabricHealth, by_name: Mapping[PortName, Link]) -> Iterator[BadLink]:
    """Yield the single links that the counters prove bad, the worst first; a group has a common cause."""
    single = ungrouped(health.findings, health.groups)
    for finding in sorted(single, key=lambda one: (-sum(count for _, _, count in one.counters), one.subjects)):
        link = by_name.get(finding.ends[0]) if len(finding.ends) == 2 else None
        bad = finding.verdict is Verdict.FAIL and finding.kind in ISOLATED
        if bad and link is not None and link is by_name.get(finding.ends[1]):
            yield BadLink(link, f"{finding.kind.value}: {finding.cause}", finding.action, _serials(finding))


def _serials(finding: HealthFinding) -> str:
    return ", ".join(dict.fromkeys(serial for _, _, serial in finding.modules if serial))
