"""The cable step of a site with an Ethernet plan: each host's network cables are judged in addition to its InfiniBand ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from clusterctl.edges.journal import open_journal
from clusterctl.fleet.errors import CancelledError, UnreachableError
from clusterctl.fleet.fabric.wiring import settle
from clusterctl.fleet.finding import Evidence, Finding, Observed, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.state import NodeState
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.steps.cable.ethernet import CableWithEthernet
from clusterctl.steps.cable.lldp import LldpReader
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepOutcome
from tests.steps.fakes import NOW, FixedClock

HEADER = "source_device,source_port,destination_device,destination_port\n"
PLAN = settle(read_ethernet_csv(HEADER + "".join(f"mgmt,swp{n},n{n},eth0\n" for n in (1, 2, 3, 4)), "ethernet.csv"))
SESSION = Evidence("ibnetdiscover", "controller", NOW, Origin.REAL, b"the fabric")


def answer_of(port: str = "", *, status: str = "ok", rc: int | None = 0, stderr: str = "") -> str:
    """Return what the script prints on a host: that it sees mgmt's `port`, or no neighbour."""
    body = {"chassis": [{"name": [{"value": "mgmt"}], "id": [{"type": "local", "value": "mgmt"}]}]}
    seen = [{"name": "eth0", "via": "LLDP", **body, "port": [{"id": [{"type": "ifname", "value": port}]}]}]
    own = [{"name": "eth0", **body, "port": [{"id": [{"type": "mac", "value": "02:00:00:00:00:01"}]}]}]

    def probe(interfaces: object) -> dict[str, object]:
        text = json.dumps({"lldp": [{"interface": interfaces}]})
        shown = {"argv": ["lldpctl"], "stdout": text if status == "ok" and rc == 0 else "", "stderr": stderr}
        return {**shown, "status": status, "rc": rc, "started": 0.0, "seconds": 0.1}

    probes = {"lldp-neighbours": probe(seen if port else []), "lldp-interfaces": probe(own)}
    head = {"version": 1, "origin": "real", "host": "n", "boot_id": "b", "started": 0.0, "finished": 1.0}
    return json.dumps({**head, "probes": probes})


@dataclass
class Hosts:
    """A shell: what each host answers at each session, the last answer for ever; an absent one is unreachable."""

    answers: dict[str, list[str]]
    cancelled: bool = False
    asked: list[str] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        self.asked.append(host.name)
        if self.cancelled:
            raise CancelledError("stopped")
        if host.name not in self.answers:
            raise UnreachableError("no route to host")
        answers = self.answers[host.name]
        return Observed(Ran(0, answers.pop(0) if len(answers) > 1 else answers[0], "", 0.1))


@dataclass(frozen=True)
class Proven:
    """A cable step by which every node's InfiniBand is right."""

    step: Step = Step.CABLE
    minimum: int = 1
    linger_s: float = 0.0
    at_once: int = 2

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        for node in nodes:
            yield StepOutcome(node.id, (Finding(check="cable", verdict=Verdict.PASS, code=Code.PASSED),), (SESSION,))


def node(name: str, host_key: str = "ssh-ed25519 AAAA") -> NodeState:
    return NodeState(NodeId(f"id-{name}"), name, address="192.0.2.1", host_key=host_key)


NODES = {name: node(name) for name in ("n1", "n2", "n3", "n4")}


Run = Callable[..., dict[str, StepOutcome]]


@pytest.fixture
def outcomes(tmp_path: Path) -> Iterator[Run]:
    """Runs the step: what came of each of the named nodes, in order."""
    with closing(open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())) as book:
        yield partial(run_step, IntentLog(book, {}))


def run_step(
    acts: IntentLog, shell: Hosts, names: Iterable[str], nodes: Mapping[str, NodeState] = NODES
) -> dict[str, StepOutcome]:
    def others(wanted: Iterable[str]) -> list[NodeState]:
        return [nodes[name] for name in wanted if name in nodes]

    step = CableWithEthernet(Proven(), PLAN, LldpReader(shell), SshAccess("ops", "key"), others, settle_s=0.01)
    return {out.node.removeprefix("id-"): out for out in step.run([nodes[n] for n in names], acts, Deadline.after(60))}


def ethernet(outcome: StepOutcome) -> Finding:
    (found,) = (finding for finding in outcome.findings if finding.check == "ethernet_cable")
    return found


def test_right_at_once(outcomes: Run) -> None:
    """One session each; both findings, with the evidence that each rests on."""
    shell = Hosts({"n1": [answer_of("swp1")], "n2": [answer_of("swp2")]})
    found = outcomes(shell, ("n1", "n2"))
    assert sorted(shell.asked) == ["n1", "n2"]
    assert [finding.check for finding in found["n1"].findings] == ["cable", "ethernet_cable"]
    assert ethernet(found["n1"]).verdict is Verdict.PASS
    kept = {item.digest for item in found["n1"].evidence}
    assert kept > set(ethernet(found["n1"]).evidence) > set()
    assert SESSION.digest in kept


def test_a_host_that_was_not_spoken_to_yet_is_asked_again(outcomes: Run) -> None:
    """It has just booted; the others do not wait, and are not asked twice."""
    shell = Hosts({"n1": [answer_of("swp1")], "n2": [answer_of(), answer_of("swp2")]})
    found = outcomes(shell, ("n1", "n2"))
    assert list(found) == ["n1", "n2"]
    assert ethernet(found["n2"]).verdict is Verdict.PASS
    assert sorted(shell.asked) == ["n1", "n2", "n2"]


def test_a_swap_with_a_node_that_is_done_already(outcomes: Run) -> None:
    """The host that owns the port is asked as well, so that the remedy is one swap; no other host is."""
    shell = Hosts({"n1": [answer_of("swp3")], "n3": [answer_of("swp1")], "n4": [answer_of("swp4")]})
    found = outcomes(shell, ("n1",))
    assert list(found) == ["n1"]
    assert ethernet(found["n1"]).verdict is Verdict.FAIL
    assert "swap the cables in swp1 and swp3" in ethernet(found["n1"]).remedy
    assert shell.asked == ["n1", "n1", "n3"]
    assert len(ethernet(found["n1"]).evidence) == 4  # two answers of each of them


@pytest.mark.parametrize(
    ("answer", "cause", "remedy"),
    [
        (answer_of(status="missing", rc=None), "lldpd is not installed on it", "install lldpd on n2"),
        (answer_of(status="timeout", rc=None), "did not answer within 20 s", "restart lldpd on n2"),
        (
            answer_of(rc=1, stderr="unable to connect to socket"),
            "unable to connect to socket",
            "systemctl status lldpd",
        ),
        ("nonsense", "not a probe document", "logged in to"),
        (json.dumps(json.loads(answer_of("swp2")) | {"probes": {}}), "did not report", "run the step again"),
        (
            answer_of("swp2").replace("ifname", "mac").replace('\\"value\\": \\"swp2', '\\"value\\": \\"'),
            "no id",
            "lldpctl",
        ),
    ],
)
def test_a_host_without_a_report_is_inconclusive(outcomes: Run, answer: str, cause: str, remedy: str) -> None:
    """Never missing, and no other host is affected."""
    found = outcomes(Hosts({"n1": [answer_of("swp1")], "n2": [answer]}), ("n1", "n2"))
    one = ethernet(found["n2"])
    assert (one.verdict, one.deterministic) == (Verdict.INCONCLUSIVE, False)
    assert cause in one.cause
    assert remedy in one.remedy
    assert ethernet(found["n1"]).verdict is Verdict.PASS


def test_unreachable_and_unknown(outcomes: Run) -> None:
    """A host that cannot be logged in to, and one whose key is not known, are inconclusive with their own words."""
    nodes = {**NODES, "n2": node("n2", host_key="")}
    found = outcomes(Hosts({}), ("n1", "n2"), nodes)
    assert "no route to host" in ethernet(found["n1"]).cause
    assert "its address or host key is unknown" in ethernet(found["n2"]).cause
    assert {ethernet(one).verdict for one in found.values()} == {Verdict.INCONCLUSIVE}


def test_a_cancelled_run_ends(outcomes: Run) -> None:
    """It is not taken for a silent host."""
    with pytest.raises(CancelledError):
        outcomes(Hosts({"n1": [answer_of("swp1")]}, cancelled=True), ("n1",))
