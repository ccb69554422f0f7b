"""What work orders need besides the nodes: the fabric's faults with their evidence, and the cables as planned."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.site.contents import ethernet_plan, wiring_plan
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.history import open_faults
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.payloads.hardware import FabricFault
from clusterctl.fleet.reporting.work_orders import Planned
from clusterctl.operations.context import SiteContext


def faults_with_evidence(context: SiteContext) -> list[tuple[FabricFault, tuple[Digest, ...]]]:
    """What was wrong with the fabric, and no node's fault, when it was last read."""
    events = list(context.journal.latest(Stream.FABRIC, Kind.FABRIC_FAULT_SEEN))
    evidence = {event.subject: event.evidence for event in events}
    return [(fault, evidence[fault.subject]) for fault in open_faults(events)]


def planned_cables(context: SiteContext) -> Planned:
    """By either end. A site that has no wiring plan yet may have orders nevertheless: then none are told."""
    plans = [wiring_plan(context.site)] if Path(context.site.path(context.site.settings.fabric.plan)).exists() else []
    ethernet = ethernet_plan(context.site)
    plans += [ethernet] if ethernet is not None else []
    return {end: cable for plan in plans for cable in plan.cables for end in cable.ends}
