"""What a repair makes doubtful is proven again, and nothing that it cannot have touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from clusterctl.fleet.decisions.decision import Order, hold
from clusterctl.fleet.decisions.revalidate import ENDANGERED, order_event, repair, revalidate
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Advance, Hold, Policy, decide
from clusterctl.fleet.node import RevalidationOrigin, Stage, Step
from clusterctl.fleet.state import NodeState, Revalidation
from tests.events import advances, data_of
from tests.fleet.people import FINE, NOW, after, node, reported, stopped

LATE = NOW + timedelta(days=30)
NIGHT = Revalidation(RevalidationOrigin.NIGHT, "nightly")
ADMISSION = Report(
    "admit",
    "bootstrap",
    (Finding(check="admission", verdict=Verdict.PASS, code=Code.PASSED),),
    frozenset({Origin.REAL}),
)


def ordered(state: NodeState, *parts: str) -> Order:
    return revalidate(state, repair(state, parts), "", ENDANGERED, LATE)


def gold() -> NodeState:
    """Admitted at NOW, with a report of each step."""
    state = node(Stage.BURNED_IN)
    for step in list(Step)[:-1]:
        state = reported(state, step.value, FINE)
    return after(state, advances(state.id, Stage.GOLD, Stage.BURNED_IN), actor="clusterctl")


@pytest.mark.parametrize(
    ("part", "since"),
    [
        ("gpu3", Step.DISCOVER),
        ("GPU 3", Step.DISCOVER),
        ("mlx5_2", Step.DISCOVER),
        ("Video.Slot.21-1", Step.DISCOVER),
        ("GPU-21", Step.DISCOVER),
        ("cable 5", Step.CABLE),
        ("transceiver", Step.CABLE),
        ("driver", Step.CONFIGURE),
    ],
)
def test_a_repair_leads_back_to_the_step_that_it_touched(part: str, since: Step) -> None:
    """A part that the BMC reports is discovered again; a cable does not bring the OS into doubt."""
    order = ordered(gold(), part)
    state = after(gold(), order.events)
    assert state.next_step is since
    assert "it leaves the gold pool" in order.effect
    left = list(Step)[: list(Step).index(since)]
    assert list(state.reports) == [step.value for step in left]


def test_the_earliest_of_several_counts() -> None:
    """A cable and a GPU: from discover on, and the chassis was open."""
    order = ordered(gold(), "cable 5", "gpu3")
    assert data_of(order.events[0])["since"] == "discover"
    assert "and the chassis was open" in order.effect


def test_an_open_chassis_needs_a_suite_that_looks_at_every_link() -> None:
    """Whatever was repaired, any PCIe link may be loose now; a cable outside needs none of that."""
    state = gold()
    checks = set(ENDANGERED) - {"pcie_width"}
    with pytest.raises(UsageError, match="does not look at pcie_width"):
        revalidate(state, repair(state, ["dimm A1"]), "", checks, LATE)
    assert revalidate(state, repair(state, ["cable 5"]), "", (), LATE).events


def test_a_stopped_node_goes_back_no_further_than_needed_and_no_less() -> None:
    """Stopped at burn-in, its cable repaired: from cable on. Stopped at discover, also repaired: from discover on."""
    state = after(stopped(gold(), "burnin"), ordered(stopped(gold(), "burnin"), "cable 5").events)
    assert (state.next_step, state.stopped_at, state.cause) == (Step.CABLE, None, "")
    assert data_of(ordered(stopped(gold(), "discover"), "cable 5").events[0])["since"] == "discover"


@pytest.mark.parametrize(("part", "expected"), [("board", "another machine"), ("flux capacitor", "has no part")])
def test_what_is_no_repair_of_this_machine_is_refused(part: str, expected: str) -> None:
    """A new board is a merge; an unknown part is a typing error."""
    with pytest.raises(UsageError, match=expected) as caught:
        repair(gold(), [part])
    assert caught.value.remedy


def test_a_node_that_a_person_holds_is_left_alone() -> None:
    """Release it first."""
    held = after(gold(), hold(gold(), "mine", None).events)
    with pytest.raises(UsageError, match="no step may touch it"):
        ordered(held, "gpu3")


def test_a_root_disk_needs_an_os_again() -> None:
    """The remedy is printed; nothing is overwritten by itself."""
    assert "install --reinstall n1" in ordered(gold(), "DISK-0").effect
    assert "reinstall" not in ordered(gold(), "gpu3").effect


def admitted(state: NodeState) -> object:
    return decide(state, ADMISSION, Policy(max_age=timedelta(days=7)), LATE)


def test_what_was_not_touched_counts_on_however_old() -> None:
    """The node was admitted on it. A month later only what the order names must be fresh."""
    state = after(gold(), [order_event(gold(), Step.BURNIN, NIGHT)], at=LATE)
    assert admitted(state) == Hold("burnin has no passing report", "run clusterctl burnin on it")
    again = replace(
        reported(state, "burnin", FINE), reported_at={**state.reported_at, "burnin": LATE}, stage=Stage.BURNED_IN
    )
    assert admitted(again) == Advance(Stage.GOLD, Verdict.PASS)


def test_without_an_order_old_reports_admit_no_node() -> None:
    """Nor does an order help a node that never was gold."""
    old = Hold("the discover report is 30 days old", "run clusterctl discover again")
    assert admitted(gold()) == old
    never = node(Stage.CABLED)
    for step in list(Step)[:-1]:
        never = reported(never, step.value, FINE)
    never = replace(never, revalidation=NIGHT, admitted_at=None)
    assert admitted(never) == old


def test_gold_again_is_the_end_of_it() -> None:
    """The next admission asks for fresh reports again."""
    state = after(gold(), [order_event(gold(), Step.BURNIN, NIGHT)])
    assert state.revalidation == NIGHT
    state = after(state, advances(state.id, Stage.GOLD, Stage.CABLED), at=LATE)
    assert (state.revalidation, state.admitted_at) == (None, LATE)
