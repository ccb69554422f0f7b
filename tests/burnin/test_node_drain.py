"""How a node drains itself in Slurm, and the brake: whatever the order, no check drains more nodes than are allowed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.node_check.service import METRIC_FILE, REFUSED, Settings, health, prolog
from clusterctl_burnin.node_check.slurm import (
    Drain,
    Drainer,
    Held,
    NodeInSlurm,
    NotAnsweredError,
    allowed_nodes,
    failed_within,
    mark,
    parse_node,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class FakeSlurm:
    """Meets `Slurm`: a table of nodes, with a lock around each request, as slurmctld has."""

    table: dict[str, NodeInSlurm]
    reasons: dict[str, str] = field(default_factory=dict)
    silent_after: int = 1 << 30
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def nodes(self) -> Mapping[str, NodeInSlurm]:
        with self.lock:
            self._count()
            return dict(self.table)

    def update(self, node: str, *settings: str) -> None:
        with self.lock:
            self._count()
            given = dict(one.split("=", 1) for one in settings)
            if "extra" in given:
                self.table[node] = replace(self.table[node], extra=given["extra"])
            if given.get("state") == "drain":
                self.table[node] = replace(self.table[node], out=True)
                self.reasons[node] = given["reason"]

    def _count(self) -> None:
        self.asked += 1
        if self.asked > self.silent_after:
            raise NotAnsweredError("silent")


def cluster(count: int) -> FakeSlurm:
    return FakeSlurm({f"n{number}": NodeInSlurm(name=f"n{number}", out=False) for number in range(count)})


def drain(slurm: FakeSlurm, node: str, check: str = "gpu_count", at: datetime = NOW, percent: float = 2.0) -> Drain:
    return Drainer(slurm, node, percent, lambda: at).drain(check)


def test_a_failed_check_drains_its_node_with_check_and_event() -> None:
    """The reason has the form that clusterctl recognises as its own."""
    slurm = cluster(100)
    assert drain(slurm, "n7").held is None
    assert slurm.reasons == {"n7": "clusterctl:gpu_count:20260101T120000Z"}


def test_the_brake_holds_from_the_third_of_a_hundred_nodes_on() -> None:
    """2 % are two; another check has a count of its own; after an hour two more may be drained."""
    slurm = cluster(100)
    assert [drain(slurm, f"n{number}").held for number in range(4)] == [None, None, Held.BRAKE, Held.BRAKE]
    assert drain(slurm, "n50", check="gpu_ecc").held is None
    later = NOW + timedelta(hours=1, seconds=1)
    assert [drain(slurm, f"n{number}", at=later).held for number in (2, 3)] == [None, None]


def test_what_keeps_failing_keeps_the_brake_on() -> None:
    """Ten nodes fail every five minutes: two are drained, and no more however long it goes on."""
    slurm = cluster(100)
    for minute in range(0, 300, 5):
        for number in range(10):
            drain(slurm, f"n{number}", at=NOW + timedelta(minutes=minute))
    assert len(slurm.reasons) == 2


@pytest.mark.parametrize(("nodes", "percent", "allowed"), [(4, 2.0, 1), (100, 2.0, 2), (149, 2.0, 2), (4096, 0.5, 20)])
def test_at_least_one_node_may_be_drained(nodes: int, percent: float, allowed: int) -> None:
    assert allowed_nodes(nodes, percent) == allowed


def steps(slurm: FakeSlurm, node: str) -> Iterator[None]:
    """The requests of one node, one at a time: look, write, look, drain."""
    own = slurm.nodes()[node]
    yield
    if own.out:
        return
    reason = mark("c", NOW)
    slurm.update(node, f"extra={reason}")
    yield
    nodes = slurm.nodes()
    failed, allowed = failed_within(nodes, "c", NOW), allowed_nodes(len(nodes), 2.0)
    yield
    if len(failed) <= allowed and not nodes[node].out:
        slurm.update(node, "state=drain", f"reason={reason}")


@given(st.integers(1, 200), st.randoms(use_true_random=False))
def test_no_order_of_requests_drains_more_than_are_allowed(failing: int, order: random.Random) -> None:
    """The requests of all nodes, in any order that keeps each node's own."""
    slurm = cluster(200)
    running = [steps(slurm, f"n{number}") for number in range(failing)]
    while running:
        one = order.choice(running)
        if next(one, running) is running:
            running.remove(one)
    assert len(slurm.reasons) <= allowed_nodes(200, 2.0)


def test_nodes_that_fail_at_the_same_time_do_not_pass_the_brake() -> None:
    """The drainers themselves, on threads."""
    slurm = cluster(200)
    start = threading.Barrier(40)

    def one(number: int) -> None:
        start.wait()
        drain(slurm, f"n{number}")

    threads = [threading.Thread(target=one, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(slurm.reasons) <= 4


@pytest.mark.parametrize("silent_after", range(4))
def test_a_slurm_that_falls_silent_drains_nothing(silent_after: int) -> None:
    """At whichever request: look, write, look, drain."""
    slurm = cluster(10)
    slurm.silent_after = silent_after
    assert drain(slurm, "n1").held is Held.NOT_ASKED
    assert slurm.reasons == {}


def test_what_others_own_is_left_alone() -> None:
    """A node that another drained, whose field has another's text, or that Slurm does not know."""
    slurm = cluster(10)
    slurm.table["n1"] = NodeInSlurm(name="n1", out=True)
    slurm.table["n2"] = NodeInSlurm(name="n2", out=False, extra="ticket 7")
    assert [drain(slurm, node).held for node in ("n1", "n2", "n11")] == [
        *(Held.OUT_ALREADY, Held.FOREIGN, Held.UNKNOWN_NODE)
    ]
    assert slurm.reasons == {}
    assert slurm.table["n2"].extra == "ticket 7"


@pytest.mark.parametrize(
    ("line", "node"),
    [
        (
            "NodeName=n1 Arch=x86_64 CPUTot=1 State=IDLE+DRAIN ThreadsPerCore=1 Reason=x [root@2026]",
            NodeInSlurm(name="n1", out=True),
        ),
        ("NodeName=n1 State=DOWN* Comment=a b", NodeInSlurm(name="n1", out=True)),
        ("NodeName=n1 State=MIXED+PLANNED Extra=(null)", NodeInSlurm(name="n1", out=False)),
        (
            "NodeName=n1 State=ALLOCATED Extra=clusterctl:x:20260101T120000Z Reason=y",
            NodeInSlurm(name="n1", out=False, extra="clusterctl:x:20260101T120000Z"),
        ),
        ("NodeName=n1 Arch=x86_64", None),
        ("", None),
    ],
)
def test_a_node_is_read_from_scontrols_line(line: str, node: NodeInSlurm | None) -> None:
    assert parse_node(line) == node


@pytest.mark.parametrize(
    "extra", ["", "clusterctl:c", "clusterctl:c:20269999T999999Z", "clusterctl:d:20260101T120000Z"]
)
def test_what_is_no_mark_of_the_check_does_not_count(extra: str) -> None:
    assert failed_within({"n": NodeInSlurm(name="n", out=False, extra=extra)}, "c", NOW) == frozenset()


def finding(verdict: Verdict, root: str = "") -> Finding:
    return Finding(check="gpu_count", verdict=verdict, code=Code.NOT_MEASURED, cause="7 of 8", root=root)


def settings(folder: Path, answer: str, node: str = "n1") -> Settings:
    """A scontrol that prints `answer`, and writes down each update."""
    program = folder / "scontrol"
    program.write_text(
        f'#!/bin/sh\ncase $1 in --oneliner) cat {folder}/nodes;; update) echo "$@" >> {folder}/updates\n'
        f'case "$3" in extra=*) sed -i "s/^NodeName={node} .*/& $(echo $3 | sed s/extra/Extra/)/" {folder}/nodes;; esac;; esac\n'
    )
    program.chmod(0o755)
    (folder / "nodes").write_text(answer)
    return Settings(node=node, slurm_seconds=100, scontrol=str(program), textfile=folder, report=folder / "report")


UPDATES = "updates"


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.WARN, Verdict.INCONCLUSIVE, Verdict.NOT_APPLICABLE])
def test_only_a_failure_drains(tmp_path: Path, verdict: Verdict) -> None:
    """What was not measured never does: neither by the health check nor before a job; nor a consequence alone."""
    chosen = settings(tmp_path, "NodeName=n1 State=IDLE\n")
    findings: Sequence[Finding] = (finding(verdict), finding(Verdict.FAIL, root="other node"))
    assert health(chosen, findings) == 0
    assert prolog(chosen, findings) == 0
    assert not (tmp_path / UPDATES).exists()


def test_a_prolog_refuses_the_job_of_a_node_that_it_drained(tmp_path: Path) -> None:
    """And lets it run where the brake holds; then the metric of the health check raises the alert."""
    chosen = settings(tmp_path, "NodeName=n1 State=IDLE\nNodeName=n2 State=IDLE\n")
    assert prolog(chosen, [finding(Verdict.FAIL)]) == REFUSED
    assert "state=drain reason=clusterctl:gpu_count:" in (tmp_path / UPDATES).read_text()
    other = mark("gpu_count", datetime.now(UTC))
    chosen = settings(tmp_path, f"NodeName=n1 State=IDLE\nNodeName=n2 State=IDLE+DRAIN Extra={other}\n")
    (tmp_path / UPDATES).unlink()
    assert prolog(chosen, [finding(Verdict.FAIL)]) == 0
    assert health(chosen, [finding(Verdict.FAIL)]) == 0
    assert "state=drain" not in (tmp_path / UPDATES).read_text()
    assert 'clusterctl_drain_held{check="gpu_count",by="brake"} 1' in (tmp_path / METRIC_FILE).read_text()
    assert health(chosen, [finding(Verdict.PASS)]) == 0
    assert "} 1" not in (tmp_path / METRIC_FILE).read_text()


def test_a_missing_scontrol_drains_nothing_and_lets_the_job_run(tmp_path: Path) -> None:

    chosen = replace(settings(tmp_path, ""), scontrol=str(tmp_path / "none"))
    assert prolog(chosen, [finding(Verdict.FAIL)]) == 0
