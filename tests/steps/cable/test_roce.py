"""The cable step of a RoCE site: adapters read on the host, cables proven by LLDP, and no InfiniBand sweep."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import open_journal
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.fabric.wiring import settle
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.state import NodeState
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.steps.cable.ethernet import CableWithEthernet
from clusterctl.steps.cable.lldp import LldpReader
from clusterctl.steps.cable.roce import CableByFabric, RoceLinks
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome, StepRunner
from tests.burnin.test_roce import IBSTAT as WITH_OTHERS
from tests.burnin.test_roce import ROCE, ports
from tests.steps.fakes import FixedClock

HEADER = "source_device,source_port,destination_device,destination_port\n"
CABLES = "".join(f"leaf{rail},swp{n},n{n},eth{rail}\n" for n in (1, 2) for rail in (0, 1))
PLAN = settle(read_ethernet_csv(HEADER + CABLES, "ethernet.csv"))
WITHOUT_ETH1 = settle(read_ethernet_csv(HEADER + CABLES.replace("leaf1,swp1,n1,eth1\n", ""), "ethernet.csv"))
IBSTAT = WITH_OTHERS[: WITH_OTHERS.index("CA 'mlx5_bond_0'")]
"""Two compute adapters, and one for management."""
SKU = dataclasses.replace(ROCE, name="roce", hca_count=2)
IB = dataclasses.replace(SKU, name="ib", hca_link_layer="InfiniBand")


def probes(**texts: str) -> str:
    """What the script prints on a host whose probes print these texts."""
    found = {
        name.replace("_", "-") if name.startswith("lldp") else name: {
            "argv": [name], "stdout": text, "stderr": "", "status": "ok", "rc": 0, "started": 0.0, "seconds": 0.1
        }
        for name, text in texts.items()
    }  # fmt: skip
    head = {"version": 1, "origin": "real", "host": "n", "boot_id": "b", "started": 0.0, "finished": 1.0}
    return json.dumps({**head, "probes": found})


def lldp(number: int, swapped: bool = False) -> str:
    """Return what host `number` reports: eth0 sees leaf0, eth1 sees leaf1, on its own switch port."""

    def seen(interface: str, leaf: str) -> dict[str, Any]:
        chassis = [{"name": [{"value": leaf}], "id": [{"type": "local", "value": leaf}]}]
        port = [{"id": [{"type": "ifname", "value": f"swp{number}"}]}]
        return {"name": interface, "via": "LLDP", "chassis": chassis, "port": port}

    leaves = ("leaf1", "leaf0") if swapped else ("leaf0", "leaf1")
    neighbours = [seen(f"eth{rail}", leaf) for rail, leaf in enumerate(leaves)]
    return probes(
        lldp_neighbours=json.dumps({"lldp": [{"interface": neighbours}]}),
        lldp_interfaces=json.dumps({"lldp": [{"interface": []}]}),
    )


@dataclass
class Hosts:
    """A shell: each host's adapters, and its LLDP; an absent host is unreachable."""

    adapters: dict[str, str]
    neighbours: dict[str, str]
    asked: list[str] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        answers = self.neighbours if b"lldpctl" in stdin else self.adapters
        self.asked.append(host.name)
        if host.name not in answers:
            raise UnreachableError("no route to host")
        return Observed(Ran(0, answers[host.name], "", 0.1))


def healthy(ibstat: str = IBSTAT, document: str = "") -> str:
    return probes(ibstat=ibstat, roce_ports=document or ports())


def node(name: str, sku: str = "roce") -> NodeState:
    return NodeState(NodeId(f"id-{name}"), name, address="192.0.2.1", host_key="ssh-ed25519 AAAA", sku=sku)


@pytest.fixture
def intents(tmp_path: Path) -> Iterator[IntentLog]:
    with closing(open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())) as book:
        yield IntentLog(book, {})


def no_infiniband() -> StepRunner:
    raise AssertionError("the InfiniBand fabric was read")


def run(shell: Hosts, nodes: Sequence[NodeState], intents: IntentLog, plan: Any = PLAN) -> dict[str, StepOutcome]:
    skus = {"roce": SKU, "ib": IB}
    reach = SshAccess("ops", "key")
    links = RoceLinks(shell, reach, plan, skus)
    proven = CableWithEthernet(links, plan, LldpReader(shell), reach, lambda _: [], 0.01) if plan else links
    step = CableByFabric(no_infiniband, proven, skus)
    return {out.node.removeprefix("id-"): out for out in step.run(nodes, intents, Deadline.after(60))}


def verdicts(outcome: StepOutcome) -> dict[str, Verdict]:
    return {finding.check: finding.verdict for finding in outcome.findings}


def only(outcome: StepOutcome, check: str) -> Finding:
    (found,) = (finding for finding in outcome.findings if finding.check == check)
    return found


def test_a_roce_node_is_proven_by_lldp_and_no_fabric_is_swept(intents: IntentLog) -> None:
    """Two adapters at 400 Gb/s, two planned cables, both where they belong; evidence of both sessions."""
    shell = Hosts({"n1": healthy()}, {"n1": lldp(1)})
    outcome = run(shell, [node("n1")], intents)["n1"]
    assert verdicts(outcome) == dict.fromkeys(("cable", "link_rate", "ethernet_cable"), Verdict.PASS)
    assert len(outcome.evidence) == 4
    assert all(finding.evidence for finding in outcome.findings)


def test_swapped_cables_fail_the_node(intents: IntentLog) -> None:
    """The adapters are up at full rate: only LLDP shows that rail 0 and rail 1 are exchanged."""
    shell = Hosts({"n1": healthy()}, {"n1": lldp(1, swapped=True)})
    outcome = run(shell, [node("n1")], intents)["n1"]
    assert verdicts(outcome)["cable"] is Verdict.PASS
    assert verdicts(outcome)["ethernet_cable"] is Verdict.FAIL


@pytest.mark.parametrize(
    ("ibstat", "code"),
    [
        (IBSTAT.replace("Rate: 400", "Rate: 100", 1), Code.HCA_RATE),
        (IBSTAT.replace("State: Active", "State: Down", 1).replace("LinkUp", "Disabled", 1), Code.HCA_PORT_DOWN),
    ],
)
def test_a_port_that_is_slow_or_down_fails_by_its_name(ibstat: str, code: Code, intents: IntentLog) -> None:
    """With the adapter as the subject."""
    outcome = run(Hosts({"n1": healthy(ibstat)}, {"n1": lldp(1)}), [node("n1")], intents)["n1"]
    bad = [finding for finding in outcome.findings if finding.verdict is Verdict.FAIL]
    assert [(finding.check, finding.subject, finding.code) for finding in bad] == [("link_rate", "mlx5_0", code)]


@pytest.mark.parametrize(
    ("plan", "adapters", "words"),
    [
        (None, healthy(), "has no Ethernet plan"),
        (WITHOUT_ETH1, healthy(), "has no cable for mlx5_1 (eth1)"),
        (PLAN, healthy(document=ports(lambda found: found[1].update(interface=None))), "mlx5_1 is unknown"),
        (PLAN, healthy(ibstat=IBSTAT[IBSTAT.index("CA 'mlx5_1'") :]), "1 of 2 RoCE adapters answer"),
        (PLAN, "", "could not be read"),
    ],
)
def test_what_is_not_proven_never_passes(plan: Any, adapters: str, words: str, intents: IntentLog) -> None:
    """No plan, a cable that is not planned, an unnamed interface, an adapter that is gone, a host that is silent."""
    shell = Hosts({"n1": adapters} if adapters else {}, {"n1": lldp(1)})
    outcome = run(shell, [node("n1")], intents, plan)["n1"]
    cable = only(outcome, "cable")
    assert cable.verdict is Verdict.INCONCLUSIVE
    assert words in cable.cause
    assert cable.remedy


@dataclass(frozen=True)
class Swept:
    """A step of an InfiniBand fabric."""

    step: Step = Step.CABLE
    minimum: int = 1
    linger_s: float = 0.0
    at_once: int = 2

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        for each in nodes:
            yield StepOutcome(each.id, (Finding(check="cable", verdict=Verdict.PASS, code=Code.PASSED, cause="swept"),))


def test_each_node_gets_the_step_of_its_fabric(intents: IntentLog) -> None:
    """A site with both kinds of nodes."""
    skus = {"roce": SKU, "ib": IB}
    links = RoceLinks(Hosts({"n1": healthy()}, {}), SshAccess("ops", "key"), PLAN, skus)
    step = CableByFabric(Swept, links, skus)
    outcomes = list(step.run([node("n2", "ib"), node("n1")], intents, Deadline.after(60)))
    assert [(one.node, one.findings[0].cause) for one in outcomes][1] == ("id-n2", "swept")
    assert outcomes[0].node == "id-n1"
    assert outcomes[0].findings[0].verdict is Verdict.PASS
