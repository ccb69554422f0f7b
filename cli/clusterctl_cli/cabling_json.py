"""A verified cabling as JSON; its keys are a contract."""

from __future__ import annotations

from clusterctl.cabling.ethernet.verify import EthernetVerification
from clusterctl.cabling.explain.explanation import CablingExplanation
from clusterctl.operations.cabling import VerifyResult


def verification_json(verification: VerifyResult | EthernetVerification) -> dict[str, object]:
    return {
        "links_planned": verification.planned,
        "links_observed": verification.observed,
        "links_right": verification.right,
        "findings": [explanation_json(explanation) for explanation in verification.explanations],
        "moves": verification.moves,
        "devices_to_visit": verification.chassis,
        "warnings": list(verification.warnings),
    }


def explanation_json(explanation: CablingExplanation) -> dict[str, object]:
    return {
        "kind": explanation.kind.value,
        "subjects": list(explanation.subjects),
        "cause": explanation.cause,
        "action": explanation.action,
        "links": explanation.links,
        "moves": explanation.moves,
        "tie": explanation.tie,
        "nodes": list(explanation.nodes),
        "ports": [{"device": port.device, "port": port.port} for port in explanation.ports],
        "rack": explanation.rack,
    }
