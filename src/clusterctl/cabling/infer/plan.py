"""Without a wiring plan: the rules that most cables follow, as a plan; the other cables differ from it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.explain.verify import CablingVerification, verify
from clusterctl.cabling.infer.absent import Switches, absent_switches, far_ports
from clusterctl.cabling.infer.lacking import lacking_adapters
from clusterctl.cabling.infer.rules import HostCable, HostCablingRule, TrunkRule, infer_hosts, infer_trunks, tiers
from clusterctl.cabling.infer.uneven import fewer_uplinks, last_ports_free, missing_numbers
from clusterctl.cabling.names import Hosts, Named, name_ports, named_cables
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan

_NO_PLAN = WiringPlan((), frozenset())


@dataclass(frozen=True, slots=True)
class Inference:
    """`plan` has the cables that the rules require, and as they are the `unjudged` ones that no rule covers; `rules`
    are the texts of the rules; `absent` the switches that the rules miss, or
    else what suggests that one is absent; `limits` the texts of what cannot be seen without a plan.
    """

    plan: WiringPlan
    judged: int
    unjudged: int
    rules: tuple[str, ...]
    absent: tuple[CablingExplanation, ...] = ()
    limits: tuple[str, ...] = ()


def infer(fabric: Fabric, hosts: Hosts | None = None) -> Inference:
    """Return the inference. `hosts` are GUIDs from an inventory. Without any rule no cable is judged."""
    named = name_ports(fabric, _NO_PLAN, hosts or {})
    observed = {cable.ends for cable in named_cables(fabric, named.ports)}
    adapters = _adapters(fabric, named)
    host_cables, trunks = _by_kind(observed, adapters)
    by_host = infer_hosts(host_cables)
    level = tiers(trunks, Counter(cable.leaf.device for cable in host_cables))
    by_tier = infer_trunks(trunks, level)
    expected = _undisputed((*by_host.expected, *by_tier.expected))
    ruled = {port for ends in expected for port in ends}
    rest = [ends for ends in observed if ends.isdisjoint(ruled)]
    cables = [PlannedCable(min(ends), max(ends)) for ends in (*expected, *sorted(rest, key=sorted))]
    plan = WiringPlan(tuple(cables), frozenset(port.device for port in adapters))
    switches = _switches(by_tier.pods, level, trunks, host_cables)
    absent = tuple(absent_switches(switches)) or (
        *lacking_adapters(host_cables, by_host.groups),
        *fewer_uplinks(switches),
        *last_ports_free(switches, _port_counts(fabric, named)),
    )
    limits = (_LIMIT, *missing_numbers(host_cables))
    return Inference(plan, len(expected), len(rest), _rules(by_host, by_tier), absent, limits)


_LIMIT = (
    "an absent first or last switch of a row, and hosts without any cable, may leave no trace: "
    "only a wiring plan (--plan) shows them"
)


def _switches(
    pods: tuple[tuple[str, ...], ...], level: Mapping[str, int], trunks: list[Ends], host_cables: list[HostCable]
) -> Switches:
    hosts: dict[str, set[int]] = defaultdict(set)
    for cable in host_cables:
        hosts[cable.leaf.device].add(cable.number)
    return Switches(pods, level, far_ports(trunks), dict(hosts))


def _port_counts(fabric: Fabric, named: Named) -> dict[str, int]:
    """Return the number of cages' ports by the name of the switch: an odd last one leads to its aggregation node."""
    return {name.device: fabric.devices[port.guid].ports // 2 * 2 for port, name in named.ports.items()}


def _adapters(fabric: Fabric, named: Named) -> set[PortName]:
    return {name for port, name in named.ports.items() if fabric.devices[port.guid].kind is not DeviceKind.SWITCH}


def _by_kind(observed: Iterable[Ends], adapters: set[PortName]) -> tuple[list[HostCable], list[Ends]]:
    """Return the cables of hosts, and those between switches. No rule gives a number to a port of a chassis."""
    host_cables, trunks = [], []
    for ends in observed:
        there = ends & adapters
        if any(end.board for end in ends):
            continue
        if len(there) == 1:
            host_cables.append(HostCable(next(iter(ends - there)), next(iter(there))))
        elif not there:
            trunks.append(ends)
    return host_cables, trunks


def _undisputed(expected: Iterable[Ends]) -> list[Ends]:
    """Return the cables without those that two rules would put into one port."""
    expected = list(dict.fromkeys(expected))
    count = Counter(port for ends in expected for port in ends)
    return [ends for ends in expected if all(count[port] == 1 for port in ends)]


def _rules(hosts: HostCablingRule, trunks: TrunkRule) -> tuple[str, ...]:
    rules = []
    if hosts.expected:
        leaves = sum(len(group) for group in hosts.groups)
        rails = sorted({rail for group in hosts.groups for rail in group})
        rules.append(
            f"{leaves} leaves carry one rail each ({', '.join(rails)}), in {len(hosts.groups)} groups of hosts"
        )
        rules.append("a host is in the same port of each leaf of its group, or in the port of its number")
    if trunks.expected:
        rules.append(
            f"port p of each switch leads to the same upper switch, in {len(trunks.pods)} groups; "
            "the upper switch's port identifies the lower one"
        )
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class Unplanned:
    """`verification` counts as planned what the inferred rules ask for; cables that no rule covers are a finding."""

    inference: Inference
    verification: CablingVerification


def verify_unplanned(fabric: Fabric, hosts: Hosts | None = None, *, host_gbps: float | None = None) -> Unplanned:
    """Return the verification against an inferred plan. Cables without a rule are a finding, so the fabric fails."""
    inference = infer(fabric, hosts)
    verification = verify(inference.plan, fabric, hosts, host_gbps=host_gbps)
    explanations = (*inference.absent, *verification.explanations)
    if inference.unjudged or not inference.judged:
        explanations = (*explanations, _no_rule(inference))
    judged = replace(
        verification,
        planned=inference.judged,
        right=verification.right - inference.unjudged,
        explanations=explanations,
    )
    return Unplanned(inference, judged)


def _no_rule(inference: Inference) -> CablingExplanation:
    """Return the explanation of cables that are neither right nor wrong."""
    some = "no rule was found in this fabric" if not inference.judged else "no inferred rule covers them"
    return CablingExplanation(
        kind=FaultKind.NO_RULE,
        cause=f"{inference.unjudged} cables are not judged: {some}",
        action="give a wiring plan (--plan) to have them judged",
        devices=("the fabric",),
        links=inference.unjudged,
    )
