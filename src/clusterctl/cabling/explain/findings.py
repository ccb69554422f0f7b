"""Explanations → findings of each host (checks `cable` and `link_rate`), and faults of the fabric itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clusterctl.cabling.explain.explanation import RATE_KINDS, CablingExplanation, FaultKind
from clusterctl.cabling.explain.verify import CablingVerification, HostLinks
from clusterctl.cabling.mass_failure import cabling_mass_failure
from clusterctl.fleet.finding import Digest, Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.payloads.hardware import FabricFault
from clusterctl.fleet.quantity import Quantity, exactly

CABLE = "cable"
_BY_ABSENCE = frozenset({FaultKind.MISSING_LINK, FaultKind.ABSENT_DEVICE, FaultKind.ISLAND})
"""Kinds that are proven only by a whole reading of the fabric."""
LINK_RATE = "link_rate"


def findings_by_node(
    verification: CablingVerification, nodes: Iterable[str], evidence: tuple[Digest, ...] = ()
) -> Mapping[str, tuple[Finding, ...]]:
    """Return the findings of both checks for each of `nodes`.

    A fault between switches affects no host. An absent switch holds the hosts behind it, which did not cause it
    (INCONCLUSIVE). A node without planned links is INCONCLUSIVE too: nothing was proven.
    """
    return {
        node: tuple(replace(finding, evidence=evidence) for finding in _findings(node, verification)) for node in nodes
    }


def faults_of_fabric(verification: CablingVerification, most_percent: float) -> tuple[FabricFault, ...]:
    """Return the faults that no host causes: whole switches with the hosts behind them, and cables without a host.

    If more than `most_percent` is broken, no host is judged, and all faults are returned except those of dark hosts.
    """
    dark, stopped = verification.dark_hosts, cabling_mass_failure(verification, most_percent) is not None
    return tuple(
        FabricFault(
            kind=found.kind.value,
            subjects=found.subjects,
            cause=found.cause,
            action=found.action,
            rack=found.rack,
            links=found.links,
            nodes=found.nodes,
        )
        for found in verification.explanations
        if _of_fabric(found, verification) or (stopped and not dark.issuperset(found.nodes))
    )


def _of_fabric(explanation: CablingExplanation, verification: CablingVerification) -> bool:
    if explanation.kind is FaultKind.NAMES_DIFFER:
        return False
    return not explanation.nodes or not verification.hosts.keys() >= set(explanation.devices)


def held_by_fabric(
    reason: str, nodes: Iterable[str], evidence: tuple[Digest, ...] = ()
) -> Mapping[str, tuple[Finding, ...]]:
    """Return findings that hold each of `nodes` because of the fabric: nothing was proven about the node itself."""
    cable = Finding(
        check=CABLE,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.FABRIC_BROKEN,
        fault="fabric",
        subject="fabric",
        cause=reason,
        remedy="repair the fabric first: clusterctl report lists its faults by rack; then run the same command again",
        deterministic=False,
        evidence=evidence,
    )
    rate = replace(cable, check=LINK_RATE, root=cable.key)
    return dict.fromkeys(nodes, (cable, rate))


def _findings(node: str, verification: CablingVerification) -> tuple[Finding, ...]:
    links = verification.hosts.get(node, HostLinks(0, 0, None))
    mine = [e for e in verification.explanations if node in e.nodes]
    cable = [_stopped(CABLE, node, e, verification) for e in mine if e.kind not in RATE_KINDS]
    slow = [_stopped(LINK_RATE, node, e, verification) for e in mine if e.kind in RATE_KINDS]
    cable = cable or [_cable(links)]
    return (*cable, *(slow or [_link_rate(links, verification.host_gbps, cable[0])]))


def _stopped(check: str, node: str, explanation: CablingExplanation, verification: CablingVerification) -> Finding:
    adapters = sorted({port.port for port in explanation.ports if port.device == node})
    links = verification.hosts.get(node, HostLinks(0, 0, None))
    unread = bool(verification.warnings) and explanation.kind in _BY_ABSENCE
    held = explanation.kind is FaultKind.NAMES_UNPROVEN or unread or _of_fabric(explanation, verification)
    return Finding(
        check=check,
        verdict=Verdict.INCONCLUSIVE if held else Verdict.FAIL,
        code=explanation.code,
        subject=", ".join(adapters) or "node",
        cause=explanation.cause,
        measured=Quantity(links.right, "links"),
        expected=exactly(links.planned, "links"),
        remedy=explanation.action,
        deterministic=not held,
        fault=explanation.fault,
    )


def _cable(links: HostLinks) -> Finding:
    if links.planned == 0:
        return Finding(
            check=CABLE,
            verdict=Verdict.INCONCLUSIVE,
            code=Code.NOT_PLANNED,
            fault="wiring plan",
            cause="the wiring plan has no link of this node: nothing was proven",
            measured=Quantity(0, "links"),
            remedy="add the node's links to the wiring plan",
        )
    proven = links.right == links.planned
    return Finding(
        check=CABLE,
        verdict=Verdict.PASS if proven else Verdict.INCONCLUSIVE,
        code=Code.PASSED if proven else Code.LINKS_UNPROVEN,
        cause=f"{links.right} of {links.planned} planned links proven right",
        measured=Quantity(links.right, "links"),
        expected=exactly(links.planned, "links"),
        remedy="" if proven else "read the fabric again",
    )


def _link_rate(links: HostLinks, host_gbps: float | None, cable: Finding) -> Finding:
    """Return PASS only if every planned link was measured; else the cabling comes first."""
    expected = exactly(host_gbps, "Gb/s") if host_gbps is not None else "the usual rate"
    if links.planned == 0 or links.right < links.planned:
        return Finding(
            check=LINK_RATE,
            verdict=Verdict.INCONCLUSIVE,
            code=Code.RATE_UNPROVEN if links.planned else Code.NOT_PLANNED,
            cause=(
                f"the rate of {links.planned - links.right} planned links could not be measured"
                if links.planned
                else "no link is planned: no rate was measured"
            ),
            measured=Quantity(links.right, "links"),
            expected=exactly(links.planned, "links"),
            remedy=cable.remedy,
            root="" if cable.verdict is Verdict.PASS else cable.key,
        )
    slowest = links.slowest_gbps
    return passed(
        LINK_RATE,
        f"the slowest of {links.right} links runs at {slowest:g} Gb/s",
        measured=None if slowest is None else Quantity(slowest, "Gb/s"),
        expected=expected,
    )
