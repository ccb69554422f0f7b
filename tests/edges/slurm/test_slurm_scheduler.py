"""Nodes taken out of Slurm and given back, against a real Slurm."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from clusterctl.edges.scheduler import SlurmScheduler
from clusterctl.fleet.errors import EdgeError, EnvironmentBrokenError, UsageError
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Use
from tests.edges.slurm.cluster import SlurmCluster
from tests.steps.fakes import FixedClock

REASON = "clusterctl:nightly:20260101T020000-beef"


def scheduler() -> SlurmScheduler:
    return SlurmScheduler(FixedClock(), Origin.SIMULATED)


def soon() -> Deadline:
    return Deadline.after(100)


def test_the_state_of_nodes_is_reported_in_our_terms(slurm: SlurmCluster) -> None:
    """Idle, at work, or out with whose reason; each node once, though it is in two partitions."""
    slurm.work_on("c1")
    slurm.update("c2", "State=DRAIN", "Reason=fan | noisy")
    seen = scheduler().look(soon())
    reported = {name: (node.use, node.state, node.reason) for name, node in seen.value.items()}
    assert reported == {
        "c1": (Use.BUSY, "allocated", ""),
        "c2": (Use.OUT, "drained", "fan | noisy"),
        "c3": (Use.IDLE, "idle", ""),
    }
    assert not seen.value["c2"].ours
    assert b"c2|drained" in seen.evidence[0].content


def test_an_idle_node_is_taken_and_given_back(slurm: SlurmCluster) -> None:
    """No job gets on it in between; the reason has the actor and the cause."""
    assert scheduler().take(["c1", "c2"], REASON, soon()) == {}
    assert (slurm.states()["c1"], slurm.reasons()["c2"]) == ("drained", REASON)
    assert scheduler().look(soon()).value["c1"].ours
    assert scheduler().give_back(["c1", "c2"], soon()) == {}
    slurm.wait_for({"c1": "idle", "c2": "idle"})


def test_a_node_with_jobs_is_not_touched(slurm: SlurmCluster) -> None:
    """Neither a node at work, nor one that another drained, nor one that Slurm does not know; the others are taken."""
    slurm.work_on("c1")
    slurm.update("c2", "State=DRAIN", "Reason=fan")
    refused = scheduler().take(["c1", "c2", "c3", "c9"], REASON, soon())
    assert refused == {
        "c1": "Slurm reports allocated",
        "c2": "Slurm reports drained: fan",
        "c9": "Slurm does not know it",
    }
    assert slurm.states() == {"c1": "allocated", "c2": "drained", "c3": "drained"}
    assert slurm.reasons()["c2"] == "fan"


@dataclass(frozen=True, slots=True)
class _Racing(SlurmScheduler):
    """A job begins on c1 between our look and our drain."""

    cluster: SlurmCluster | None = None

    def _update(self, nodes: Sequence[str], deadline: Deadline, *settings: str) -> None:
        if self.cluster is not None and "State=DRAIN" in settings:
            self.cluster.work_on("c1")
        SlurmScheduler._update(self, nodes, deadline, *settings)


def test_a_job_that_begins_meanwhile_keeps_its_node(slurm: SlurmCluster) -> None:
    """The drain is taken back at once, and the job runs on."""
    refused = _Racing(FixedClock(), Origin.SIMULATED, cluster=slurm).take(["c1", "c2"], REASON, soon())
    assert list(refused) == ["c1"]
    assert "a job began on it" in refused["c1"]
    slurm.wait_for({"c1": "allocated", "c2": "drained"})


def test_only_our_own_drain_is_taken_back(slurm: SlurmCluster) -> None:
    """An operator who wrote another reason over ours keeps the node; one that went down stays down."""
    scheduler().take(["c1", "c2", "c3"], REASON, soon())
    slurm.update("c1", "State=DRAIN", "Reason=alice looks at it")
    slurm.update("c2", "State=DOWN", "Reason=died")
    kept = scheduler().give_back(["c1", "c2", "c3", "c9"], soon())
    assert kept["c1"] == "its drain is not ours any more: alice looks at it"
    assert kept["c2"] == "its drain is not ours any more: died"
    assert kept["c9"] == "Slurm does not know it"
    slurm.wait_for({"c1": "drained", "c2": "drained", "c3": "idle"})


def test_a_drain_for_a_fault_is_not_taken_back(slurm: SlurmCluster) -> None:
    """What the node's own check, a supervised job or a person drained is theirs, although it begins as ours do."""
    reasons = {"c1": "clusterctl:gpu_ecc:20261128T181500Z", "c2": "clusterctl:job:run-1", "c3": "clusterctl: by ann"}
    for name, reason in reasons.items():
        slurm.update(name, "State=DRAIN", f"Reason={reason}")
    kept = scheduler().give_back([*reasons], soon())
    assert kept == {
        name: f"it is drained for a fault, an operator gives it back: {reason}" for name, reason in reasons.items()
    }
    assert {name: slurm.states()[name] for name in reasons} == dict.fromkeys(reasons, "drained")


def test_a_drain_for_a_named_fault_is_taken_back(slurm: SlurmCluster) -> None:
    """That of a revalidated node, and no other one: the reason is compared whole."""
    for name in ("c1", "c2"):
        slurm.update(name, "State=DRAIN", f"Reason=clusterctl:job:run-{name}")
    slurm.wait_for({"c1": "drained", "c2": "drained"})
    kept = scheduler().give_back(["c1", "c2"], soon(), "clusterctl:job:run-c1")
    assert list(kept) == ["c2"]
    slurm.wait_for({"c1": "idle", "c2": "drained"})


def test_a_reason_that_is_not_ours_is_refused(slurm: SlurmCluster) -> None:
    """It would be unknown later whether it may be taken back."""
    with pytest.raises(UsageError, match="does not begin with clusterctl:"):
        scheduler().take(["c1"], "maintenance", soon())
    assert slurm.states()["c1"] == "idle"


PLANNED = "clusterctl:maintain:driver-580"


def test_a_drain_lets_the_jobs_end(slurm: SlurmCluster) -> None:
    """A node with a job drains, its job runs on; asked again after its end it is out. Others' drains are left alone."""
    slurm.work_on("c1")
    slurm.update("c2", "State=DRAIN", "Reason=fan")
    first = scheduler().drain(["c1", "c2", "c3", "c9"], PLANNED, soon())
    assert first.out == {"c3"}
    assert first.waiting == {"c1": "draining"}
    assert first.refused == {"c2": "Slurm reports drained: fan", "c9": "Slurm does not know it"}
    assert slurm.states()["c1"] == "draining"
    slurm.end_work()
    slurm.wait_for({"c1": "drained"})
    assert scheduler().drain(["c1", "c3"], PLANNED, soon()).out == {"c1", "c3"}
    assert scheduler().give_back(["c1", "c3"], soon()) == {}
    slurm.wait_for({"c1": "idle", "c3": "idle"})


def test_a_drain_that_waits_is_taken_back_and_the_job_runs_on(slurm: SlurmCluster) -> None:
    """A plan that is paused gives the node back while its job still runs."""
    slurm.work_on("c1")
    assert scheduler().drain(["c1"], PLANNED, soon()).waiting == {"c1": "draining"}
    assert scheduler().give_back(["c1"], soon()) == {}
    slurm.wait_for({"c1": "allocated"})


def test_features_are_read_and_set_whole(slurm: SlurmCluster) -> None:
    """As slurm.conf's own features are kept, ours are added to them."""
    scheduler().set_features("c1", ["h100", "gold"], soon())
    assert scheduler().features(soon()) == {"c1": ("h100", "gold"), "c2": (), "c3": ()}
    scheduler().set_features("c1", [], soon())
    assert scheduler().features(soon())["c1"] == ()


@contextmanager
def without_controller(slurm: SlurmCluster) -> Iterator[None]:
    slurm.stop_controller()
    try:
        yield
    finally:
        slurm.start_controller()
        slurm.wait_for(dict.fromkeys(slurm.nodes, "idle"))


def test_a_slurm_that_does_not_answer_makes_no_node_idle(slurm: SlurmCluster) -> None:
    """An error, within the deadline; never an empty cluster."""
    started = time.monotonic()
    with without_controller(slurm), pytest.raises(EdgeError):
        scheduler().look(Deadline.after(2))
    assert time.monotonic() - started < 300


def test_a_host_that_ssh_cannot_reach_is_an_error() -> None:
    """With ssh's own words."""
    with pytest.raises(EdgeError, match="exit status 255") as caught:
        replace(scheduler(), ssh="slurm.invalid").look(soon())
    assert caught.value.where == "sinfo on slurm.invalid"


def test_tools_that_are_missing_are_the_controllers_trouble(slurm: SlurmCluster, tmp_path: object) -> None:
    """Exit code 3, with the package's name."""
    import os

    path = os.environ["PATH"]
    os.environ["PATH"] = str(tmp_path)
    try:
        with pytest.raises(EnvironmentBrokenError, match="slurm-client"):
            scheduler().look(soon())
    finally:
        os.environ["PATH"] = path
