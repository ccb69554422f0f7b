"""An Ethernet verification → findings of each host: check `ethernet_cable`.

The check judges the cables of a host's own NICs, which its LLDP reports. Only the switch reports a BMC's cable: the
answer of the BMC proves the cable, but not the port, so no finding claims it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.ethernet.verify import EthernetVerification, Unmeasured, is_bmc
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code

ETHERNET_CABLE = "ethernet_cable"


@dataclass(frozen=True, slots=True)
class MissingReport:
    """Why there is no LLDP report of a host, and what to do about it."""

    reason: str
    remedy: str


def ethernet_findings(
    plan: WiringPlan, verification: EthernetVerification, nodes: Iterable[str], missing: Mapping[str, MissingReport]
) -> Mapping[str, tuple[Finding, ...]]:
    """Return at least one finding for each of `nodes`. A missing report is INCONCLUSIVE, never a missing cable."""
    return {node: tuple(_findings(plan, verification, node, missing.get(node))) for node in nodes}


def _findings(
    plan: WiringPlan, verification: EthernetVerification, node: str, missing: MissingReport | None
) -> Iterable[Finding]:
    if missing is not None:
        cause = f"the LLDP neighbours of its NICs are unknown: {missing.reason}"
        return [_inconclusive(Code.LLDP_UNREADABLE, cause, missing.remedy)]
    cables = [cable for cable in plan.cables if _of_nic(cable, node, plan)]
    if not cables:
        cause = "the Ethernet plan has no cable of this node's NICs: nothing was proven"
        return [_inconclusive(Code.NOT_PLANNED, cause, f"add the cables of {node} to the Ethernet plan")]
    return _judged(cables, verification, node)


def _judged(cables: Sequence[PlannedCable], verification: EthernetVerification, node: str) -> list[Finding]:
    right = sum(cable.ends in verification.proven for cable in cables)
    wrong = [_wrong(node, found, right, len(cables)) for found in verification.explanations if node in found.nodes]
    unclear = [_unmeasured(node, item) for item in verification.unmeasured if item.cable in cables]
    planned = {end for cable in cables for end in cable.ends}
    others = {port: why for port, why in verification.disputed.items() if port.device == node and port not in planned}
    disputed = [_disputed(port, why) for port, why in others.items()]
    return wrong + unclear + disputed or [_proven(right, len(cables))]


def _disputed(port: PortName, reason: str) -> Finding:
    return _inconclusive(
        Code.CABLE_UNMEASURED,
        f"this node's LLDP report contradicts others: {reason}",
        f"check what is plugged in there, and what LLDP {port.device} receives, then run the step again",
        port.port,
    )


def _unmeasured(node: str, item: Unmeasured) -> Finding:
    return _inconclusive(
        Code.CABLE_UNMEASURED,
        f"the cable {item.cable.source} – {item.cable.destination} could not be measured: {item.reason}",
        "check what is plugged in at both ends, then run the step again",
        _ports(node, item.cable),
    )


def _of_nic(cable: PlannedCable, node: str, plan: WiringPlan) -> bool:
    return any(end.device == node and not is_bmc(end, plan.hosts) for end in cable.ends)


def _ports(node: str, cable: PlannedCable) -> str:
    return ", ".join(sorted(end.port for end in cable.ends if end.device == node)) or "node"


def _wrong(node: str, found: CablingExplanation, right: int, planned: int) -> Finding:
    """Return the finding for a difference. A silent device is unknown: it may be cabled as planned without LLDP."""
    ports = sorted({port.port for port in found.ports if port.device == node})
    unknown = found.kind is FaultKind.ABSENT_DEVICE
    return Finding(
        check=ETHERNET_CABLE,
        verdict=Verdict.INCONCLUSIVE if unknown else Verdict.FAIL,
        code=found.code,
        fault=found.fault,
        subject=", ".join(ports) or "node",
        cause=found.cause,
        measured=f"{_cables(right)} right",
        expected=_cables(planned),
        remedy=found.action,
        deterministic=not unknown,
    )


def _proven(right: int, planned: int) -> Finding:
    proven = right == planned
    return Finding(
        check=ETHERNET_CABLE,
        verdict=Verdict.PASS if proven else Verdict.INCONCLUSIVE,
        code=Code.PASSED if proven else Code.LINKS_UNPROVEN,
        cause=f"{right} of {planned} planned cables of its NICs are where they belong, by LLDP",
        measured=f"{_cables(right)} right",
        expected=_cables(planned),
        remedy="" if proven else "run the step again",
        deterministic=proven,
    )


def _cables(number: int) -> str:
    return f"{number} cable{'' if number == 1 else 's'}"


def _inconclusive(code: Code, cause: str, remedy: str, subject: str = "node") -> Finding:
    return Finding(
        check=ETHERNET_CABLE,
        verdict=Verdict.INCONCLUSIVE,
        code=code,
        subject=subject,
        cause=cause,
        remedy=remedy,
        deterministic=False,
    )
