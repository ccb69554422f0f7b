"""What people may decide about a node, and what the node is then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from clusterctl.fleet.decisions import decision as orders
from clusterctl.fleet.decisions.identity import retire
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.state import NodeState, summarise
from tests.events import data_of
from tests.fleet.people import LATER, NOW, WARM, after, node, reported, stopped


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage is not Stage.RETIRED])
def test_a_hold_counts_at_any_stage_and_moves_nothing(stage: Stage) -> None:
    """The node stays where it is, and no run may touch it."""
    order = orders.hold(node(stage), "we look at it", None)
    held = after(order.node, order.events)
    assert (held.stage, held.held(NOW), held.held(LATER)) == (stage, True, True)
    assert held.hold is not None
    assert str(held.hold) == "held by alice until released: we look at it"


def test_a_hold_ends_by_itself() -> None:
    """From its `until` on the node goes on as if it had never been held."""
    order = orders.hold(node(), "maintenance", LATER)
    held = after(order.node, order.events)
    assert (held.held(LATER - timedelta(seconds=1)), held.held(LATER)) == (True, False)


def test_a_held_gold_node_is_in_no_pool() -> None:
    """It is gold still, and no job may be scheduled on it."""
    gold = node()
    held = after(gold, orders.hold(gold, "x", LATER).events)
    assert summarise(gold).in_pool(NOW)
    assert not summarise(held).in_pool(NOW)
    assert summarise(held).in_pool(LATER)


def test_release_lifts_a_hold_and_nothing_else() -> None:
    """A gold node that was held is gold, and its release names what was lifted."""
    held = after(node(), orders.hold(node(), "we look at it", None).events)
    order = orders.release(held, "looked")
    assert order.effect == "no longer held by alice until released: we look at it"
    free = after(held, order.events)
    assert (free.stage, free.hold) == (Stage.GOLD, None)


def test_release_leads_back_and_lifts_in_one() -> None:
    """A quarantined node that is also held is freed of both, and both are reported."""
    bad = stopped(node(Stage.CABLED), "burnin")
    held = after(bad, orders.hold(bad, "ticket 7", None).events)
    order = orders.release(held, "repaired")
    assert [event.kind for event in order.events] == [Kind.HOLD_LIFTED, Kind.NODE_RELEASED]
    assert "ticket 7" in order.effect
    assert "before burnin (it was stopped: 2 uncorrectable errors)" in order.effect
    assert after(held, order.events).stage is Stage.CABLED


def test_there_must_be_something_to_release() -> None:
    """A free node is not released."""
    with pytest.raises(UsageError, match="nothing holds n1: it is gold"):
        orders.release(node(), "x")


@pytest.mark.parametrize(
    ("stage", "step", "back"),
    [
        (Stage.GOLD, None, Stage.CABLED),
        (Stage.GOLD, Step.DISCOVER, Stage.SEEN),
        (Stage.CONFIGURED, None, Stage.CONFIGURED),
        (Stage.CONFIGURED, Step.INSTALL, Stage.DISCOVERED),
        (Stage.SEEN, None, Stage.SEEN),
    ],
)
def test_a_persons_quarantine_leads_back_to_the_step_named(stage: Stage, step: Step | None, back: Stage) -> None:
    """By default the step that the node would take next, burn-in for a gold one."""
    order = orders.quarantine(node(stage), "smells", "", step)
    out = after(order.node, order.events)
    assert (out.stage, out.stopped_by, out.verdict) == (Stage.QUARANTINED, "alice", Verdict.FAIL)
    assert after(out, orders.release(out, "aired").events).stage is back


def test_no_step_is_skipped_by_way_of_quarantine() -> None:
    """A node is not sent to a step that it has not come to."""
    with pytest.raises(UsageError, match="configured and has not come to burnin yet"):
        orders.quarantine(node(Stage.CONFIGURED), "x", "", Step.BURNIN)


def test_an_operators_quarantine_needs_no_finding() -> None:
    """An older report of the step is not its cause."""
    gold = reported(node(), "burnin", WARM)
    out = after(gold, orders.quarantine(gold, "smells", "", None).events)
    assert (out.cause, out.findings) == ("smells", ())


@pytest.mark.parametrize("name", ["Video.Slot.21-1", "video.slot.21-1", "GPU-21"])
def test_a_part_is_known_by_slot_and_by_serial(name: str) -> None:
    """Its serial is in the event, and in the part's own history."""
    order = orders.quarantine(node(), "fan", name, None)
    (of_node, of_part) = order.events
    assert (data_of(of_node)["subject"], data_of(of_node)["serial"]) == ("Video.Slot.21-1", "GPU-21")
    assert (of_part.stream, of_part.subject) == ("part", "GPU-21")


def test_a_part_is_known_as_reports_call_it() -> None:
    """`gpu3` is the `gpu 3` of a finding; one that no finding names is believed, without a serial."""
    order = orders.quarantine(reported(node(), "burnin", WARM), "hot", "gpu3", None)
    assert data_of(order.events[0])["serial"] == "GPU-3"
    order = orders.quarantine(node(), "hot", "left fan", None)
    assert (data_of(order.events[0])["subject"], len(order.events)) == ("left fan", 1)
    assert "left fan, serial unknown" in order.effect


def test_a_quarantined_node_is_not_quarantined_again() -> None:
    """The gate's verdict is not overwritten: a release would skip what it found."""
    with pytest.raises(UsageError, match="quarantined already: 2 uncorrectable errors"):
        orders.quarantine(stopped(node(Stage.CABLED), "cable"), "x", "", Step.DISCOVER)


DECISIONS: list[Callable[[NodeState], object]] = [
    lambda gone: orders.hold(gone, "x", None),
    lambda gone: orders.release(gone, "x"),
    lambda gone: orders.quarantine(gone, "x", "", None),
    lambda gone: retire(gone, "x"),
]


@pytest.mark.parametrize("decide", DECISIONS)
def test_a_retired_node_is_out_of_everything(decide: Callable[[NodeState], object]) -> None:
    """Retired is final."""
    gone = after(node(), retire(node(), "lease ended").events)
    assert (gone.stage, gone.next_step, gone.cause) == (Stage.RETIRED, None, "retired by alice: lease ended")
    with pytest.raises(UsageError, match="retired for good") as caught:
        decide(gone)
    assert "--from n1" in caught.value.remedy


def test_a_reason_has_words() -> None:
    """Blanks are no reason."""
    with pytest.raises(UsageError, match="reason"):
        orders.hold(node(), " \n", None)
