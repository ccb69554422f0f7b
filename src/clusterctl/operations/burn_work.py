"""What is to be done after a burn: links to disable under the budget, to clean, to replace, to check and to watch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.cabling.health.findings import FabricLabels, HealthFinding, fabric_labels
from clusterctl.cabling.health.judge import FabricHealth
from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.fabric.port_acts import enabled_since
from clusterctl.fleet.fabric.topology import Fabric, Link
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.finding import Verdict
from clusterctl.operations.context import SiteContext
from clusterctl.operations.link_isolation import BadLink, plan_disable

_CLEANED = frozenset({HealthKind.FLAPPING, HealthKind.BIT_ERRORS, HealthKind.PACKET_ERRORS, HealthKind.SLOW})
"""Kinds that a dirty or badly seated cable explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnWork:
    """Findings by what is to be done with their links.

    disable   requests for repair of the links that `cable disable` would take: `port`, `peer`, `rack`, `why`, `repair`
    kept      bad links that stay in use, with the reason
    budget    how many links may be out at a time; `out` of them are
    clean     whose ends are to be cleaned and reseated
    replace   that are bad again after a repair
    check     that are lost or overheated: cable, power, airflow
    watch     that showed something which is no fault yet
    """

    disable: tuple[Mapping[str, str], ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)
    budget: int = 0
    out: int = 0
    clean: tuple[HealthFinding, ...] = ()
    replace: tuple[HealthFinding, ...] = ()
    check: tuple[HealthFinding, ...] = ()
    watch: tuple[HealthFinding, ...] = ()


def work_after(context: SiteContext, fabric: Fabric, health: FabricHealth) -> BurnWork:
    """Return the work. `fabric`: as the last stage found it. Where the cause is a common one, no link is disabled."""
    labels = fabric_labels(fabric, wiring_plan(context.site))
    enabled = enabled_since(context.journal.latest(Stream.FABRIC, Kind.ACT_INTENDED))
    repaired = frozenset(labels.name(port) for port in enabled)
    bad = [one for one in health.findings if one.verdict is Verdict.FAIL]
    cleaned = [one for one in bad if one.kind in _CLEANED]
    plan = plan_disable(context, fabric, _bad_links(() if health.stop else bad, fabric, labels), labels)
    return BurnWork(
        disable=tuple(plan.repair_request(cut) for cut in plan.ordered),
        kept=plan.refusals,
        budget=plan.cuts.budget,
        out=plan.cuts.out,
        clean=tuple(one for one in cleaned if not _is_repaired(one, repaired)),
        replace=tuple(one for one in cleaned if _is_repaired(one, repaired)),
        check=tuple(one for one in bad if one.kind not in _CLEANED),
        watch=tuple(one for one in health.findings if one.verdict is Verdict.WARN and one.ends),
    )


def _is_repaired(finding: HealthFinding, repaired: Collection[PortName]) -> bool:
    """Return whether one of the links was out for a repair and came back."""
    return any(end in repaired for end in finding.ends)


def _bad_links(findings: Iterable[HealthFinding], fabric: Fabric, labels: FabricLabels) -> Iterator[BadLink]:
    """Yield the links of the findings that are up."""
    links: dict[PortName, Link] = {labels.name(end): link for link in fabric.cables() for end in (link.a, link.b)}
    for finding in findings:
        for near, far in zip(finding.ends[::2], finding.ends[1::2], strict=False):
            link = links.get(near)
            if link is not None and link is links.get(far):
                yield BadLink(link, f"{finding.kind.value}: {finding.cause}", finding.action)
