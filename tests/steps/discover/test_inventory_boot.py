"""A machine that its BMC has never seen running is powered on once, read again, and left as it was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from clusterctl.fleet.acts import Act, ActResult, Intent
from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.errors import ClaimLostError, UnreachableError
from clusterctl.fleet.event import NewEvent
from clusterctl.fleet.finding import Finding, Observed, Report, Verdict
from clusterctl.fleet.node import Gpu, Hca, Inventory, NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Claim, Deadline, Journal, Post, Power
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from tests.events import data_of
from tests.fake_timer import FakeTimer
from tests.steps.discover.test_discover import NODE, SKU
from tests.steps.fakes import FakeBmc, FakeBmcs, address_of, inventory

GPUS = tuple(Gpu(f"GPU{n}", "H100") for n in range(8))
HCAS = tuple(Hca(f"IB{n}", "ConnectX-7") for n in range(8))
WHOLE = replace(inventory("S1"), gpus=GPUS, hcas=HCAS, on=True)
ASLEEP = replace(inventory("S1"), on=False)
STALE = replace(ASLEEP, gpus=GPUS[:7], hcas=HCAS, stale="never collected")


@dataclass
class Book:
    """What was appended; `lost`: the claim is another run's by then."""

    written: list[tuple[str, str]] = field(default_factory=list)
    lost: bool = False
    lease_s: float = 120.0

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[()]:
        self.written += [(event.kind.value, str(data_of(event).get("act"))) for event in events]
        return ()

    def renew(self, claims: Sequence[Claim]) -> dict[NodeId, str]:
        return {claim.node: "another run has it" for claim in claims} if self.lost else {}


class Fragile(FakeBmc):
    """A BMC that is gone as soon as the machine boots."""

    def post(self, deadline: Deadline) -> Observed[Post]:
        raise UnreachableError("no answer")


class Restless(FakeBmc):
    """A BMC whose machine another run takes as soon as it is on."""

    book: Book

    def post(self, deadline: Deadline) -> Observed[Post]:
        raise ClaimLostError("another run has it")


class Slow(FakeBmc):
    """A BMC that never reports its self-test nor every part, and gets slower with each reading of a booted machine."""

    readings: int = 0

    def post(self, deadline: Deadline) -> Observed[Post]:
        return Observed(Post.UNKNOWN)

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        self.readings += bool(self.switched)
        if self.readings > 1:
            deadline.sleep(3600, "reading the inventory")
        return super().inventory(deadline)


def discover(
    bmc: FakeBmc, book: Book, node: NodeState = NODE, *, read_only: bool = False, timer: FakeTimer | None = None
) -> list[StepOutcome]:
    claims = {node.id: Claim(node.id, "r1", 1)}
    acts = IntentLog(cast("Journal", book), claims)
    step = Discover(
        DiscoverServices(FakeBmcs({"n1": bmc}), address_of, dict),
        DiscoverPlan([SKU], workers=1, poll_s=0.01, read_only=read_only),
    )
    return list(step.run([node], acts, Deadline.after(60, timer=timer) if timer else Deadline.after(60)))


def verdicts(outcome: StepOutcome) -> dict[str, Verdict]:
    return {finding.check: finding.verdict for finding in outcome.findings}


@pytest.mark.parametrize("before", [ASLEEP, STALE], ids=["nothing-reported", "stale"])
def test_on_read_again_and_off(before: Inventory) -> None:
    """Intended and observed in the journal, waited for, judged by the report after it, with the evidence of both."""
    bmc = FakeBmc(before, state=Power.OFF, after_boot=WHOLE, tested=[Post.RUNNING, Post.RUNNING])
    book = Book()
    (outcome,) = discover(bmc, book)
    assert bmc.switched == [Power.ON, Power.OFF]
    assert book.written == [("act.intended", Act.INVENTORY_BOOT), ("act.observed", Act.INVENTORY_BOOT)]
    assert verdicts(outcome)["gpu_count"] is Verdict.PASS
    assert data_of(outcome.facts[0])["inventory"]["gpus"]
    assert len(outcome.evidence) == 5


@pytest.mark.parametrize(
    ("before", "node"),
    [
        (replace(ASLEEP, gpus=GPUS, hcas=HCAS), NODE),
        (replace(ASLEEP, on=None), NODE),
        (replace(ASLEEP, serial=Serial("S2")), NODE),
        (replace(ASLEEP, model="R750"), NODE),
        (ASLEEP, replace(NODE, intents=(Intent(Act.INVENTORY_BOOT, "S1", 7, result=ActResult.DONE),))),
        (replace(STALE, gpus=GPUS[:7], stale=""), NODE),
    ],
    ids=["all-reported", "power-unknown", "another-machine", "no-sku", "done-before", "one-gpu-missing"],
)
def test_no_power_action(before: Inventory, node: NodeState) -> None:
    """Not where nothing is missing, nothing can be known, the machine is another, or it was done before."""
    book = Book()
    (outcome,) = discover(FakeBmc(before, state=Power.OFF), book, node)
    assert book.written == []
    assert outcome.findings


def test_a_machine_that_is_on_is_only_waited_for() -> None:
    """Its inventory may be of the minutes before: it is read again, and the power stays as it is."""
    bmc = FakeBmc(replace(STALE, on=True), after_boot=WHOLE, tested=[Post.RUNNING])
    bmc.switched.append(Power.ON)
    (outcome,) = discover(bmc, Book())
    assert bmc.switched == [Power.ON]
    assert verdicts(outcome)["gpu_count"] is Verdict.PASS


def test_what_a_killed_run_has_switched_on_is_switched_off() -> None:
    """Its intent stands in the journal: the next run reads, and finishes it."""
    node = replace(NODE, intents=(Intent(Act.INVENTORY_BOOT, "S1", 7),))
    bmc = FakeBmc(replace(WHOLE, on=True), after_boot=WHOLE)
    book = Book()
    discover(bmc, book, node)
    assert bmc.switched == [Power.ON, Power.OFF]
    assert book.written[-1] == ("act.observed", Act.INVENTORY_BOOT)


def test_a_bmc_that_is_lost_meanwhile() -> None:
    """The machine is switched off all the same, and the node's report has what the BMC lacks."""
    bmc = Fragile(ASLEEP, state=Power.OFF, after_boot=WHOLE)
    (outcome,) = discover(bmc, Book())
    assert bmc.switched == [Power.ON, Power.OFF]
    assert [finding.check for finding in outcome.findings] == ["bmc"]


def test_time_that_runs_out_during_a_reading() -> None:
    """What was read before is judged, with the time that was kept for the rest."""
    bmc = Slow(ASLEEP, state=Power.OFF, after_boot=replace(WHOLE, nics=()))
    (outcome,) = discover(bmc, Book(), timer=FakeTimer())
    assert bmc.readings > 1
    assert bmc.switched == [Power.ON, Power.OFF]
    assert verdicts(outcome)["gpu_count"] is Verdict.PASS


def test_a_machine_that_does_not_end_its_boot_shows_why() -> None:
    """Its BMC's picture is in the evidence; of one that ends it nothing is asked."""
    shown = Screen("PNG", b"a picture")
    bmc = Slow(ASLEEP, state=Power.OFF, after_boot=replace(WHOLE, nics=()), shown=shown)
    (outcome,) = discover(bmc, Book(), timer=FakeTimer())
    assert b"screen" in [item.content for item in outcome.evidence]
    well = FakeBmc(ASLEEP, state=Power.OFF, after_boot=WHOLE, shown=shown)
    (outcome,) = discover(well, Book(), timer=FakeTimer())
    assert b"screen" not in [item.content for item in outcome.evidence]


def test_a_node_that_another_run_has_taken() -> None:
    """Nothing more is done to it, and no finding is about it."""
    bmc = Restless(ASLEEP, state=Power.OFF, after_boot=WHOLE)
    assert discover(bmc, Book()) == []
    assert bmc.switched == [Power.ON]


def test_what_is_missing_from_a_stale_inventory_is_unmeasured() -> None:
    """Seven of eight, reported by a BMC that has not scanned: neither is believed."""
    node = replace(NODE, intents=(Intent(Act.INVENTORY_BOOT, "S1", 7, result=ActResult.DONE),))
    (outcome,) = discover(FakeBmc(STALE, state=Power.OFF), Book(), node)
    (found,) = [finding for finding in outcome.findings if finding.check == "gpu_count"]
    assert (found.verdict, found.deterministic) == (Verdict.INCONCLUSIVE, False)
    assert "power the machine on" in found.remedy


def test_several_skus_that_differ_only_in_gpus() -> None:
    """Which of them it is cannot be known: that is no other machine than was ordered."""
    other = replace(SKU, name="half", gpu_model="A100")
    acts: Any = None
    step = Discover(
        DiscoverServices(FakeBmcs({"n1": FakeBmc(inventory("S1"))}), address_of, dict),
        DiscoverPlan([SKU, other], workers=1),
    )
    (outcome,) = step.run([NODE], acts, Deadline.after(60))
    found: Finding = next(finding for finding in outcome.findings if finding.check == "sku_model")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "lab, half" in found.cause


@pytest.mark.parametrize(
    ("before", "node"),
    [
        (ASLEEP, NODE),
        (STALE, NODE),
        (replace(STALE, gpus=GPUS), NODE),
        (replace(WHOLE, on=True), replace(NODE, intents=(Intent(Act.INVENTORY_BOOT, "S1", 7),))),
    ],
    ids=["nothing-reported", "seven-of-eight", "all-reported-long-ago", "switched-on-by-a-killed-run"],
)
def test_read_only(before: Inventory, node: NodeState) -> None:
    """Nothing is switched, neither on nor off, nothing is written; the one cause is that the BMC has not scanned."""
    bmc, book = FakeBmc(before, state=Power.OFF, after_boot=WHOLE), Book()
    (outcome,) = discover(bmc, book, node, read_only=True)
    assert bmc.switched == []
    assert book.written == []
    report = Report("discover", "", outcome.findings)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert [finding.check for finding in report.roots()] == ["inventory"]
    assert "--read-only" in report.roots()[0].remedy
    assert data_of(outcome.facts[0])["inventory"]["stale"]


def test_read_only_where_all_is_known() -> None:
    """A machine whose inventory is of today passes as it would otherwise."""
    (outcome,) = discover(FakeBmc(WHOLE), Book(), read_only=True)
    assert "inventory" not in verdicts(outcome)
    assert verdicts(outcome)["gpu_count"] is Verdict.PASS
