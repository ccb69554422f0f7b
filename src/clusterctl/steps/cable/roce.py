"""The cable step of nodes whose compute fabric is Ethernet (RoCE): LLDP proves their cables, not a subnet sweep.

`RoceLinks` reads a node's own adapters: each is active at the SKU's rate (`link_rate`), and the Ethernet plan has a
cable for its network interface (`cable`). That these cables are where the plan has them is the finding
`ethernet_cable`, which `CableWithEthernet` adds. `CableByFabric` gives each node the step of its fabric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from clusterctl.cabling.ethernet.verify import is_bmc
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.finding import Evidence, Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Step
from clusterctl.fleet.quantity import Bound, Quantity, exactly
from clusterctl.fleet.state import NodeState
from clusterctl.formats.infiniband.adapters import Adapter, IbPort
from clusterctl.formats.infiniband.roce import parse_roce_ports
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.burnin.node_under_test import SessionFailure, read_probes
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome, StepRunner, with_evidence
from clusterctl_burnin.checks.roce import PORTS
from clusterctl_burnin.probe import Readings, UnmeasuredError, script
from clusterctl_burnin.probes.ibstat import ETHERNET, IBSTAT, compute_adapters
from clusterctl_burnin.sweep import at_most

CABLE, LINK_RATE = "cable", "link_rate"
AT_ONCE = 64
_PROBES = (IBSTAT, PORTS)


@dataclass(frozen=True)
class RoceLinks:
    """Reads the adapters of the nodes over SSH, one session each, `sessions` at a time.

    `plan` is None where the site names no Ethernet plan: then nothing is proven.
    """

    shell: Shell
    reach: SshAccess
    plan: WiringPlan | None
    skus: Mapping[str, Sku]
    sessions: int = AT_ONCE
    step: Step = Step.CABLE
    minimum: int = 1
    linger_s: float = 2.0
    at_once: int = 2

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        del intents  # the adapters are read, never changed
        hosts, lost = self.reach.split(nodes, self.step)
        yield from lost
        there = [node for node in nodes if node.name in hosts]
        if not there:
            return
        stdin, most = script(_PROBES), at_most(_PROBES)
        with ThreadPoolExecutor(min(self.sessions, len(there)), "roce") as pool:
            yield from pool.map(lambda node: self._one(node, hosts[node.name], stdin, deadline.within(most)), there)

    def _one(self, node: NodeState, host: HostAddress, stdin: bytes, deadline: Deadline) -> StepOutcome:
        evidence = tuple[Evidence, ...]()
        try:
            answer, evidence = read_probes(self.shell, host, stdin, deadline, privileged=True)
            if isinstance(answer, SessionFailure):
                remedy = answer.remedy or f"see that {host.name} can be logged in to, then run this again"
                return StepOutcome(node.id, _unread(answer.cause, remedy), evidence)
            evidence = tuple(answer.evidence().values())
            found = tuple(self._judge(node, answer))
        except (UnmeasuredError, ParseError) as error:
            where = f"{error.where}: " if error.where else ""
            found = _unread(f"{where}{error.message}", error.remedy or "run the step again")
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            broken = peer_error(error, host.name)
            found = _unread(broken.message, broken.remedy)
        return StepOutcome(node.id, with_evidence(found, evidence), evidence)

    def _judge(self, node: NodeState, readings: Readings) -> Iterator[Finding]:
        sku = self.skus[node.sku]
        adapters = compute_adapters(readings, sku)
        ports = {port.name: port.interface for port in parse_roce_ports(readings.text(PORTS))}
        interfaces = {adapter.name: ports.get(adapter.name) for adapter in adapters}
        yield _cable(node, interfaces, sku, self.plan)
        yield from _rates(adapters, sku)


def _cable(node: NodeState, interfaces: Mapping[str, str | None], sku: Sku, plan: WiringPlan | None) -> Finding:
    """Return whether the Ethernet plan has a cable for each compute adapter of the SKU."""
    if plan is None:
        remedy = "name the plan of the RoCE cables in site.yml (fabric.ethernet), and switch LLDP on at the switches"
        return _inconclusive(CABLE, Code.NOT_PLANNED, "the site has no Ethernet plan to prove its cables by", remedy)
    nameless = [name for name, interface in interfaces.items() if interface is None]
    if nameless:
        cause = f"the network interface of {', '.join(nameless)} is unknown"
        return _inconclusive(CABLE, Code.NOT_REPORTED, cause, "give it an IP address: GIDs name the interface")
    planned = _planned_ports(node, plan)
    without = [f"{name} ({port})" for name, port in interfaces.items() if port and port.casefold() not in planned]
    if without:
        cause = f"the Ethernet plan has no cable for {', '.join(without)}"
        remedy = f"add the cables of {node.name} to the Ethernet plan, by the names of its network interfaces"
        return _inconclusive(CABLE, Code.NOT_PLANNED, cause, remedy)
    if len(interfaces) != sku.hca_count:
        cause = f"{len(interfaces)} of {sku.hca_count} RoCE adapters answer"
        return _inconclusive(
            CABLE, Code.LINKS_UNPROVEN, cause, "see which adapter ibstat lacks, then run the step again"
        )
    count = Quantity(len(interfaces), "adapters")
    cause = "the Ethernet plan has a cable for each RoCE adapter; ethernet_cable proves where they are"
    return passed(CABLE, cause, measured=count, expected=exactly(sku.hca_count, "adapters"))


def _planned_ports(node: NodeState, plan: WiringPlan) -> set[str]:
    """Return the node's ports of the plan without its BMC's, without regard to case."""
    return {
        end.port.casefold()
        for cable in plan.cables
        for end in cable.ends
        if end.device == node.name and not is_bmc(end, plan.hosts)
    }


def _rates(adapters: Sequence[Adapter], sku: Sku) -> Iterator[Finding]:
    wanted = exactly(sku.hca_rate_gbps, "Gb/s")
    ports = [(adapter.name, port) for adapter in adapters for port in adapter.ports]
    bad = [_down(name, port) for name, port in ports if not port.up]
    bad += [_slow(name, port, wanted) for name, port in ports if port.up and port.rate != sku.hca_rate_gbps]
    yield from bad
    if len(adapters) != sku.hca_count:
        cause = f"{len(adapters)} of {sku.hca_count} RoCE adapters answer: the rate of the others is unknown"
        yield _inconclusive(
            LINK_RATE, Code.RATE_UNPROVEN, cause, "see which adapter ibstat lacks, then run the step again"
        )
    elif not bad:
        yield passed(
            LINK_RATE, "all RoCE ports are active", measured=Quantity(sku.hca_rate_gbps, "Gb/s"), expected=wanted
        )


def _down(name: str, port: IbPort) -> Finding:
    return Finding(
        check=LINK_RATE,
        verdict=Verdict.FAIL,
        code=Code.HCA_PORT_DOWN,
        subject=name,
        cause=f"the port of {name} is {port.state} ({port.physical})",
        measured=port.state,
        expected="Active",
        remedy="check that the cable is plugged in at both ends and that the switch port is enabled",
        deterministic=False,
    )


def _slow(name: str, port: IbPort, wanted: Bound) -> Finding:
    return Finding(
        check=LINK_RATE,
        verdict=Verdict.FAIL,
        code=Code.HCA_RATE,
        subject=name,
        cause=f"the port of {name} runs at another rate than the SKU's",
        measured=Quantity(port.rate, "Gb/s"),
        expected=wanted,
        remedy="clean or replace the cable or transceiver; check the rate that the switch port is set to",
        deterministic=False,
    )


def _unread(cause: str, remedy: str) -> tuple[Finding, ...]:
    cause = f"its RoCE adapters could not be read: {cause}"
    cable = _inconclusive(CABLE, Code.NOT_MEASURED, cause, remedy)
    return cable, _inconclusive(LINK_RATE, Code.RATE_UNPROVEN, cause, remedy)


def _inconclusive(check: str, code: Code, cause: str, remedy: str) -> Finding:
    return Finding(
        check=check, verdict=Verdict.INCONCLUSIVE, code=code, cause=cause, remedy=remedy, deterministic=False
    )


@dataclass(frozen=True, slots=True)
class CableByFabric:
    """The step of each node's fabric: `roce` for nodes whose SKU has link layer Ethernet, `infiniband` for the others.

    `infiniband` makes its step when the first such node comes: a site of RoCE nodes alone needs no InfiniBand plan.
    """

    infiniband: Callable[[], StepRunner]
    roce: StepRunner
    skus: Mapping[str, Sku]

    step = Step.CABLE
    minimum = 1
    linger_s = 2.0
    at_once = 2

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        """Yield the outcomes of the RoCE nodes first: no sweep of an InfiniBand fabric keeps them waiting."""
        ethernet = [node for node in nodes if self._is_roce(node)]
        others = [node for node in nodes if not self._is_roce(node)]
        if ethernet:
            yield from self.roce.run(ethernet, intents, deadline)
        if others:
            yield from self.infiniband().run(others, intents, deadline)

    def _is_roce(self, node: NodeState) -> bool:
        sku = self.skus.get(node.sku)
        return sku is not None and sku.hca_link_layer == ETHERNET
