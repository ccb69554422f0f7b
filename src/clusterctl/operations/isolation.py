"""What `cable disable` and `cable enable` share: findings as links, and the means to act on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clusterctl.cabling.health.findings import FabricLabels
from clusterctl.cabling.isolation import Pair
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.infiniband import CounterReader, IbnetdiscoverReader, IbPorts
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.topology import Link, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.operations.context import SiteContext
from clusterctl.ports import Claim
from clusterctl.steps.cable.isolation import Isolator

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
    """What `cable health --json` or `cable verify --json` printed."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    findings: tuple[_Finding, ...]
    links: _Count = 0
    bad: _Count = 0
    links_planned: _Count = 0
    links_right: _Count = 0

    @property
    def judged(self) -> int:
        """All links that were, or should have been, looked at."""
        return self.links or self.links_planned

    @property
    def broken(self) -> int:
        return self.bad if self.links else self.links_planned - self.links_right


@dataclass(frozen=True, slots=True)
class Wish:
    """A link that shall be out: why, and what a technician is to do about it."""

    link: Link
    why: str
    action: str


def read_findings(data: bytes, file: str) -> Findings:
    """Raises UsageError naming the field."""
    try:
        return Findings.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        remedy = "give what `cable health --json` or `cable verify --json` printed"
        raise UsageError(str(first["msg"]), where=f"{file} {field}".rstrip(), remedy=remedy) from error


def wishes(found: Findings, links: Mapping[PortName, Link]) -> Iterator[Wish]:
    """Of findings that fail and are about one link that is up."""
    for finding in found.findings:
        ends = [PortName(port.device, port.port) for port in finding.ports]
        link = links.get(ends[0]) if finding.verdict == "fail" and len(ends) == 2 else None
        if link is not None and link is links.get(ends[1]):
            yield Wish(link, f"{finding.kind}: {finding.cause}", finding.action)


def links_by_name(links: tuple[Link, ...], places: FabricLabels) -> dict[PortName, Link]:
    return {places.name(end): link for link in links for end in (link.a, link.b)}


def twins_of(plan: WiringPlan, places: FabricLabels) -> dict[Pair, int]:
    """How many cables the plan has between each two switches that are seen."""
    guids = {name.device: port.guid for port, name in places.names.items() if name.device not in plan.hosts}
    pairs = ((cable.source.device, cable.destination.device) for cable in plan.cables)
    return Counter(frozenset((guids[a], guids[b])) for a, b in pairs if a in guids and b in guids)


def port_named(text: str, links: Mapping[PortName, Link]) -> PortName:
    """`leaf-1:3`. Raises UsageError where no link is there."""
    device, _, port = text.rpartition(":")
    name = PortName(device, port)
    if name not in links:
        raise UsageError("no link is up at this port", where=f"--port {text}", remedy="write it as SWITCH:PORT")
    return name


def isolator(context: SiteContext, claim: Claim) -> Isolator:
    fabric = context.site.settings.fabric
    reader = IbnetdiscoverReader(CLOCK, context.site.origin, command=fabric.ibnetdiscover, sminfo=fabric.sminfo)
    admin = IbPorts(CLOCK, context.site.origin, ibportstate=fabric.ibportstate, smpquery=fabric.smpquery)
    return Isolator(reader, admin, context.journal, claim)


def counter_reader(context: SiteContext) -> CounterReader:
    return CounterReader(CLOCK, context.site.origin, command=context.site.settings.fabric.ibqueryerrors)


def in_words(port: PortId, places: FabricLabels) -> str:
    """With rack, unit and cage where they are known."""
    return f"{places.at(port)}{places.port(port)}"
