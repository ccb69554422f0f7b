"""No wiring plan: the rule that most cables follow, as a plan, so that those which do not can be named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.infer_hosts import HostCable, HostRule, infer_hosts
from clusterctl.cabling.infer_trunks import TrunkRule, infer_trunks, tiers
from clusterctl.cabling.names import Hosts, name_ports, named_cables
from clusterctl.fleet.fabric import DeviceKind, Fabric
from clusterctl.fleet.wiring import PlannedCable, WiringPlan

_NO_PLAN = WiringPlan((), frozenset())


@dataclass(frozen=True, slots=True)
class Inference:
    """`plan` are the cables that the rules ask for, and those that no rule covers as they are (`unjudged` of them: what
    nobody can call right or wrong); `rules` the rules in words.
    """

    plan: WiringPlan
    judged: int
    unjudged: int
    rules: tuple[str, ...]


def infer(fabric: Fabric, hosts: Hosts | None = None) -> Inference:
    """`hosts` are GUIDs known from elsewhere. Raises nothing: where there is no rule, nothing is judged."""
    named = name_ports(fabric, _NO_PLAN, hosts or {})
    observed = {cable.ends for cable in named_cables(fabric, named.ports)}
    adapters = {name for port, name in named.ports.items() if fabric.devices[port.guid].kind is not DeviceKind.SWITCH}
    host_cables, trunks = [], []
    for ends in observed:
        there = ends & adapters
        if len(there) == 1:
            host_cables.append(HostCable(next(iter(ends - there)), next(iter(there))))
        elif not there:
            trunks.append(ends)
    by_host = infer_hosts(host_cables)
    by_tier = infer_trunks(trunks, tiers(trunks, Counter(cable.leaf.device for cable in host_cables)))
    expected = _undisputed((*by_host.expected, *by_tier.expected))
    ruled = {port for ends in expected for port in ends}
    rest = [ends for ends in observed if ends.isdisjoint(ruled)]
    cables = [PlannedCable(min(ends), max(ends)) for ends in (*expected, *sorted(rest, key=sorted))]
    plan = WiringPlan(tuple(cables), frozenset(port.device for port in adapters))
    return Inference(plan, len(expected), len(rest), _rules(by_host, by_tier))


def _undisputed(expected: Iterable[Ends]) -> list[Ends]:
    """Without cables that two rules would put into one port."""
    expected = list(dict.fromkeys(expected))
    count = Counter(port for ends in expected for port in ends)
    return [ends for ends in expected if all(count[port] == 1 for port in ends)]


def _rules(hosts: HostRule, trunks: TrunkRule) -> tuple[str, ...]:
    rules = []
    if hosts.expected:
        leaves = sum(len(group) for group in hosts.groups)
        rails = sorted({rail for group in hosts.groups for rail in group})
        rules.append(
            f"{leaves} leaves carry one rail each ({', '.join(rails)}), in {len(hosts.groups)} groups of hosts"
        )
        rules.append("a host is in the same port of each leaf of its group, or in the port that its number tells")
    if trunks.expected:
        rules.append(
            f"port p of each switch leads to the same upper switch, in {len(trunks.pods)} groups; "
            "the upper switch's port tells the lower one"
        )
    return tuple(rules)
