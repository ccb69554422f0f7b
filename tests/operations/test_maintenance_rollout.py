"""A rolling change kills no job, stops at failures, goes on after a repair, and survives a kill at each of its acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions import maintain
from clusterctl.fleet.errors import ClaimLostError, EdgeError
from clusterctl.fleet.event import NewEvent, Stream, node_event
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.payloads.decisions import NodeReleased
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered, MaintenanceTurn, PlanStage, Turn
from clusterctl.fleet.payloads.node import StageAdvanced
from clusterctl.operations.context import open_site
from clusterctl.operations.maintenance_rollout import moved
from clusterctl.operations.operation import Control
from clusterctl.operations.serial import to_data
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import PREFIX, Draining
from tests.operations.maintenance import NAMES, PLAN, WAVES, Cluster, Rig, template

DRAINED = f"{PREFIX}maintain:{PLAN.name}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return template(tmp_path_factory.mktemp("maintenance"))


@pytest.fixture
def rig(made: Path, tmp_path: Path) -> Rig:
    return Rig.copied(made, tmp_path / "site")


def test_all_nodes_are_changed_once_their_jobs_have_ended(rig: Rig) -> None:
    """Never more than one wave is out, no job is hurt, and each node has work again."""
    rig.cluster.jobs = {"n2": 3, "n3": 2, "n6": 5}
    rig.run()
    assert rig.progress().line() == "done: 6 of 6 nodes done"
    assert set(rig.stages().values()) == {"gold"}
    assert rig.hurt == []
    assert rig.cluster.most_out == 2
    assert rig.cluster.drains == {}
    assert [name for names, _ in rig.calls for name in names] == list(NAMES)


def test_a_failed_canary_stops_before_the_first_wave(rig: Rig) -> None:
    """It stays out of work with the check as the reason; no other node was drained."""
    rig.run(fails=("n2",))
    progress = rig.progress()
    assert progress.stage is PlanStage.HALTED
    assert progress.reason == "the canary n2 failed: GPU 3 has 2 uncorrectable errors"
    assert progress.line().startswith("halted: 1 of 6 nodes done, 1 failed (")
    assert {name for names, _ in rig.calls for name in names} == {"n1", "n2"}
    assert list(rig.cluster.drains) == ["n2"]
    assert rig.cluster.drains["n2"].startswith(f"{PREFIX}maintain:")


def test_too_many_failures_stop_the_wave_and_a_repair_lets_it_go_on(rig: Rig) -> None:
    """1 of 4 is more than 20 %: the last wave is not begun. Repaired and released, the failed node comes first."""
    rig.run(fails=("n3",))
    assert rig.progress().stage is PlanStage.HALTED
    assert "1 of 4 nodes failed, more than the 20 %" in rig.progress().reason
    assert rig.progress().of("n5").turn is Turn.WAITING
    rig.run()
    assert rig.progress().stage is PlanStage.HALTED  # no operator has resumed it
    repaired = NodeReleased(to=Stage.CABLED, reason="GPU replaced", was=Stage.QUARANTINED)
    rig.append([node_event("id-n3", repaired)])
    rig.resume()
    rig.run()
    assert rig.progress().line() == "done: 6 of 6 nodes done"
    assert rig.calls[2][0] == ("n3",)
    assert rig.cluster.drains == {}
    assert rig.hurt == []


def test_a_node_in_quarantine_stays_failed_and_the_others_go_on(rig: Rig) -> None:
    """An operator resumes without the repair: its failure no longer counts, and it is not touched."""
    rig.run(fails=("n3",))
    rig.resume()
    rig.run()
    assert rig.progress().line() == "done: 5 of 6 nodes done, 1 failed"
    assert rig.orders()["n3"] == 1
    assert list(rig.cluster.drains) == ["n3"]


def test_a_node_with_endless_jobs_is_skipped_and_given_back(rig: Rig) -> None:
    """Its jobs go on; the plan does not wait for ever."""
    rig.cluster.jobs = {"n4": 10_000}
    ticks = rig.cluster.tick

    def later() -> None:
        rig.clock.late += timedelta(minutes=10)
        ticks()

    rig.cluster.tick = later  # type: ignore[method-assign]
    rig.run()
    turn = rig.progress().of("n4")
    assert turn.turn is Turn.SKIPPED
    assert turn.text == "its jobs did not end within 60 min: the scheduler reports draining"
    assert rig.cluster.drains == {}
    assert rig.cluster.jobs["n4"] > 9_000
    assert rig.stages()["n4"] == "gold"
    assert "n4" not in rig.orders()


def test_a_single_node_is_measured_with_an_idle_gold_one(rig: Rig) -> None:
    """The partner is lent for that time only."""
    rig.cluster.jobs = {"n2": 10}
    rig.run()
    assert rig.calls[0] == (("n1",), ("n3",))
    assert rig.progress().line() == "done: 6 of 6 nodes done"
    assert rig.cluster.drains == {}


def test_the_last_node_waits_until_a_changed_one_responds_again(made: Path, tmp_path: Path) -> None:
    """Slurm reports a node that was just given back as not responding for some seconds."""
    cluster = Cluster(names=("n1", "n2", "n3"), settling=3)
    rig = Rig.copied(made, tmp_path / "site", cluster, waves=(("n1", "n2"), ("n3",)))
    rig.run()
    assert rig.calls[1:] == [(("n3",), ("n1",))]
    assert rig.progress().line() == "done: 3 of 3 nodes done"


def test_a_node_without_any_partner_is_skipped_after_some_looks(made: Path, tmp_path: Path) -> None:
    """The others never respond: it has its jobs again."""
    cluster = Cluster(names=("n1", "n2", "n3"), settling=100)
    rig = Rig.copied(made, tmp_path / "site", cluster, waves=(("n1", "n2"), ("n3",)))
    rig.run()
    assert rig.progress().line() == "done: 2 of 3 nodes done, 1 skipped"
    assert rig.cluster.drains == {}


def test_without_an_idle_partner_a_node_waits_for_the_other_of_its_wave(rig: Rig) -> None:
    """All other nodes are at work: no node is measured alone."""
    rig.cluster.jobs = dict.fromkeys(NAMES, 5) | {"n1": 1}
    rig.cluster.new_jobs = 3
    rig.run()
    assert rig.calls[0] == (("n1", "n2"), ())
    assert rig.progress().line() == "done: 6 of 6 nodes done"
    assert rig.hurt == []


@pytest.mark.parametrize("reason", ["fan", "clusterctl:gpu_ecc:20261128T181500Z", "clusterctl:job:run-1"])
def test_a_drain_of_another_owner_is_left_alone(rig: Rig, reason: str) -> None:
    """An operator, the node's own check or a supervised job drained a node: it is skipped, and its drain stays."""
    rig.cluster.drains = {"n4": reason}
    rig.run()
    assert rig.progress().of("n4").text == f"it cannot be drained: {reason}"
    assert rig.cluster.drains == {"n4": reason}
    assert "n4" not in rig.orders()


def test_a_pause_gives_back_what_waits_and_finishes_what_began(rig: Rig) -> None:
    """The order comes while a node's jobs still run; `resume` goes on to the end."""
    rig.cluster.jobs = {"n3": 4, "n4": 6}
    ticks, passed = rig.cluster.tick, [0]

    def paused() -> None:
        passed[0] += 1
        if passed[0] == 2:
            rig.append([moved(PLAN.name, PlanStage.PAUSED, "training run of the year")])
        ticks()

    rig.cluster.tick = paused  # type: ignore[method-assign]
    rig.run()
    progress = rig.progress()
    assert progress.line() == "paused: 2 of 6 nodes done (training run of the year)"
    assert rig.cluster.drains == {}
    assert rig.cluster.jobs
    rig.resume()
    rig.run()
    assert rig.progress().line() == "done: 6 of 6 nodes done"


def test_a_plan_that_was_paused_during_its_last_change_is_done(made: Path, tmp_path: Path) -> None:
    """Nothing is left that `resume` could go on with."""
    rig = Rig.copied(made, tmp_path / "site", waves=(("n1", "n2"),))
    give_back = rig.cluster.give_back

    def paused(nodes: Sequence[str], deadline: Deadline) -> Mapping[str, str]:
        if "n1" in nodes:
            rig.append([moved(PLAN.name, PlanStage.PAUSED, "power work")])
        return give_back(nodes, deadline)

    rig.cluster.give_back = paused  # type: ignore[method-assign]
    rig.run()
    assert rig.progress().line() == "done: 2 of 2 nodes done"


def test_ctrl_c_leaves_no_node_drained_that_has_not_begun(rig: Rig) -> None:
    """The plan is paused, with the reason."""
    rig.cluster.jobs = {"n1": 5}
    control, ticks = Control(), rig.cluster.tick

    def cancelled() -> None:
        control.cancelled.set()
        ticks()

    rig.cluster.tick = cancelled  # type: ignore[method-assign]
    rig.cluster.jobs["n2"] = 5
    rig.run(control=control)
    assert rig.progress().line() == "paused: 0 of 6 nodes done (its run was cancelled)"
    assert rig.cluster.drains == {}


def test_a_worker_that_stops_leaves_the_plan_to_another_one(rig: Rig) -> None:
    """As in an upgrade of the workers: the plan is neither paused nor done, and the next worker ends it."""
    control, ticks = Control(), rig.cluster.tick

    def stopped() -> None:
        control.hands_back.set()
        control.cancelled.set()
        ticks()

    rig.cluster.tick, rig.cluster.jobs = stopped, {"n1": 5}  # type: ignore[method-assign]
    rig.run(control=control)
    assert (rig.progress().stage, rig.cluster.drains) == (PlanStage.RUNNING, {})
    rig.cluster.tick, rig.cluster.jobs = ticks, {}  # type: ignore[method-assign]
    rig.run()
    assert rig.progress().line() == "done: 6 of 6 nodes done"


def test_a_node_that_another_run_configured_meanwhile_is_changed_again(rig: Rig) -> None:
    """Killed after the order, then `bootstrap` took the node to gold with the site's values: that is no change."""
    begun = MaintenanceTurn(node="n1", to=Turn.CHANGING)
    path = (Stage.CONFIGURED, Stage.CABLED, Stage.BURNED_IN, Stage.GOLD)
    context = open_site(rig.site)
    rig.append([NewEvent(Stream.MAINTENANCE, PLAN.name, begun)])
    rig.append(maintain.ordered(context.node("n1"), PLAN.name, PLAN.reason, CLOCK.now()))
    rig.append([node_event("id-n1", StageAdvanced(to=stage, verdict=Verdict.PASS)) for stage in path])
    context.journal.close()
    rig.cluster.drains["n1"] = DRAINED
    rig.run()
    assert rig.orders()["n1"] == 2
    assert rig.progress().line() == "done: 6 of 6 nodes done"


def test_a_roll_back_goes_over_the_changed_nodes_again(rig: Rig) -> None:
    """In the same waves, each drained and proven as before."""
    rig.run()
    back = MaintenanceOrdered(plan=to_data(PLAN), waves=WAVES, skipped={}, back=True)
    rig.append([NewEvent(Stream.MAINTENANCE, PLAN.name, back)])
    rig.run()
    assert rig.progress().line() == "done: 6 of 6 nodes rolled back"
    assert rig.orders() == dict.fromkeys(NAMES, 2)
    assert rig.cluster.drains == {}


def test_a_scheduler_that_does_not_answer_for_a_while_is_asked_again(rig: Rig) -> None:
    """The plan waits; the same drains go on afterwards."""
    drain, troubles = rig.cluster.drain, iter(range(3))

    def troubled(nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        if next(troubles, None) is not None:
            raise EdgeError("slurmctld does not answer", where="sinfo")
        return drain(nodes, reason, deadline)

    rig.cluster.drain = troubled  # type: ignore[method-assign]
    rig.run()
    assert rig.progress().line() == "done: 6 of 6 nodes done"
    assert rig.orders() == dict.fromkeys(NAMES, 1)


def test_a_run_that_has_lost_its_plan_writes_nothing_more(rig: Rig) -> None:
    """Another run has the claim: the first one ends, and gives back none of the other's nodes."""
    context = open_site(rig.site)
    subject = NodeId(f"maintain:{PLAN.name}")
    first = context.journal.claim([subject], "r1").granted[subject]
    context.journal.release([first])
    rig.cluster.drains["n1"] = DRAINED
    with pytest.raises(ClaimLostError):
        rig.run(claim=first)
    assert rig.progress().runs == frozenset()
    assert rig.cluster.drains == {"n1": DRAINED}
    context.journal.close()


SMALL = (("n1", "n2"), ("n3",))


def small(made: Path, folder: Path) -> Rig:
    """Three nodes of the plan; the first one has a job, and an idle node is a partner of the last one."""
    return Rig.copied(made, folder, Cluster(jobs={"n1": 2}), SMALL)


def test_a_kill_at_each_act_changes_nothing_twice(made: Path, tmp_path: Path) -> None:
    """Killed after each write and each request to the scheduler, then run again: every node ends where it
    ends without the kill, is ordered once, no job is hurt, and nothing stays drained but the node that failed.
    """
    count = small(made, tmp_path / "whole").run(fails=("n3",)).passed
    assert count > 20
    for until in range(1, count + 1):
        rig = small(made, tmp_path / f"killed-{until}")
        rig.run(until=until, fails=("n3",))
        rig.run(fails=("n3",))
        progress, orders = rig.ending()
        assert orders == {"n1": 1, "n2": 1, "n3": 1}, until
        assert rig.hurt == [], until
        assert progress.with_turn(Turn.DONE) == ("n1", "n2"), until
        assert progress.failed == ("n3",), until
        assert set(rig.cluster.drains) == {"n3"}, until


def test_a_plan_that_accepts_failures_goes_on(rig: Rig) -> None:
    """50 % are accepted: 1 of 4 does not stop it."""
    rig.run(fails=("n3",), plan=replace(PLAN, stop_percent=50))
    assert rig.progress().line() == "done: 5 of 6 nodes done, 1 failed"
