"""An Ethernet verification → each host's findings: check `ethernet_cable`.

Judged are the cables of a host's own NICs, which its LLDP hears. A BMC's cable is heard by its switch alone: that one
answers over it is proven, its port is not, and the finding does not claim it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.ethernet.verify import EthernetVerification, is_bmc
from clusterctl.cabling.explain.explanation import Explanation, Kind
from clusterctl.fleet.fabric.wiring import PlannedCable, WiringPlan
from clusterctl.fleet.finding import Finding, Verdict

ETHERNET_CABLE = "ethernet_cable"


@dataclass(frozen=True, slots=True)
class Unheard:
    """Why a host did not tell what it hears, and what to do about it."""

    words: str
    remedy: str


def ethernet_findings(
    plan: WiringPlan, verification: EthernetVerification, nodes: Iterable[str], unheard: Mapping[str, Unheard]
) -> Mapping[str, tuple[Finding, ...]]:
    """For each of `nodes` at least one finding. What was not heard is INCONCLUSIVE, never missing."""
    return {node: tuple(_findings(plan, verification, node, unheard.get(node))) for node in nodes}


def _findings(
    plan: WiringPlan, verification: EthernetVerification, node: str, unheard: Unheard | None
) -> Iterable[Finding]:
    if unheard is not None:
        return [_inconclusive(f"whom its NICs hear is not known: {unheard.words}", unheard.remedy)]
    cables = [cable for cable in plan.cables if _of_nic(cable, node, plan)]
    if not cables:
        cause = "the Ethernet plan has no cable of this node's NICs: nothing was proven"
        return [_inconclusive(cause, f"add the cables of {node} to the Ethernet plan")]
    right = sum(cable.ends in verification.proven for cable in cables)
    wrong = [_wrong(node, found, right, len(cables)) for found in verification.explanations if node in found.nodes]
    unclear = [
        _inconclusive(
            f"the cable {item.cable.source} – {item.cable.destination} could not be measured: {item.reason}",
            "see what is plugged in at both its ends, then run the step again",
            _ports(node, item.cable),
        )
        for item in verification.unmeasured
        if item.cable in cables
    ]
    return wrong + unclear or [_proven(right, len(cables))]


def _of_nic(cable: PlannedCable, node: str, plan: WiringPlan) -> bool:
    return any(end.device == node and not is_bmc(end, plan.hosts) for end in cable.ends)


def _ports(node: str, cable: PlannedCable) -> str:
    return ", ".join(sorted(end.port for end in cable.ends if end.device == node)) or "node"


def _wrong(node: str, found: Explanation, right: int, planned: int) -> Finding:
    """A device that nobody hears may be cabled as planned and send no LLDP: that is not known."""
    ports = sorted({port.port for port in found.ports if port.device == node})
    unknown = found.kind is Kind.ABSENT_DEVICE
    return Finding(
        check=ETHERNET_CABLE,
        verdict=Verdict.INCONCLUSIVE if unknown else Verdict.FAIL,
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
        cause=f"{right} of {planned} planned cables of its NICs are heard where they belong",
        measured=f"{_cables(right)} right",
        expected=_cables(planned),
        remedy="" if proven else "run the step again",
        deterministic=proven,
    )


def _cables(number: int) -> str:
    return f"{number} cable{'' if number == 1 else 's'}"


def _inconclusive(cause: str, remedy: str, subject: str = "node") -> Finding:
    return Finding(
        check=ETHERNET_CABLE,
        verdict=Verdict.INCONCLUSIVE,
        subject=subject,
        cause=cause,
        remedy=remedy,
        deterministic=False,
    )
