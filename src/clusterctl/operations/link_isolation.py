"""Isolation of links: bad uplinks out of use under a budget, and back once their error counters prove them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clusterctl.cabling.explain.explanation import RATE_KINDS
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.health.findings import FabricLabels, fabric_labels
from clusterctl.cabling.health.judge import FabricHealth, judge_health
from clusterctl.cabling.health.symptoms import HealthWindow, interval_s, span
from clusterctl.cabling.isolation import Cut, CutPlan, Isolation, IsolationRefusal, Pair, plan_cuts
from clusterctl.cabling.mass_failure import mass_failure
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.port_acts import CLAIM, DisabledPort, RepairPlace
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName
from clusterctl.fleet.finding import Observed
from clusterctl.formats.infiniband.fabric_file import decode_telemetry
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.site.yaml_problems import first_in_words
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.documents import content
from clusterctl.operations.fabric_files import fabric_in, limits_for
from clusterctl.operations.operation import Control, Effect, Event, Failure, Outcome, Preview, Result
from clusterctl.ports import Claim, Deadline
from clusterctl.steps.cable.isolation import Isolator, ports_out
from clusterctl.steps.executor.lease import sole_claim

_SLACK = 1.01
"""Longer than the limit's interval, so that rounding never leaves it short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisableRequest:
    """Which links go out of use.

    fabric      the reading that the links were judged by
    reason      recorded in the journal for links that `ports` names
    ports       SWITCH:PORT
    findings    the JSON that `cable health` or `cable verify` printed
    deadline_s  seconds for all of it
    """

    fabric: Path
    reason: str
    ports: tuple[str, ...] = ()
    findings: Path | None = None
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EnableRequest:
    """Which disabled ports come back into use.

    ports       SWITCH:PORT; empty: all that are out
    limits      fabric limits by name, or a file; empty: the site's
    deadline_s  seconds, in addition to those of the proof
    """

    ports: tuple[str, ...] = ()
    limits: str = ""
    deadline_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DisableResult(Result):
    """`out`: links that were out before; `budget`: how many may be out at a time. Each outcome is one port; its values
    are the repair request: `rack`, `port`, `peer`, `why` and `repair`, none where a stopped run had begun with it.
    """

    out: int
    budget: int


@dataclass(frozen=True, slots=True)
class BadLink:
    """A link that is to go out of use: why, its repair, and the serial of its cable where that is known."""

    link: Link
    why: str
    repair: str
    serial: str = ""


@dataclass(frozen=True, slots=True)
class DisablePlan:
    """What is going to be done: `unfinished` ports, which a stopped run had begun to disable, then the cuts.

    serials  of the cables in the wiring plan, by both ends
    """

    cuts: CutPlan
    bad: Mapping[PortId, tuple[BadLink, Link]]
    labels: FabricLabels
    unfinished: tuple[DisabledPort, ...]
    serials: Mapping[frozenset[PortName], str] = field(default_factory=dict)

    def preview(self) -> Preview:
        began = [Effect(node=one.label, text="disable, as a run that was stopped had begun") for one in self.unfinished]
        request = [Effect(node=self.labels.plain(cut.port), text=self._text(cut)) for cut in self.ordered]
        return Preview(
            operation="cable disable",
            question=f"Disable {len(self.cuts.cuts)} links? Out before: {self.cuts.out}, budget: {self.cuts.budget}",
            effects=(*began, *request),
            skipped=self.refusals,
        )

    @property
    def ordered(self) -> list[Cut]:
        """The cuts by rack."""
        return sorted(self.cuts.cuts, key=lambda cut: self.labels.rack(cut.port, cut.peer))

    @property
    def refusals(self) -> dict[str, str]:
        return {self._ends(refusal): self._reason(refusal) for refusal in self.cuts.refusals}

    def out(self, cut: Cut) -> DisabledPort:
        bad, link = self.bad[cut.port]
        place = RepairPlace(
            peer=self.labels.plain(cut.peer),
            rack=self.labels.rack(cut.port, cut.peer),
            serial=bad.serial or self.serials.get(frozenset(map(self.labels.name, (cut.port, cut.peer))), ""),
            repair=bad.repair,
            peer_rack=self.labels.rack(cut.peer),
        )
        label = self.labels.plain(cut.port)
        return DisabledPort(cut.port, cut.peer, label, bad.why, sure=False, gbps=link.gbps, place=place)

    def repair_request(self, cut: Cut) -> dict[str, str]:
        bad, _ = self.bad[cut.port]
        return {
            "rack": self.labels.rack(cut.port, cut.peer),
            "port": self._place(cut.port),
            "peer": self._place(cut.peer),
            "why": bad.why,
            "repair": bad.repair,
        }

    def _text(self, cut: Cut) -> str:
        request = self.repair_request(cut)
        return f"disable in rack {request['rack'] or 'unknown'}; other end: {request['peer']}; why: {request['why']}"

    def _place(self, port: PortId) -> str:
        return f"{self.labels.at(port)}{self.labels.port(port)}"

    def _ends(self, refusal: IsolationRefusal) -> str:
        return " – ".join(self.labels.plain(end) for end in self.labels.ordered(refusal.link))

    def _reason(self, refusal: IsolationRefusal) -> str:
        reason = f"{refusal.reason}; {refusal.remedy}"
        if refusal.host is None:
            return reason
        end = next(end for end in (refusal.link.a, refusal.link.b) if end.guid == refusal.host)
        return f"{reason}: clusterctl quarantine {self.labels.name(end).device} --reason …"


def preview_disable(context: SiteContext, request: DisableRequest) -> Preview:
    """Return the links that would be disabled, by rack, and those that would be refused. Reads the live fabric."""
    with closing(context.adapters()) as adapters:
        return _disable_plan(context, adapters, request, Deadline.after(request.deadline_s)).preview().of(request)


def run_disable(context: SiteContext, request: DisableRequest, control: Control) -> DisableResult:
    """Disable the ports, after those that a stopped run had begun to disable; `skipped` are the refused links."""
    deadline = Deadline.after(request.deadline_s, control.cancelled)
    alone = sole_claim(context.journal, CLAIM, context.run, control.cancelled.set)
    with closing(context.adapters()) as adapters, alone as claim:
        plan = _disable_plan(context, adapters, request, deadline)
        control.require(plan.preview().of(request))
        isolator = port_isolator(context, adapters, claim)
        outcomes = []
        for outcome in carry_out(isolator, plan, deadline):
            control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))
            outcomes.append(outcome)
    return DisableResult(
        operation="cable disable",
        outcomes=tuple(outcomes),
        skipped=plan.refusals,
        cancelled=control.cancelled.is_set(),
        out=plan.cuts.out,
        budget=plan.cuts.budget,
    )


def carry_out(isolator: Isolator, plan: DisablePlan, deadline: Deadline) -> Iterator[Outcome]:
    """Disable the ports, after those that a stopped run had begun to disable; yield what became of each."""
    requests: list[tuple[DisabledPort, dict[str, str]]] = [(one, {}) for one in plan.unfinished]
    requests += [(plan.out(cut), plan.repair_request(cut)) for cut in plan.ordered]
    for out, values in requests:
        try:
            isolator.disable(out, deadline)
        except EdgeError as error:
            yield Outcome(node=out.label, failure=Failure.of(error))
        else:
            text = "disabled" if values else "disabled, as a run that was stopped had begun"
            yield Outcome(node=out.label, text=text, values=values)


def _disable_plan(context: SiteContext, adapters: Adapters, request: DisableRequest, deadline: Deadline) -> DisablePlan:
    """Return the plan by the fabric as it is now."""
    judged = fabric_in(request.fabric)
    labels = fabric_labels(judged, wiring_plan(context.site))
    wanted = _bad_links(request, limits_for(context.site), judged, labels)
    seen = parse_ibnetdiscover(adapters.fabric.ibnetdiscover(deadline).value, file="ibnetdiscover")
    return plan_disable(context, seen, wanted, labels)


def plan_disable(context: SiteContext, seen: Fabric, wanted: Iterable[BadLink], labels: FabricLabels) -> DisablePlan:
    """Return the plan by the fabric as it was just seen. Ports that are out count as out, whatever they show."""
    wiring = wiring_plan(context.site)
    out = ports_out(context.journal)
    known = {one.port for one in out}
    fabric = _without_ports(seen, known)
    by_link = _by_live_link(wanted, fabric)
    wishes = [link for link in by_link if known.isdisjoint((link.a, link.b))]
    cut = tuple(Cut(one.port, one.peer) for one in out)
    return DisablePlan(
        cuts=plan_cuts(fabric, wishes, Isolation(cut, _twins(wiring.cables, wiring.hosts, labels))),
        bad={end: (bad, link) for link, bad in by_link.items() for end in (link.a, link.b)},
        labels=labels,
        unfinished=tuple(one for one in out if not one.sure and not one.enabling),
        serials={cable.ends: cable.serial for cable in wiring.cables},
    )


def _by_live_link(wanted: Iterable[BadLink], fabric: Fabric) -> dict[Link, BadLink]:
    """Return the bad links by the link that is between the same ports now; by themselves where there is none."""
    now = {frozenset((link.a, link.b)): link for link in fabric.cables()}
    return {now.get(frozenset((bad.link.a, bad.link.b)), bad.link): bad for bad in wanted}


def _without_ports(fabric: Fabric, ports: Collection[PortId]) -> Fabric:
    """Return the fabric without the links of these ports."""
    links = tuple(link for link in fabric.links if link.a not in ports and link.b not in ports)
    return Fabric(fabric.devices, links)


def _bad_links(
    request: DisableRequest, limits: FabricLimits, judged: Fabric, labels: FabricLabels
) -> tuple[BadLink, ...]:
    """Return the named links, then those of the findings. Raises `UsageError` where the cause is a common one."""
    links = {labels.name(end): link for link in judged.cables() for end in (link.a, link.b)}
    repair = "check the cable and both its ends"
    named = [BadLink(_link_at(port, links), request.reason, repair) for port in request.ports]
    if request.findings is None:
        if not named:
            raise UsageError("name what to disable", where="--from, --port", remedy="give findings, or ports")
        return tuple(named)
    found = read_findings(content(request.findings), str(request.findings))
    if not found.judged:
        remedy = "give all that `cable health --json` or `cable verify --json` printed"
        raise UsageError("the number of judged links is missing", where=str(request.findings), remedy=remedy)
    if stop := mass_failure(found.broken, found.judged, limits.value("broken_links_max")):
        remedy = "repair their common cause, then judge the links again"
        raise UsageError(stop.reason, where=str(request.findings), remedy=remedy)
    return (*named, *_failed_links(found, links))


def _link_at(text: str, links: Mapping[PortName, Link]) -> Link:
    device, _, port = text.rpartition(":")
    name = PortName(device, port)
    if name not in links:
        raise UsageError("no link is up at this port", where=f"--port {text}", remedy="write it as SWITCH:PORT")
    return links[name]


def _failed_links(found: Findings, links: Mapping[PortName, Link]) -> Iterator[BadLink]:
    """Yield the link of each finding that fails and is about one link that is up."""
    for finding in found.findings:
        ends = [PortName(port.device, port.port) for port in finding.ports]
        link = links.get(ends[0]) if finding.verdict == "fail" and len(ends) == 2 else None
        if link is not None and link is links.get(ends[1]):
            yield BadLink(link, f"{finding.kind}: {finding.cause}", finding.action)


def _twins(cables: tuple[PlannedCable, ...], hosts: Collection[str], labels: FabricLabels) -> dict[Pair, int]:
    """Return how many cables the plan has between each two switches that are seen."""
    guids = {name.device: port.guid for port, name in labels.names.items() if name.device not in hosts}
    pairs = ((cable.source.device, cable.destination.device) for cable in cables)
    return Counter(frozenset((guids[a], guids[b])) for a, b in pairs if a in guids and b in guids)


def preview_enable(context: SiteContext, request: EnableRequest) -> Preview:
    """Return the ports that would be enabled. Raises `UsageError` for one that clusterctl did not disable."""
    return _enable_preview(_disabled_ports(context, request)).of(request)


def run_enable(context: SiteContext, request: EnableRequest, control: Control) -> Result:
    """Enable the ports, watch their counters, and disable those again that are not proven healthy."""
    limits, deadline = limits_for(context.site, request.limits), Deadline.after(request.deadline_s, control.cancelled)
    alone = sole_claim(context.journal, CLAIM, context.run, control.cancelled.set)
    with closing(context.adapters()) as adapters, alone as claim:
        ports = _disabled_ports(context, request)
        control.require(_enable_preview(ports).of(request))
        proof = _Proof(context, adapters, port_isolator(context, adapters, claim), limits, control)
        outcomes = []
        for outcome in proof.enable(ports, deadline):
            control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))
            outcomes.append(outcome)
    return Result(operation="cable enable", outcomes=tuple(outcomes), cancelled=control.cancelled.is_set())


def _enable_preview(ports: Sequence[DisabledPort]) -> Preview:
    effects = tuple(Effect(node=one.label, text=f"enable and prove; it was disabled for: {one.why}") for one in ports)
    return Preview(operation="cable enable", question=f"Enable and prove {len(ports)} links?", effects=effects)


def _disabled_ports(context: SiteContext, request: EnableRequest) -> tuple[DisabledPort, ...]:
    out = {one.label: one for one in ports_out(context.journal)}
    if not request.ports:
        return tuple(out.values())
    wanted = [f"{device} port {port}" for device, _, port in (text.rpartition(":") for text in request.ports)]
    unknown = [label for label in wanted if label not in out]
    if unknown:
        remedy = "clusterctl cable enable --dry-run lists the disabled ports"
        raise UsageError("it was not disabled by clusterctl", where=unknown[0], remedy=remedy)
    return tuple(out[label] for label in wanted)


@dataclass(frozen=True, slots=True)
class _Proof:
    """Proves enabled links: by their peer, by their rate, and by error counters that are read twice."""

    context: SiteContext
    adapters: Adapters
    isolator: Isolator
    limits: FabricLimits
    control: Control

    def enable(self, ports: Sequence[DisabledPort], deadline: Deadline) -> Iterator[Outcome]:
        up: list[DisabledPort] = []
        for one in ports:
            try:
                self.isolator.enable(one, deadline)
            except EdgeError as error:
                yield Outcome(node=one.label, failure=Failure.of(error))
            else:
                up.append(one)
        if up:
            yield from self._prove(up, deadline)

    def _prove(self, up: Sequence[DisabledPort], deadline: Deadline) -> Iterator[Outcome]:
        """Disable ports again that are slower than before; watch the counters of the others."""
        fabric, _ = self.isolator.fabric(deadline)
        links = {frozenset((link.a, link.b)): link for link in fabric.links}
        found = {one: links.get(frozenset((one.port, one.peer))) for one in up}
        slow = self._slower(fabric, found)
        for one, cause in slow.items():
            yield self._back_out(one, cause, deadline)
        full = {one: link for one, link in found.items() if one not in slow}
        if full:
            yield from self._watch(fabric, full, deadline)

    def _slower(self, fabric: Fabric, found: Mapping[DisabledPort, Link | None]) -> dict[DisabledPort, str]:
        """Return the ports below the rate that they had, or that most of their like have, with the cause."""
        judged = verify(wiring_plan(self.context.site), fabric)
        slow = {port: e.cause for e in judged.explanations if e.kind in RATE_KINDS for port in e.ports}
        causes: dict[DisabledPort, str] = {}
        for one, link in found.items():
            if link is not None and link.gbps < one.gbps:
                causes[one] = f"it came back at {link.rate} ({link.gbps:g} Gb/s), and had {one.gbps:g} Gb/s before"
            elif one.port in judged.names and judged.names[one.port] in slow:
                causes[one] = slow[judged.names[one.port]]
        return causes

    def _watch(
        self, fabric: Fabric, found: Mapping[DisabledPort, Link | None], deadline: Deadline
    ) -> Iterator[Outcome]:
        """Read the counters twice, as far apart as the limits take to prove the bit error rate."""
        seconds = _SLACK * max((interval_s(self.limits, link, "max") for link in found.values() if link), default=0.0)
        long = Deadline.after(deadline.remaining + seconds, deadline.cancelled)
        before = self.adapters.counters.ibqueryerrors(long)
        self.control.on_event(Event(text=f"{len(found)} enabled; their counters are watched for {span(seconds)}"))
        self.isolator.wait(seconds, long)
        after = self.adapters.counters.ibqueryerrors(long)
        for one, link in found.items():
            alone = Fabric(fabric.devices, (link,) if link is not None else ())
            judged = _judged(alone, before, after, self.limits)
            if judged.verdict.admits:
                proof = f"BER below {judged.proven_ber:g}"
                self.isolator.proven(one, proof, (*before.evidence, *after.evidence))
                yield Outcome(node=one.label, text=f"in use: {proof}")
            else:
                causes = "; ".join(finding.cause for finding in judged.findings) or "its link went down again"
                yield self._back_out(one, causes, long)

    def _back_out(self, one: DisabledPort, cause: str, deadline: Deadline) -> Outcome:
        self.isolator.back_out(one, deadline)
        failure = Failure(
            kind="unhealthy", message=f"disabled again: {cause}", remedy="repair it, then enable it again"
        )
        return Outcome(node=one.label, failure=failure)


def _judged(alone: Fabric, before: Observed[str], after: Observed[str], limits: FabricLimits) -> FabricHealth:
    """Judge one link by itself; the evidence of both readings gives the time between them."""
    first, last = (
        decode_telemetry(one.value.encode(), alone, file="ibqueryerrors") if alone.links else Telemetry()
        for one in (before, after)
    )
    seconds = (after.evidence[0].at - before.evidence[0].at).total_seconds()
    return judge_health(alone, HealthWindow(first, last, seconds, limits), fabric_labels(alone))


def port_isolator(context: SiteContext, adapters: Adapters, claim: Claim) -> Isolator:
    return Isolator(adapters.fabric, adapters.fabric_ports, context.journal, claim)


_Text = Annotated[str, Field(max_length=4000)]
_Count = Annotated[int, Field(ge=0)]


class _Port(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    device: _Text
    port: _Text


class _Finding(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    kind: _Text
    cause: _Text
    action: _Text
    verdict: _Text = "fail"
    ports: tuple[_Port, ...] = ()


class Findings(BaseModel):
    """The JSON that `cable health` or `cable verify` printed."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    findings: tuple[_Finding, ...]
    links: _Count = 0
    bad: _Count = 0
    links_planned: _Count = 0
    links_right: _Count = 0

    @property
    def judged(self) -> int:
        """The number of links that were, or should have been, judged."""
        return self.links or self.links_planned

    @property
    def broken(self) -> int:
        return self.bad if self.links else self.links_planned - self.links_right


def read_findings(data: bytes, file: str) -> Findings:
    """Return the findings. Raises `UsageError` naming the field that is wrong."""
    try:
        return Findings.model_validate_json(data)
    except ValidationError as error:
        field, message = first_in_words(error)
        remedy = "give what `cable health --json` or `cable verify --json` printed"
        raise UsageError(message, where=f"{file} {field}".rstrip(), remedy=remedy) from error
