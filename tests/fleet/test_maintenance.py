"""Waves of a plan, its expected time, and when it stops: pure decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from clusterctl.fleet.decisions import maintain
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream, node_event
from clusterctl.fleet.finding import Report
from clusterctl.fleet.maintenance.forecast import forecast, measured
from clusterctl.fleet.maintenance.plan import Change, GroupedBy, PlanNode, WaveRule, wave_label, waves
from clusterctl.fleet.maintenance.progress import Progress, fold, halt_reason
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.decisions import HoldSet
from clusterctl.fleet.payloads.maintenance import (
    MaintenanceMoved,
    MaintenanceOrdered,
    MaintenanceRun,
    MaintenanceTurn,
    PlanStage,
    Turn,
)
from clusterctl_cli.render_maintain import forecast_text
from tests.events import new_event, written
from tests.fleet import people
from tests.steps.fakes import NOW

NODES = [PlanNode(name=f"n{at}", rack=f"A{1 + (at - 1) // 4:02}", sku="h100") for at in range(1, 13)]


def sizes(rule: WaveRule) -> list[int]:
    return [len(wave) for wave in waves(rule, NODES)]


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (WaveRule(canary=2, by=GroupedBy.NODES, size=4), [2, 4, 4, 2]),
        (WaveRule(canary=0, by=GroupedBy.NODES, size=5), [5, 5, 2]),
        (WaveRule(canary=1, by=GroupedBy.PERCENT, size=25), [1, 3, 3, 3, 2]),
        (WaveRule(canary=2, by=GroupedBy.PERCENT, size=1), [2, *[1] * 10]),
        (WaveRule(canary=2, by=GroupedBy.RACK, size=1), [2, 2, 4, 4]),
        (WaveRule(canary=2, by=GroupedBy.RACK, size=2), [2, 6, 4]),
        (WaveRule(canary=2, by=GroupedBy.POD, size=1, pods={"p1": ("A01", "A02"), "p2": ("A03",)}), [2, 6, 4]),
    ],
)
def test_waves_have_each_node_once(rule: WaveRule, wanted: list[int]) -> None:
    """Canaries first, then the groups; numbers in names count by value."""
    made = waves(rule, NODES)
    assert [len(wave) for wave in made] == wanted
    assert sorted(name for wave in made for name in wave) == sorted(node.name for node in NODES)
    assert made[0][:2] == ("n1", "n2")[: len(made[0])]


def test_the_canaries_are_of_one_sku() -> None:
    """A single node of a SKU would have no partner."""
    mixed = [PlanNode(name="n0", sku="a100"), *NODES[:3]]
    assert waves(WaveRule(canary=2, size=9), mixed) == (("n1", "n2"), ("n0", "n3"))


def test_no_nodes_make_no_waves() -> None:
    """An empty selection is no error of the arithmetic."""
    assert waves(WaveRule(), []) == ()


def test_waves_are_called_as_operators_call_them() -> None:
    """Without canaries the first wave is wave 1."""
    assert [wave_label(2, at) for at in range(3)] == ["canary", "wave 1", "wave 2"]
    assert [wave_label(0, at) for at in range(2)] == ["wave 1", "wave 2"]


def progress(*events: tuple[str, object]) -> Progress:
    order = MaintenanceOrdered(plan={}, waves=(("n1", "n2"), ("n3", "n4")), skipped={})
    payloads = [order, MaintenanceRun(), *(_payload(name, to) for name, to in events)]
    found = fold(
        written(NewEvent(Stream.MAINTENANCE, "p", payload), seq, NOW, run=f"r{seq}")
        for seq, payload in enumerate(payloads, start=1)
    )
    assert found is not None
    return found


def _payload(name: str, to: object) -> MaintenanceTurn | MaintenanceMoved:
    if isinstance(to, PlanStage):
        return MaintenanceMoved(to=to, reason=name)
    assert isinstance(to, Turn)
    return MaintenanceTurn(node=name, to=to, text="why")


def test_the_fold_counts_the_nodes() -> None:
    """What is half done is one line; a run that only began has its id there."""
    found = progress(("n1", Turn.DONE), ("n2", Turn.DONE), ("n3", Turn.CHANGING), ("n4", Turn.DRAINING))
    assert found.line() == "running: 2 of 4 nodes done, 1 changing, 1 draining"
    assert found.runs == {"r2"}
    assert fold([]) is None


def test_a_failed_canary_stops_whatever_share_is_accepted() -> None:
    """Of the others the share counts, of the nodes that ended."""
    early = progress(("n1", Turn.FAILED), ("n2", Turn.DONE))
    assert halt_reason(early, 100, ("n1", "n2")) == "the canary n1 failed: why"
    late = progress(("n1", Turn.DONE), ("n2", Turn.DONE), ("n3", Turn.FAILED))
    assert halt_reason(late, 33, ("n1", "n2")).startswith("1 of 3 nodes failed, more than the 33 %")
    assert halt_reason(late, 34, ("n1", "n2")) == ""


def test_failures_before_an_operator_went_on_do_not_count() -> None:
    """They have another turn; a kill between clears nothing."""
    again = progress(("n1", Turn.FAILED), ("too many", PlanStage.HALTED), ("", PlanStage.RUNNING))
    assert halt_reason(again, 10, ("n1", "n2")) == ""
    assert again.is_open("n1")
    assert not progress(("n1", Turn.FAILED), ("too many", PlanStage.HALTED)).is_open("n1")


def test_the_expected_time_counts_batches_of_each_step() -> None:
    """Steps that were never measured are named, not guessed."""
    found = forecast(
        (("n1", "n2"), tuple(f"n{at}" for at in range(20))),
        (Step.CONFIGURE, Step.BURNIN, Step.ADMIT),
        {Step.CONFIGURE: 100.0, Step.BURNIN: 600.0},
        {Step.CONFIGURE: 16, Step.BURNIN: 64},
    )
    assert found.waves == (700.0, 800.0)
    assert found.seconds == 1500.0
    assert found.unknown == (Step.ADMIT,)


def test_the_line_of_the_expected_time_names_all_that_it_leaves_out() -> None:
    """BIOS and firmware are no steps: nothing has measured them."""
    change = Change(settings=True, nic_firmware=True)
    found = forecast((("n1",),), (Step.CONFIGURE, Step.ADMIT), {Step.CONFIGURE: 100.0}, {})
    line = forecast_text(replace(found, without=change.of_machines))
    assert line.endswith("without admit, BIOS and firmware of the baseline, firmware of the adapters)")


def test_a_burnin_counts_by_its_own_suite() -> None:
    """A short one is not expected to take as long as the one that led to gold."""
    long, short = _burnin("bootstrap", 3600), _burnin("nightly", 300)
    assert measured([long, short], "nightly") == {Step.BURNIN: 300.0}
    assert measured([long], "nightly") == {Step.BURNIN: 3600.0}
    assert measured([], "nightly") == {}


def _burnin(suite: str, seconds: float) -> list[Event]:
    from clusterctl.fleet.codec import report_to_data

    begun = new_event("node", "n", Kind.STEP_STARTED, {"step": "burnin"})
    report = new_event("node", "n", Kind.REPORT_RECORDED, {"report": report_to_data(Report("burnin", suite))})
    passed = new_event("node", "n", Kind.STAGE_ADVANCED, {"to": Stage.BURNED_IN.value, "verdict": "pass"})
    late = NOW + timedelta(seconds=seconds)
    return [written(begun, 1, NOW), written(report, 2, late), written(passed, 3, late)]


def test_a_plan_knows_its_own_hold_by_its_field() -> None:
    """A hold with the plan's text and without the field, as an older journal may have it, is an operator's."""
    gold = people.node()
    own = people.after(gold, maintain.held(gold, "p", people.NOW))
    operators = people.after(gold, [node_event(gold.id, HoldSet(reason=maintain.hold_reason("p")))])

    assert maintain.is_held_by(own, "p")
    assert not maintain.is_held_by(own, "q")
    assert not maintain.is_held_by(operators, "p")
    with pytest.raises(UsageError, match="no step may touch it"):
        maintain.held(operators, "p", people.NOW)


def test_a_hold_that_replaces_the_plans_own_is_an_operators() -> None:
    """The plan does not lift it, and changes nothing."""
    gold = people.node()
    own = people.after(gold, maintain.held(gold, "p", people.NOW))
    taken = people.after(own, [node_event(own.id, HoldSet(reason="a loose fan"))])

    with pytest.raises(UsageError, match="a loose fan"):
        maintain.ordered(taken, "p", "driver", people.NOW)


def test_a_stored_hold_without_the_field_is_an_operators() -> None:
    """An older version wrote the event, and the state."""
    gold = people.node()
    old = new_event("node", gold.id, Kind.HOLD_SET, {"reason": "maintain p", "until": None})
    held = people.after(gold, [old])
    assert held.hold is not None
    assert held.hold.plan == ""
