"""burnin: checks first, loads on the healthy nodes, and the bad node is distinguished from its partners."""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from clusterctl.fleet.errors import ClaimLostError, NoSshError, OutcomeUnknownError, SshFailure
from clusterctl.fleet.event import Event, NewEvent, Stream
from clusterctl.fleet.event import Kind as EventKind
from clusterctl.fleet.finding import Digest, Evidence, Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.node import Location, NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Deadline, HostAddress, Power, Ran
from clusterctl.steps.burnin.campaigns import CampaignJournal, CampaignStore
from clusterctl.steps.burnin.fleet_figures import FleetFigures
from clusterctl.steps.burnin.node_checks import NodeChecker
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.burnin.plan import BurninPlan, BurninServices
from clusterctl.steps.burnin.step import Burnin
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from clusterctl.steps.executor.step import StepOutcome
from clusterctl_burnin.check import Check, Expected
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.ibstat import IBSTAT
from clusterctl_burnin.suites.suite import Suite
from tests.fake_timer import FakeTimer
from tests.lab_data import lab_limits
from tests.steps.discover.test_discover import SKU
from tests.steps.fakes import FakeBmc, FakeBmcs, FixedClock, address_of, inventory, seen

TABLE = """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 8388608    100            {rate}             {rate}               0.0058
"""
ADAPTER = """\
CA 'mlx5_0'
\tCA type: MT4129
\tNumber of ports: 1
\tFirmware version: 28.39.1002
\tHardware version: 0
\tNode GUID: 0xa088c20300000100
\tSystem image GUID: 0xa088c20300000100
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tRate: 400
\t\tBase lid: 1
\t\tLMC: 0
\t\tSM lid: 1
\t\tCapability mask: 0xa651e848
\t\tPort GUID: 0xa088c20300000100
\t\tLink layer: InfiniBand
"""


def judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    text = readings.text(IBSTAT)
    yield Finding(
        check="adapter",
        verdict=Verdict.PASS if "Active" in text else Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        cause="seen",
        remedy="repair",
    )


SUITE = Suite("t", (Check("adapter", (IBSTAT,), judge),), ("ib_write_bw",), 1)


@dataclass
class Hosts:
    """Answers the program that it is sent as the node would: `slow` nodes write slowly, `broken` ones have no port,
    `silent` ones refuse all logins, `dying` ones fall silent in the middle of their first load.
    """

    slow: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    dying: frozenset[str] = frozenset()
    failure: SshFailure = SshFailure.NO_ANSWER
    pairs: list[frozenset[str]] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        if host.name in self.silent:
            raise NoSshError("no SSH", self.failure)
        if tuple(argv) == ("true",):
            return Observed(Ran(0, "", "", 0.1), seen())
        call = stdin.decode().strip().splitlines()[-1]
        spec = json.loads(ast.literal_eval(call.removeprefix("main(json.loads(").removesuffix("))")))
        probes = {probe["name"]: self._answer(host, probe["argv"]) for probe in spec["probes"]}
        head = {"version": 1, "origin": "real", "host": host.name, "boot_id": "b", "started": 0.0, "finished": 1.0}
        return Observed(Ran(0, json.dumps({**head, "probes": probes}), "", 1.0), seen())

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        text = ADAPTER
        if host.name in self.broken:
            text = ADAPTER.replace("Active", "Down")
        if argv[0] == "ib_write_bw":
            if host.name in self.dying:
                self.silent |= {host.name}
                raise OutcomeUnknownError("the connection broke while python3 ran")
            peer = argv[-1].removeprefix("10.0.0.") if argv[-1].startswith("10.0.0.") else ""
            members = frozenset({host.name, f"n{peer}"}) if peer else frozenset()
            if members:
                self.pairs.append(members)
            text = TABLE.format(rate="0.00" if self.slow & members else "390.00")
        return {"argv": argv, "status": "ok", "rc": 0, "stdout": text, "stderr": "", "started": 0.0, "seconds": 1.0}


class Forgetful:
    """A journal that a run is never resumed from."""

    def append(self, events: Sequence[NewEvent]) -> Sequence[Event]:
        return ()

    def store(self, evidence: Iterable[Evidence]) -> None:
        """Not asked for again."""

    def evidence(self, digest: Digest) -> Evidence | None:
        return None

    def latest(self, stream: Stream, kind: EventKind | None = None) -> Iterator[Event]:
        return iter(())

    def recent(self, kinds: Collection[EventKind], since: datetime) -> Iterator[Event]:
        return iter(())


def nodes(count: int) -> list[NodeState]:
    return [
        NodeState(
            NodeId(f"id{i}"),
            f"n{i}",
            serial=Serial(f"S{i}"),
            sku="lab",
            address=f"10.0.0.{i}",
            host_key="ssh-ed25519 A",
            location=Location("A01", 4),
        )
        for i in range(count)
    ]


def burnin_step(
    hosts: Hosts,
    strangers: Mapping[str, str] | None = None,
    partners: Sequence[NodeState] = (),
    power: Power = Power.ON,
    *,
    journal: CampaignJournal | None = None,
    suite: Suite = SUITE,
    sku: Sku = SKU,
) -> Burnin:
    limits = {"lab": SkuLimits(sku, lab_limits())}
    plan = BurninPlan(suite, limits, lambda _: "", lambda _node: HostNetwork(), partners=partners)
    return Burnin(burnin_services(hosts, strangers, power, journal), plan)


def burnin_services(
    hosts: Hosts,
    strangers: Mapping[str, str] | None = None,
    power: Power = Power.ON,
    journal: CampaignJournal | None = None,
) -> BurninServices:
    bmcs = FakeBmcs({f"n{i}": FakeBmc(inventory(f"S{i}"), state=power) for i in range(10)})
    return BurninServices(
        shell=hosts,
        access=SshAccess("ops", "/key"),
        bmcs=BmcProbe(bmcs, address_of),
        clock=FixedClock(),
        campaigns=CampaignStore(journal or Forgetful(), FixedClock()),
        fleet=FleetFigures(Forgetful(), FixedClock()),
        introduce=lambda _hosts, _deadline: strangers or {},
    )


def burnin(hosts: Hosts, count: int, strangers: Mapping[str, str] | None = None) -> dict[str, StepOutcome]:
    step = burnin_step(hosts, strangers)
    outcomes = step.run(nodes(count), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    return {outcome.node.replace("id", "n"): outcome for outcome in outcomes}


def worst(outcome: StepOutcome) -> Verdict:
    return max((finding.verdict for finding in outcome.findings), key=lambda verdict: verdict.rank)


def test_sound_nodes_pass_checks_and_loads() -> None:
    """Every node reports every check and load, with evidence."""
    outcomes = burnin(Hosts(), 4)
    assert {worst(outcome) for outcome in outcomes.values()} == {Verdict.PASS}
    assert all({f.check for f in o.findings} == {"adapter", "ib_write_bw"} for o in outcomes.values())
    assert all(outcome.evidence for outcome in outcomes.values())


def test_the_slow_node_is_separated_from_its_partner() -> None:
    """A slow pair accuses no node; measured again with others, the slow node fails and its partner passes."""
    hosts = Hosts(slow=frozenset({"n1"}))
    outcomes = burnin(hosts, 6)
    assert {name for name, outcome in outcomes.items() if worst(outcome) is Verdict.FAIL} == {"n1"}
    assert {worst(outcomes[name]) for name in ("n0", "n2", "n3", "n4", "n5")} == {Verdict.PASS}
    assert sum("n1" in pair for pair in hosts.pairs) > 1


def test_a_broken_node_is_reported_at_once_and_not_loaded() -> None:
    """A node with failed checks takes part in no load, and the load has the reason why it is unmeasured."""
    hosts = Hosts(broken=frozenset({"n0"}))
    outcomes = burnin(hosts, 5)
    assert next(iter(outcomes)) == "n0"
    assert not any("n0" in pair for pair in hosts.pairs)
    load = next(f for f in outcomes["n0"].findings if f.check == "ib_write_bw")
    assert (load.verdict, load.root) == (Verdict.INCONCLUSIVE, "adapter:node")


def test_a_run_that_lost_its_nodes_loads_none() -> None:
    """As after a pause longer than the lease: another run has them, or jobs run on them, in service."""
    hosts, batch = Hosts(), nodes(4)
    acts = IntentLog(None, {node.id: Claim(node.id, "r", 1) for node in batch})  # type: ignore[arg-type]
    for node in batch:
        acts.lease.lose(node.id, "held by run other")

    def introduce(_hosts: Sequence[HostAddress], deadline: Deadline) -> Mapping[str, str]:
        deadline.check("introducing nodes")
        return {}

    plan = BurninPlan(SUITE, {"lab": SkuLimits(SKU, lab_limits())}, lambda _: "", lambda _node: HostNetwork())
    step = Burnin(replace(burnin_services(hosts), introduce=introduce), plan)
    with pytest.raises(ClaimLostError, match="run other"):
        list(step.run(batch, acts, Deadline.after(60)))
    assert not hosts.pairs


@pytest.mark.parametrize(
    ("failure", "cause", "remedy"),
    [
        (SshFailure.NO_ANSWER, "nothing answers", "check its management cable"),
        (SshFailure.REFUSED, "sshd does not run", "start sshd"),
        (SshFailure.NO_GREETING, "the host hangs", "power it off and on"),
        (SshFailure.BROKEN, "the connection broke", "does it run"),
    ],
)
def test_a_silent_node_is_one_finding(failure: SshFailure, cause: str, remedy: str) -> None:
    """Its silence is the root, reported by its kind, with place and the BMC's report; all else follows from it."""
    outcome = burnin(Hosts(silent=frozenset({"n2"}), failure=failure), 5)["n2"]
    root, *others = outcome.findings
    assert (root.check, root.verdict, root.deterministic) == ("reachable", Verdict.FAIL, False)
    assert cause in root.cause
    assert "power is on" in root.cause
    assert remedy in root.remedy
    assert "A01 U4, n2" in root.remedy
    assert {finding.root for finding in others} == {root.key}
    assert {finding.check for finding in others} == {"adapter", "ib_write_bw"}


def test_a_silent_node_without_power_is_to_be_powered_on() -> None:
    """The BMC's report decides what is to be done."""
    step = burnin_step(Hosts(silent=frozenset({"n0"})), power=Power.OFF)
    (outcome,) = step.run(nodes(1), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    assert "power it on" in outcome.findings[0].remedy


def test_a_node_that_falls_silent_under_load_is_named_and_its_partners_are_not() -> None:
    """The partner is measured with others and passes; the silent one has one root finding."""
    outcomes = burnin(Hosts(dying=frozenset({"n1"})), 6)
    assert {worst(outcomes[name]) for name in ("n0", "n2", "n3", "n4", "n5")} == {Verdict.PASS}
    (root,) = [finding for finding in outcomes["n1"].findings if not finding.verdict.admits and not finding.root]
    assert (root.check, root.verdict) == ("reachable", Verdict.FAIL)


@pytest.mark.parametrize("count", [1])
def test_a_node_alone_is_not_proven(count: int) -> None:
    """Without a partner the pair load is unmeasured."""
    (outcome,) = burnin(Hosts(), count).values()
    assert worst(outcome) is Verdict.INCONCLUSIVE


def test_nodes_that_cannot_meet_are_held() -> None:
    """A node that its group could not be introduced to has that finding and is not passed."""
    outcomes = burnin(Hosts(), 4, {"n3": "sshd refused its configuration"})
    assert worst(outcomes["n3"]) is Verdict.INCONCLUSIVE
    assert any("sshd refused" in finding.cause for finding in outcomes["n3"].findings)
    assert worst(outcomes["n0"]) is Verdict.PASS


@pytest.mark.parametrize("count", [3, 5])
def test_an_odd_node_is_measured_too(count: int) -> None:
    """With one round of pairs an odd node waits; an extra wave measures it."""
    assert {worst(outcome) for outcome in burnin(Hosts(), count).values()} == {Verdict.PASS}


def test_a_late_node_is_measured_with_those_proven_before() -> None:
    """A node that comes alone after others were proven in this run is measured with them; they get no findings."""
    hosts = Hosts()
    step = burnin_step(hosts)
    early = list(step.run(nodes(3), IntentLog(None, {}), Deadline.after(60)))  # type: ignore[arg-type]
    late = list(step.run(nodes(4)[3:], IntentLog(None, {}), Deadline.after(60)))  # type: ignore[arg-type]
    assert [outcome.node for outcome in late] == ["id3"]
    assert {worst(outcome) for outcome in (*early, *late)} == {Verdict.PASS}


@dataclass
class TwoBatches(Hosts):
    """The nodes of the second batch are proven only after the two of the first have met."""

    met: threading.Event = field(default_factory=threading.Event)

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        if argv[0] == "ib_write_bw":
            if host.name in ("n0", "n1"):
                self.met.set()
            assert self.met.wait(600)
        return super()._answer(host, argv)


def test_two_nodes_that_cannot_be_separated_wait_for_others() -> None:
    """Another batch is still being proven: one of its nodes then separates the bad one from its partner."""
    hosts = TwoBatches(slow=frozenset({"n1"}))
    step, six = burnin_step(hosts), nodes(6)

    def run(batch: Sequence[NodeState]) -> list[StepOutcome]:
        return list(step.run(batch, IntentLog(None, {}), Deadline.after(60)))  # type: ignore[arg-type]

    with ThreadPoolExecutor(2) as pool:
        outcomes = [outcome for found in pool.map(run, (six[2:], six[:2])) for outcome in found]
    assert {outcome.node for outcome in outcomes if worst(outcome) is Verdict.FAIL} == {"id1"}
    assert {worst(outcome) for outcome in outcomes if outcome.node != "id1"} == {Verdict.PASS}


@dataclass
class SlowBatch(Hosts):
    """Nodes that measure with each other until `over`."""

    begun: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        if argv[0] == "ib_write_bw":
            self.begun.set()
            assert self.over.wait(600)
        return super()._answer(host, argv)


def test_a_node_with_late_partners_keeps_what_its_checks_found() -> None:
    """Another batch is still being proven at the deadline: the load is unmeasured, the check that passed stays passed."""
    hosts, timer = SlowBatch(), FakeTimer()
    step, five = burnin_step(hosts), nodes(5)
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(lambda: list(step.run(five[1:], IntentLog(None, {}), Deadline.after(600))))  # type: ignore[arg-type]
        assert hosts.begun.wait(600)
        deadline = Deadline.after(600, timer=timer)
        timer.advance_when(hosts.begun.is_set)
        (outcome,) = step.run(five[:1], IntentLog(None, {}), deadline)  # type: ignore[arg-type]
        hosts.over.set()
        busy.result()
    found = {finding.check: finding for finding in outcome.findings}
    assert found["adapter"].verdict is Verdict.PASS
    assert found["ib_write_bw"].verdict is Verdict.INCONCLUSIVE
    assert "partner" in found["ib_write_bw"].cause


def test_a_named_partner_stands_in() -> None:
    """A gold node that was named as partner is measured with; a partner whose own checks fail is not used."""
    assert worst(alone_with(Hosts())) is Verdict.PASS
    assert worst(alone_with(Hosts(broken=frozenset({"n1"})))) is Verdict.INCONCLUSIVE


def alone_with(hosts: Hosts) -> StepOutcome:
    step = burnin_step(hosts, partners=nodes(2)[1:])
    (outcome,) = step.run(nodes(1), IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    return outcome


def judged_together(hosts: Hosts, checks: tuple[Check, ...], count: int) -> list[NodeUnderTest]:
    """Return the nodes after all of them were asked, and then judged."""
    profile = SkuLimits(SKU, lab_limits())
    plan = BurninPlan(Suite("t", checks, (), 1), {"lab": profile}, lambda _: "", lambda _node: HostNetwork())
    checker = NodeChecker(burnin_services(hosts), plan)
    asked = [
        NodeUnderTest(state, Serial(f"S{i}"), HostAddress(state.name, state.address or "", "ops", "k", "/key"), profile)
        for i, state in enumerate(nodes(count))
    ]
    read = [checker.read(node, Deadline.after(60)) for node in asked]
    checker.judge([answer for answer in read if answer is not None])
    return asked


def test_answers_are_judged_check_by_check() -> None:
    """One check judges all nodes, then the next one does; each node has what it has alone, also one that is silent."""
    order = []

    def noted(name: str) -> Check:
        def judge_and_note(readings: Readings, expected: Expected) -> Iterator[Finding]:
            order.append((name, expected.name))
            yield from judge(readings, expected)

        return Check(name, (IBSTAT,), judge_and_note)

    hosts = Hosts(broken=frozenset({"n1"}), silent=frozenset({"n2"}))
    found = judged_together(hosts, (noted("a"), noted("b")), 4)
    assert order == [(check, name) for check in ("a", "b") for name in ("n0", "n1", "n3")]
    verdicts = [{finding.verdict for finding in node.findings} for node in found]
    assert verdicts[:2] == [{Verdict.PASS}, {Verdict.FAIL}]
    assert Verdict.FAIL in verdicts[2]
    assert verdicts[3] == {Verdict.PASS}


def test_an_error_that_no_check_foresaw_is_one_nodes() -> None:
    """Its checks are inconclusive; those that were judged together with it have their findings, each once."""

    def fragile(readings: Readings, expected: Expected) -> Iterator[Finding]:
        if "Down" in readings.text(IBSTAT):
            raise TypeError("no parser foresaw it")
        yield from judge(readings, expected)

    found = judged_together(Hosts(broken=frozenset({"n1"})), (Check("adapter", (IBSTAT,), fragile),), 3)
    assert [[finding.verdict for finding in node.findings] for node in found] == [
        [Verdict.PASS],
        [Verdict.INCONCLUSIVE],
        [Verdict.PASS],
    ]
