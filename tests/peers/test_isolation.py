"""Any bytes from one peer change no other node's outcome, in each place where results of several nodes meet."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given

from clusterctl.edges.ansible.transcript import Transcript, redaction
from clusterctl.edges.journal import SqlJournal
from clusterctl.edges.maas.machines import MachineListing
from clusterctl.edges.maas.matching import Finder
from clusterctl.edges.redfish.connection import Reply
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import Inventory, Mac, NodeId, Serial, Step
from clusterctl.fleet.quantity import Quantity
from clusterctl.fleet.state import NodeState
from clusterctl.formats.maas import machines as maas
from clusterctl.ports import BmcAddress, Deadline, HostAddress, InstallError, InstallTarget, LogEntry, Ran
from clusterctl.steps.cable.lldp import LldpReader
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.pipeline import Pipeline
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.executor.step_queue import StepLimits
from tests.peers.poison import ANY, LISTED, few
from tests.steps.burnin.test_burnin import Hosts, burnin, worst
from tests.steps.discover.test_discover import SKU
from tests.steps.executor.test_pipeline import fleet
from tests.steps.fakes import FakeBmc, FakeBmcs, FixedClock, address_of, inventory, seen

listed = pytest.mark.parametrize("poison", LISTED, ids=[str(number) for number in range(len(LISTED))])
NAMES = ("n0", "n1", "n2", "n3")
BAD = "n2"


# --- BMCs -------------------------------------------------------------------------------------------------------------


@dataclass
class PoisonedBmc(FakeBmc):
    """A BMC whose every text and number is what its JSON holds."""

    poison: str = ""

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        answer = Reply(200, self.poison.encode("utf-8", "surrogatepass"), {}).body
        value: Any = answer.get("value", self.poison)
        fake = replace(super().inventory(deadline).value, model=value, serial=Serial(value), memory_bytes=value)
        return Observed(fake, seen())

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        return Observed((LogEntry(self.poison, "Critical", self.poison),), seen())


def discovered(bad: FakeBmc) -> dict[str, list[tuple[str, Verdict]]]:
    bmcs: dict[str, FakeBmc] = {name: FakeBmc(inventory(f"S-{name}")) for name in NAMES}
    bmcs[BAD] = bad
    nodes = [NodeState(NodeId(f"id-{name}"), name, bmc=name) for name in NAMES]
    step = Discover(DiscoverServices(FakeBmcs(bmcs), address_of, dict), DiscoverPlan([SKU], workers=4))
    found = step.run(nodes, IntentLog(None, {}), Deadline.after(600))  # type: ignore[arg-type]
    return {outcome.node: [(finding.check, finding.verdict) for finding in outcome.findings] for outcome in found}


GOOD = discovered(FakeBmc(inventory(f"S-{BAD}")))


@listed
def test_a_bmc(poison: str) -> None:
    """Every node has an outcome; the others' outcomes are as with an honest BMC."""
    found = discovered(PoisonedBmc(inventory("S-bad"), poison=poison))
    assert found.keys() == GOOD.keys()
    assert {node: judged for node, judged in found.items() if node != f"id-{BAD}"} == {
        node: judged for node, judged in GOOD.items() if node != f"id-{BAD}"
    }


@pytest.mark.parametrize("error", [RecursionError, MemoryError, UnicodeError, OverflowError, TypeError, KeyError])
def test_what_no_parser_foresaw_is_inconclusive(error: type[Exception]) -> None:
    """A defect that one BMC's data brings about is that node's: unmeasured, not failed."""

    class Broken(FakeBmc):
        def inventory(self, deadline: Deadline) -> Observed[Inventory]:
            raise error("boom")

    found = discovered(Broken(inventory("x")))
    assert found.keys() == GOOD.keys()
    assert found[f"id-{BAD}"] == [("bmc", Verdict.INCONCLUSIVE)]


# --- host shells ------------------------------------------------------------------------------------------------------


@dataclass
class PoisonedHosts(Hosts):
    """`BAD` answers each session with the poison, or prints it as the output of each tool."""

    poison: str = ""
    whole: bool = True

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        if host.name == BAD and self.whole and tuple(argv) != ("true",):
            return Observed(Ran(0, self.poison, self.poison, 0.1), seen())
        return super().run(host, argv, stdin, deadline)

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        found = super()._answer(host, argv)
        return {**found, "stdout": self.poison} if host.name == BAD else found


@pytest.mark.parametrize("whole", [True, False], ids=["session", "tool"])
@listed
def test_a_host(poison: str, whole: bool) -> None:
    """The partners of a host that prints anything are proven without it."""
    found = burnin(PoisonedHosts(poison=poison, whole=whole), 4)
    assert {name: worst(outcome) for name, outcome in found.items() if name != BAD} == dict.fromkeys(
        [name for name in NAMES if name != BAD], Verdict.PASS
    )
    assert not worst(found[BAD]).admits


# --- what is kept in the journal --------------------------------------------------------------------------------------


@dataclass
class Reporting:
    """A step that reports a value of each node."""

    values: Mapping[str, Any]
    step: Step = Step.DISCOVER
    minimum: int = 1
    linger_s: float = 0.0
    at_once: int = 8
    asked: list[str] = field(default_factory=list)

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        del intents, deadline
        for node in nodes:
            value = self.values.get(node.name)
            finding = Finding(check="x", verdict=Verdict.PASS, code=Code.PASSED, measured=value, cause="seen")
            yield StepOutcome(node.id, (finding,), seen())


UNKEPT = (
    Quantity(float("nan")),
    Quantity(float("inf")),
    Quantity(10**400),
    Quantity(10**5000),
    {"of": "another type"},
)


@pytest.mark.parametrize("value", UNKEPT, ids=["nan", "inf", "400 digits", "5000 digits", "type"])
def test_what_the_journal_cannot_keep(book: SqlJournal, value: Any) -> None:
    """The node is unmeasured and tried again; the others advance, and the journal can be read from its beginning."""
    recorder = Recorder(book, Policy(attempts=1), FixedClock())
    limits = {step: StepLimits(8, 600.0) for step in Step}
    nodes = fleet(book, 4)
    pipeline = Pipeline([Reporting({BAD: value})], recorder, limits, threading.Event())
    pipeline.run(nodes, book.claim([node.id for node in nodes], "r").granted)
    states = {state.name: state for state in book.states()}
    assert {name: state.stage.value for name, state in states.items() if name != BAD} == dict.fromkeys(
        [name for name in NAMES if name != BAD], "discovered"
    )
    assert states[BAD].reports["discover"].verdict is Verdict.INCONCLUSIVE
    book.rebuild()
    assert {state.name: state for state in book.states()} == states


def test_texts_that_are_no_unicode_are_kept_visibly(book: SqlJournal) -> None:
    """Half of a surrogate pair, which SQLite and JSON refuse, is kept as an escape."""
    (node,) = fleet(book, 1)
    recorder = Recorder(book, Policy(attempts=1), FixedClock())
    (outcome,) = Reporting({node.name: "\ud800\x1b[2J"}).run([node], IntentLog(None, {}), Deadline.after(60))  # type: ignore[arg-type]
    recorder.record(Step.DISCOVER, outcome, book.claim([node.id], "r").granted[node.id])
    assert book.state(node.id).reports["discover"].findings[0].measured == "\\ud800\\x1b[2J"


# --- plays ------------------------------------------------------------------------------------------------------------


def event(kind: str, host: str, result: Any) -> dict[str, Any]:
    head = {"event": kind, "host": host, "role": "", "task": "t", "action": "a", "ignored": False, "seconds": 0.1}
    return {**head, "result": result}


def played(poison: Any) -> dict[str, bool]:
    """Return whether each host came through a play in which `BAD` returned this."""
    transcript = Transcript(NAMES, redaction({}, {}))
    ends = {"dark": {}, "failures": {}, "processed": dict.fromkeys(NAMES, 1), "event": "playbook_on_stats"}
    messages = [*(event("runner_on_ok", name, poison if name == BAD else {"msg": "ok"}) for name in NAMES), ends]
    return {one.outcome.host: one.outcome.ok for message in messages for one in transcript.add(message)}


SHAPES: tuple[Callable[[Any], Any], ...] = (
    lambda poison: poison,
    lambda poison: {"msg": poison},
    lambda poison: {"msg": {"reboot_required_by": poison, "boot_id": poison}},
    lambda poison: {"msg": {"reboot_required_by": 7}},
    lambda poison: {"stdout": [poison], "rc": poison, "changed": poison},
)


@pytest.mark.parametrize("shape", SHAPES)
@listed
def test_a_play(shape: Callable[[Any], Any], poison: str) -> None:
    """What a module returns on one host decides about that host alone."""
    found = played(shape(poison))
    assert found.keys() == set(NAMES)
    assert all(ok for name, ok in found.items() if name != BAD)


# --- MAAS, LLDP -------------------------------------------------------------------------------------------------------


def machine_body(name: str) -> dict[str, Any]:
    head = {"system_id": name, "hostname": name, "status": 4, "status_name": "Ready", "power_type": "redfish"}
    return {**head, "interface_set": [{"mac_address": "02:00:00:00:00:01"}], "physicalblockdevice_set": []}


FIELDS = ("interface_set", "physicalblockdevice_set", "boot_disk", "ip_addresses", "hardware_info", "tag_names", "zone")
HEAD = ("system_id", "hostname", "status", "status_name", "power_type")
ABSENT = object()


@pytest.mark.parametrize("name", FIELDS)
@listed
def test_a_machine_of_maas(name: str, poison: str) -> None:
    """A machine whose description is not understood is known by its name, and hides no other."""
    for value in (poison, [poison], {"x": poison}, 7, None):
        bodies = [machine_body(one) | ({name: value} if one == BAD else {}) for one in NAMES]
        found = {one.system_id: one for one in maas.machines(bodies)}
        assert found.keys() == set(NAMES)
        assert not any(one.unreadable for key, one in found.items() if key != BAD)


@pytest.mark.parametrize("name", HEAD)
@listed
def test_a_machine_of_maas_without_an_understood_head(name: str, poison: str) -> None:
    """Neither its id, its name nor its status is needed to list the others."""
    for value in (poison, [poison], {"x": poison}, 7, -1, 1e300, None, ABSENT):
        bad = {key: one for key, one in (machine_body(BAD) | {name: value}).items() if one is not ABSENT}
        found = maas.machines([bad if one == BAD else machine_body(one) for one in NAMES])
        assert [one.system_id for one in found if one.system_id in {*NAMES} - {BAD}] == [n for n in NAMES if n != BAD]
        assert not any(one.unreadable for one in found if one.system_id in {*NAMES} - {BAD})
        assert found[2].macs == ("02:00:00:00:00:01",)
        if value is None and name in ("system_id", "hostname", "status"):
            assert found[2].unreadable


@dataclass
class Listing:
    """What MAAS lists, whatever is sought."""

    bodies: list[dict[str, Any]]

    def by_macs(self, macs: Sequence[Mac], deadline: Deadline) -> MachineListing:
        found = {one.system_id: one for one in maas.machines(self.bodies)}
        return MachineListing(found, {name: seen()[0] for name in found})

    def by_hostnames(self, names: Sequence[str], deadline: Deadline) -> MachineListing:
        return MachineListing({}, {})


@pytest.mark.parametrize("name", ["system_id", "hostname", "status", "zone"])
def test_nothing_is_done_to_an_unreadable_machine_of_maas(name: str) -> None:
    """Before an act, it is refused with the reason: its owner is not known. The others are found."""
    macs = {one: Mac(f"02:00:00:00:00:0{number}") for number, one in enumerate(NAMES)}
    bodies = [machine_body(one) | {"interface_set": [{"mac_address": macs[one]}]} for one in NAMES]
    bodies[NAMES.index(BAD)] |= {name: -1}
    finder = Finder(Listing(bodies))
    for one in NAMES:
        target = InstallTarget(one, Serial("S"), (macs[one],), BmcAddress(one, "", ""), Serial("D"), "", "ops", "")
        if one != BAD:
            found = finder.find(target, Deadline.after(60))
            assert found is not None
            assert found.value.system_id == one
            continue
        with pytest.raises(InstallError, match="not understood"):
            finder.find(target, Deadline.after(60))


@dataclass
class Lldp:
    poison: str

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        text = json.dumps({"lldp": [{"interface": []}]}) if host.name != BAD else self.poison
        probe = {"argv": ["lldpctl"], "status": "ok", "rc": 0, "stderr": "", "started": 0.0, "seconds": 1.0}
        probes = {name: {**probe, "stdout": text} for name in ("lldp-neighbours", "lldp-interfaces")}
        head = {"version": 1, "origin": "real", "host": host.name, "boot_id": "b", "started": 0.0, "finished": 1.0}
        return Observed(Ran(0, json.dumps({**head, "probes": probes}), "", 1.0), seen())


def neighbours(poison: str) -> None:
    hosts = [HostAddress(name, name, "ops", "key", "/key") for name in NAMES]
    found = LldpReader(Lldp(poison)).read(hosts, Deadline.after(600))
    assert found.reports.keys() | found.unheard.keys() == set(NAMES)
    assert found.reports.keys() >= set(NAMES) - {BAD}


@listed
def test_lldp(poison: str) -> None:
    """A host whose daemon prints anything is unheard; the others are read."""
    neighbours(poison)


@few
@given(poison=ANY)
def test_any_bytes(poison: str) -> None:
    """The same for any bytes."""
    assert discovered(PoisonedBmc(inventory("S-bad"), poison=poison)).keys() == GOOD.keys()
    assert all(ok for name, ok in played({"msg": poison}).items() if name != BAD)
    neighbours(poison)
    found = burnin(PoisonedHosts(poison=poison, whole=True), 4)
    assert all(worst(found[name]) is Verdict.PASS for name in NAMES if name != BAD)
