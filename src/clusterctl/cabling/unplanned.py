"""A fabric without a wiring plan, held against the rule that most of its cables follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.infer import Inference, infer
from clusterctl.cabling.names import Hosts
from clusterctl.cabling.verify import Verification, verify
from clusterctl.fleet.fabric import Fabric


@dataclass(frozen=True, slots=True)
class Unplanned:
    """`verification` counts as planned what the inferred rules ask for; cables that no rule covers are a finding."""

    inference: Inference
    verification: Verification


def verify_unplanned(fabric: Fabric, hosts: Hosts | None = None, *, host_gbps: float | None = None) -> Unplanned:
    """As `verify`, against an inferred plan. What was not judged is said; a fabric without any rule never passes."""
    inference = infer(fabric, hosts)
    verification = verify(inference.plan, fabric, hosts, host_gbps=host_gbps)
    explanations = verification.explanations
    if inference.unjudged or not inference.judged:
        explanations = (*explanations, _no_rule(inference))
    judged = replace(
        verification,
        planned=inference.judged,
        right=verification.right - inference.unjudged,
        explanations=explanations,
    )
    return Unplanned(inference, judged)


def _no_rule(inference: Inference) -> Explanation:
    """Of cables that can be called neither right nor wrong."""
    some = "no rule was found in this fabric" if not inference.judged else "no inferred rule covers them"
    return Explanation(
        kind=Kind.NO_RULE,
        cause=f"{inference.unjudged} cables are not judged: {some}",
        action="give a wiring plan (--plan) to have them judged",
        devices=("the fabric",),
        links=inference.unjudged,
    )
