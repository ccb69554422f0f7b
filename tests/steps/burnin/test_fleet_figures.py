"""A node is held against its own fleet: those of its batch, and what others measured lately."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.event import Kind as EventKind
from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Confirm, Policy, Quarantine, decide
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.payloads.node import Figure
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.burnin.fleet_figures import RECENT, FleetFigures
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl_burnin.check import Check
from clusterctl_burnin.checks.cpu_share import CPU_SHARE
from clusterctl_burnin.checks.gpu_idle import GPU_TEMPERATURE
from clusterctl_burnin.figures import from_payload, to_payload
from clusterctl_burnin.fleet_metrics import METRICS
from clusterctl_burnin.fleet_stats import Sample
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.probes.ibstat import IBSTAT
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.suites.suite import Suite, shipped_suite
from tests.lab_data import lab_limits
from tests.paths import ROOT
from tests.steps.burnin.test_burnin import Hosts, burnin_step, judge, nodes
from tests.steps.discover.test_discover import SKU
from tests.steps.fakes import NOW, FixedClock

LIMITS = lab_limits()
HOT = 85.0


class Later:
    def now(self) -> datetime:
        return NOW + RECENT + timedelta(minutes=1)


class Empty:
    """A journal without any node yet."""

    def latest(self, stream: Stream, kind: EventKind | None = None) -> Iterator[Event]:
        return iter(())


def under_test(number: int, celsius: float | None = None, sku: str = "lab") -> NodeUnderTest:
    """Healthy ones differ by a few degrees."""
    node = NodeId(f"id{number}")
    value = 60.0 + number % 5 if celsius is None else celsius
    figures = (
        Sample(node, GPU_TEMPERATURE, value, sku, "gpu 3", "S3"),
        Sample(node, CPU_SHARE, 99.0 - number % 3, sku),
    )
    kind = SkuLimits(replace(SKU, name=sku), LIMITS)
    host = HostAddress(f"n{number}", "10.0.0.1", "ops", "k", "f")
    return NodeUnderTest(NodeState(node, f"n{number}"), Serial(f"S{number}"), host, kind, figures=figures)


def reported(book: SqlJournal, *nodes: NodeUnderTest) -> None:
    """As the recorder writes a step's findings about them."""
    for one in nodes:
        book.append(one.outcome(shipped_suite()).facts)


def test_the_hot_node_of_a_batch_is_found() -> None:
    """And none of the others; by the metric, on the part, not for certain."""
    found = FleetFigures(Empty(), FixedClock()).findings([*(under_test(i) for i in range(30)), under_test(30, HOT)])
    assert set(found) == {"id30"}
    (one,) = found[NodeId("id30")]
    assert (one.check, one.subject, one.verdict) == ("fleet_gpu_temperature", "gpu 3", Verdict.FAIL)
    assert not one.deterministic


def test_what_others_measured_lately_counts(book: SqlJournal) -> None:
    """A node that is burned in alone is compared with all that came before it; those get no findings."""
    reported(book, *(under_test(i) for i in range(30)))
    alone = FleetFigures(book, FixedClock()).findings([under_test(99, HOT)])
    assert [f.verdict for f in alone[NodeId("id99")]] == [Verdict.FAIL]
    reported(book, under_test(50, HOT))
    assert FleetFigures(book, FixedClock()).findings([under_test(99)]) == {}


def test_only_a_nodes_last_figures_count_and_none_of_its_own_past(book: SqlJournal) -> None:
    """A node that was hot and has been repaired is like its fleet."""
    reported(book, *(under_test(i) for i in range(30)), under_test(99, HOT))
    assert FleetFigures(book, FixedClock()).findings([under_test(99)]) == {}
    events = list(book.latest(Stream.NODE, EventKind.FIGURES_MEASURED))
    reported(book, under_test(3))
    assert len(list(book.latest(Stream.NODE, EventKind.FIGURES_MEASURED))) == len(events) == 31


@pytest.mark.parametrize("why", ["too few", "another SKU", "long ago", "not compared"])
def test_without_a_fleet_there_is_no_finding(book: SqlJournal, why: str) -> None:
    """No finding at all: no node passes a comparison that was not made."""
    others = [
        under_test(i, sku="other" if why == "another SKU" else "lab") for i in range(18 if why == "too few" else 30)
    ]
    reported(book, *others)
    odd = under_test(99, HOT)
    if why == "not compared":
        odd.profile = SkuLimits(odd.sku, replace(LIMITS, compared=frozenset()))
    clock = Later() if why == "long ago" else FixedClock()
    assert FleetFigures(book, clock).findings([odd]) == {}


def test_one_confirming_run_comes_before_the_quarantine() -> None:
    """What stands out may not be there again."""
    found = Finding(
        check="fleet_gpu_temperature",
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        subject="gpu 3",
        deterministic=False,
    )
    report = Report("burnin", "bootstrap", (found,))
    policy = Policy(attempts=2)
    assert isinstance(decide(NodeState(NodeId("x"), attempts=1), report, policy, NOW), Confirm)
    assert isinstance(decide(NodeState(NodeId("x"), attempts=2), report, policy, NOW), Quarantine)


def test_figures_survive_the_journal() -> None:
    """As they were; figures of metrics that are no longer compared are left out."""
    samples = under_test(1).figures
    assert tuple(from_payload("id1", "lab", to_payload(samples))) == samples
    old = Figure(metric="wind", subject="node", serial="", value=1.0)
    assert list(from_payload("id1", "lab", [old])) == []


def test_limits_compare_every_metric_or_those_that_they_list() -> None:
    """A file that lists none compares all; a name that is no metric is refused."""
    assert shipped_limits("h100-sxm-ndr400").compared == METRICS.keys()
    assert lab_limits("lab-metal").compared == lab_limits().compared


SMI = (ROOT / "tests" / "burnin/data/healthy/nvidia_smi.txt").read_text(encoding="utf-8")


@dataclass
class Warm(Hosts):
    """Hosts with GPUs of about the same temperature; n7 is far hotter, and within every limit."""

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        answer = super()._answer(host, argv)
        if argv[0] == "nvidia-smi":
            number = int(host.name.removeprefix("n"))
            celsius = 70 if number == 7 else 40 + number % 5
            answer["stdout"] = re.sub(r"(GPU Current Temp +: )\d+", rf"\g<1>{celsius}", SMI)
        return answer


def test_the_step_reports_outliers_and_keeps_the_figures() -> None:
    """After the loads: the hot node fails, with the loads passed; all others pass; every outcome carries its figures."""
    check = Check("adapter", (IBSTAT, NVIDIA_SMI), judge)
    step = burnin_step(Warm(), suite=Suite("t", (check,), ("ib_write_bw",), 1))
    outcomes = list(step.run(nodes(24), IntentLog(None, {}), Deadline.after(60)))  # type: ignore[arg-type]
    bad = {(o.node, f.check, f.verdict) for o in outcomes for f in o.findings if not f.verdict.admits}
    assert bad == {("id7", "fleet_gpu_temperature", Verdict.FAIL)}
    assert all({f.check for f in o.findings} >= {"adapter", "ib_write_bw"} for o in outcomes)
    assert {fact.kind for o in outcomes for fact in o.facts} == {EventKind.FIGURES_MEASURED}
    assert len({fact.subject for o in outcomes for fact in o.facts}) == 24


DMESG = (ROOT / "tests" / "burnin/data/healthy/dmesg.txt").read_text(encoding="utf-8")
LOW = (
    "kern  :warn  : [Fri Jan  2 03:04:05 2026] mlx5_core 0000:{}:00.0: mlx5_pcie_event:299:(pid 1): "
    "Detected insufficient power on the PCIe slot (27W).\n"
)


@dataclass
class LowPower(Hosts):
    """Hosts with two adapters, at 18 and 40; `low`: those that report too little power, by host."""

    low: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def _answer(self, host: HostAddress, argv: list[str]) -> dict[str, object]:
        answer = super()._answer(host, argv)
        if argv[0] == "nvidia-smi":
            answer["stdout"] = SMI
        if argv[0] == "dmesg":
            answer["stdout"] = DMESG + "".join(LOW.format(bus) for bus in self.low.get(host.name, ()))
        return answer


EVERY = {f"n{number}": ("18",) for number in range(6)}


@pytest.mark.parametrize(
    ("low", "count", "bad"),
    [
        (EVERY, 6, set()),
        (EVERY, 1, {("id0", "kernel_log")}),
        ({"n3": ("18",)}, 6, {("id3", "kernel_log")}),
        ({"n3": ("18", "40")}, 6, {("id3", "fleet_slot_power")}),
        ({f"n{number}": ("18", "40") for number in range(6)}, 6, set()),
    ],
    ids=["one slot of all nodes", "one node alone", "one slot of one node", "all slots of one node", "all slots"],
)
def test_low_slot_power_is_compared_over_the_fleet(
    low: Mapping[str, tuple[str, ...]], count: int, bad: set[tuple[str, str]]
) -> None:
    """What the same slot of the other nodes reports too is a warning, and the node goes on to its loads."""
    checks = (Check("adapter", (IBSTAT,), judge), CHECKS["kernel_log"])
    step = burnin_step(LowPower(low=low), suite=Suite("t", checks, ("ib_write_bw",), 1))
    outcomes = list(step.run(nodes(count), IntentLog(None, {}), Deadline.after(60)))  # type: ignore[arg-type]
    found = [(o.node, f) for o in outcomes for f in o.findings]
    wrong = {(node, one.check) for node, one in found if one.verdict is Verdict.FAIL}
    assert wrong == bad
    if count > 1:
        loaded = {node for node, one in found if one.check == "ib_write_bw" and one.verdict is Verdict.PASS}
        assert loaded == {o.node for o in outcomes} - {node for node, check in bad if check == "kernel_log"}


def test_slots_of_nodes_before_count(book: SqlJournal) -> None:
    """By the figures in the journal: a node that is burned in alone is compared, too."""
    step = burnin_step(LowPower(low=EVERY), suite=Suite("t", (CHECKS["kernel_log"],), (), 1))
    for outcome in step.run(nodes(6), IntentLog(None, {}), Deadline.after(60)):  # type: ignore[arg-type]
        book.append(outcome.facts)
    assert FleetFigures(book, FixedClock()).shared_slots([under_test(99)]) == {"hca 0000:18:00.0"}
