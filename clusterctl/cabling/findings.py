"""Explanations → each host's findings: checks `cable` and `link_rate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.verify import HostLinks, Verification
from clusterctl.fleet.finding import Digest, Finding, Verdict

CABLE = "cable"
LINK_RATE = "link_rate"


def findings_by_node(
    verification: Verification, nodes: Iterable[str], evidence: tuple[Digest, ...] = ()
) -> Mapping[str, tuple[Finding, ...]]:
    """For each of `nodes` what the fabric says of it, both checks reported for every node.

    What is wrong between switches names no host and fails none. A node without planned links is INCONCLUSIVE: nothing
    was proven.
    """
    return {
        node: tuple(replace(finding, evidence=evidence) for finding in _findings(node, verification)) for node in nodes
    }


def _findings(node: str, verification: Verification) -> tuple[Finding, ...]:
    links = verification.hosts.get(node, HostLinks(0, 0, None))
    mine = [e for e in verification.explanations if node in e.nodes]
    cable = [_failed(CABLE, node, e, links) for e in mine if e.kind is not Kind.SLOW_LINK]
    slow = [_failed(LINK_RATE, node, e, links) for e in mine if e.kind is Kind.SLOW_LINK]
    cable = cable or [_cable(links)]
    return (*cable, *(slow or [_link_rate(links, verification.host_gbps, cable[0])]))


def _failed(check: str, node: str, explanation: Explanation, links: HostLinks) -> Finding:
    adapters = sorted({port.port for port in explanation.ports if port.device == node})
    return Finding(
        check=check,
        verdict=Verdict.FAIL,
        subject=", ".join(adapters) or "node",
        cause=explanation.cause,
        measured=f"{links.right} links right",
        expected=f"{links.planned} links",
        remedy=explanation.action,
    )


def _cable(links: HostLinks) -> Finding:
    if links.planned == 0:
        return Finding(
            check=CABLE,
            verdict=Verdict.INCONCLUSIVE,
            cause="the wiring plan has no link of this node: nothing was proven",
            measured="0 links planned",
            remedy="add the node's links to the wiring plan",
        )
    proven = links.right == links.planned
    return Finding(
        check=CABLE,
        verdict=Verdict.PASS if proven else Verdict.INCONCLUSIVE,
        cause=f"{links.right} of {links.planned} planned links proven right",
        measured=f"{links.right} links right",
        expected=f"{links.planned} links",
        remedy="" if proven else "read the fabric again",
    )


def _link_rate(links: HostLinks, host_gbps: float | None, cable: Finding) -> Finding:
    """PASS only where every planned link was measured; else it waits for the cabling."""
    expected = f"{host_gbps:g}" if host_gbps is not None else "the usual rate"
    if links.planned == 0 or links.right < links.planned:
        return Finding(
            check=LINK_RATE,
            verdict=Verdict.INCONCLUSIVE,
            cause=f"the rate of {links.planned - links.right} planned links could not be measured"
            if links.planned
            else "no link is planned: no rate was measured",
            measured=f"{links.right} links",
            expected=f"{links.planned} links",
            remedy=cable.remedy,
            root="" if cable.verdict is Verdict.PASS else cable.key,
        )
    return Finding(
        check=LINK_RATE,
        verdict=Verdict.PASS,
        cause=f"the slowest of {links.right} links runs at {links.slowest_gbps:g} Gb/s",
        measured=f"{links.slowest_gbps:g}",
        expected=expected,
        unit="Gb/s",
    )
