"""An all-reduce over PyTorch: who is missing in a hang, and what the load and the hunt make of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.fleet.finding import Origin
from clusterctl.formats.nvidia.collectives import parse_collective, parse_stopped
from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials, from_data, read, to_data
from clusterctl_burnin.hunting.model import HuntResult, host
from clusterctl_burnin.loads.model import Participant, Round, Trial, TrialOutcome
from clusterctl_burnin.node.programs import torch_group, torch_group_worker
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import ProbeResult, Readings, Status, loader
from clusterctl_burnin.suites.suite import shipped_suite
from tests.lab_data import lab_limits
from tests.ports import reserve_port

RECORDED = Path(__file__).parent / "data/torch_group"
"""Printed by the program itself over gloo on the processors of one machine (PyTorch 2.13.0): figures of no hardware."""
PYTHON = os.environ.get("CLUSTERCTL_TORCH_PYTHON", "")
needs_torch = pytest.mark.skipif(not PYTHON, reason="CLUSTERCTL_TORCH_PYTHON names no Python that has PyTorch")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAB = lab_limits()
MEMBERS = tuple(Participant(f"n{i}", f"10.0.0.{i}", (), (), "eth0") for i in range(3))
PLAN = CampaignPlan(replace(shipped_suite(), loads=("hang_hunt",), hang_seconds=60), LAB, "ops")
STALLED = (RECORDED / "stopped.txt").read_text()
"""Three ranks, one of which was sent SIGSTOP."""


@pytest.mark.parametrize(
    ("pulses", "named"),
    [
        ([(18, 0.5), (18, 0.5), (18, 0.4)], []),
        ([(18, 0.5), (17, 9.0), (18, 0.4)], [(1, "it is silent")]),
        ([(18, 0.5), (18, 9.0), (19, 0.4)], [(1, "it is silent")]),
        ([(19, 0.5), (18, 0.5), (19, 0.4)], [(1, "it is behind")]),
        ([(0, 0.5), None, (0, 9.0)], [(1, "it never came")]),
    ],
)
def test_the_rank_that_keeps_the_others_waiting(
    pulses: list[torch_group_worker.Pulse], named: list[tuple[int, str]]
) -> None:
    """The rank that never came, else the silent one, else the one behind; where all stand in one step, none."""
    assert torch_group_worker.missing(pulses) == named


@dataclass
class Store:
    """Holds what it is given, as a TCPStore does."""

    held: dict[str, bytes] = field(default_factory=dict)

    def set(self, key: str, value: str) -> None:
        self.held[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self.held[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self.held for key in keys)


def test_the_watcher_waits_while_anybody_gets_further() -> None:
    """Pulses alone are no progress: after `stall` seconds without a step the group hangs, and not before."""
    store, spec = Store(), {"stall": 10.0, "start": 60.0}
    watch = torch_group_worker.Watch(store, 2, 0.0)
    for second in range(1, 31):
        store.set("pulse/0", json.dumps([second, min(second, 15)]))
        store.set("pulse/1", json.dumps([min(second, 14), min(second, 14)]))
        watch.look(float(second))
        code, words = watch.verdict(spec, float(second))
        assert (code == torch_group_worker.STALLED) == (second > 25)
        if code:
            assert words == ["# Stalled in step 15", "# Missing rank 1 in step 14: it is silent"]


def test_a_rank_that_never_comes_is_named() -> None:
    """After `start` seconds, in which PyTorch may have been read from a slow disk."""
    store, spec = Store(), {"stall": 10.0, "start": 60.0}
    watch = torch_group_worker.Watch(store, 2, 0.0)
    for second in (1, 50, 59, 61, 125):
        store.set("pulse/0", json.dumps([second, 0]))
        watch.look(float(second))
    assert watch.verdict(spec, 30.0)[0] == 0
    assert watch.verdict(spec, 125.0) == (torch_group_worker.STALLED, ["# Stalled in step 0", MISSING_AT_START])


MISSING_AT_START = "# Missing rank 1 in step 0: it never came"


def test_the_recorded_table_is_read_as_nccl_tests() -> None:
    """Ranks, one row of in-place sums, totals."""
    found = parse_collective((RECORDED / "three_ranks.txt").read_text())
    assert (found.ranks, found.out_of_bounds, found.wrong) == (3, 0, 0)
    (row,) = found.rows
    assert row.size == 1048576
    assert row.busbw > 0


@pytest.mark.parametrize(
    ("text", "missing", "failed", "stalled"),
    [
        (STALLED, ((1, "it is silent"),), (), True),
        ("# Failed rank 2: RuntimeError: closed\n", (), ((2, "RuntimeError: closed"),), False),
        ("# Rank 5 was ended by signal 9\n", (), ((5, "signal 9"),), False),
        ("# No end within 30 s\n", (), (), True),
        ("# Stalled in step 4: every rank is in it\n", (), (), True),
        ("# Out of bounds values : 0 OK\n", (), (), False),
    ],
)
def test_the_report_of_a_stopped_group(
    text: str, missing: tuple[tuple[int, str], ...], failed: tuple[tuple[int, str], ...], stalled: bool
) -> None:
    """Who is missing, who failed, whether it hung."""
    found = parse_stopped(text)
    assert (found.missing, found.failed, found.stalled) == (missing, failed, stalled)


def reading(stdout: str, rc: int | None = 0, status: Status = Status.OK, stderr: str = "") -> Readings:
    result = ProbeResult("hang_hunt", ("torch-group",), status, rc, stdout, stderr, NOW, 1.0)
    return Readings("h", "b", Origin.REAL, NOW, NOW, {"hang_hunt": result})


def job() -> Round:
    return PLAN.job("hang_hunt", MEMBERS)


def test_every_member_runs_its_own_ranks() -> None:
    """And all meet at the first one's address."""
    assert set(job().commands) == {"n0", "n1", "n2"}
    assert all(b"torch-group" in command.stdin and b"10.0.0.0" in command.stdin for command in job().commands.values())


@pytest.mark.parametrize(
    ("head", "outcome", "missing", "words"),
    [
        (reading((RECORDED / "three_ranks.txt").read_text()), TrialOutcome.PASSED, (), ""),
        (reading(STALLED, rc=3), TrialOutcome.HUNG, ("n1",), "rank 1 on n1: it is silent"),
        (reading("", rc=None, status=Status.TIMEOUT), TrialOutcome.HUNG, (), ""),
        (
            reading("# Failed rank 2: RuntimeError: closed\n", rc=4),
            TrialOutcome.FAILED,
            (),
            "rank 2 on n2: RuntimeError",
        ),
        (reading("", rc=6, stderr="this Python has no PyTorch: x"), TrialOutcome.UNMEASURED, (), "no PyTorch"),
        (reading("", rc=0), TrialOutcome.UNMEASURED, (), "no row"),
    ],
)
def test_a_group_has_its_outcome(head: Readings, outcome: TrialOutcome, missing: tuple[str, ...], words: str) -> None:
    """A hang names the node of the missing rank; a failure names no node; without PyTorch nothing was measured."""
    (trial,) = read(job(), {"n0": head, "n1": reading("", rc=7), "n2": reading("", rc=7)}, LAB).trials
    assert (trial.outcome, trial.missing) == (outcome, missing)
    assert words in trial.detail
    assert ("role pytorch" in trial.remedy) == bool(trial.remedy) == (words == "no PyTorch")


def test_the_hunt_holds_a_hang_against_the_named_node_alone() -> None:
    """Two hangs that name it, in groups of their own, make it bad; its partners are not suspected."""
    names = [f"n{i:02d}" for i in range(16)]
    campaign = Campaign(PLAN, "hang_hunt", names)
    rounds = 0
    while (asked := campaign.next()) is not None:
        rounds += 1
        for one in asked.groups:
            hung = "n03" in one
            outcome = TrialOutcome.HUNG if hung else TrialOutcome.PASSED
            trial = Trial("hang_hunt", one, outcome, {}, missing=("n03",) if hung else ())
            campaign.add(GroupTrials(asked.number, one, (trial,)))
            assert {c.part for c in campaign.measured().answer.suspects} <= {host("n03")}
    answer = campaign.measured().answer
    assert [culprit.part for culprit in answer.bad] == [host("n03")]
    assert rounds <= 9  # the suite wants six passes of each node, and three more make up for the hangs


def test_whom_a_hang_named_outlives_a_killed_run() -> None:
    """Written and read; what was written without it is read, too."""
    trial = Trial("hang_hunt", ("a", "b"), TrialOutcome.HUNG, {}, missing=("b",))
    event = GroupTrials(1, ("a", "b"), (trial,))
    assert from_data(to_data(event)) == event
    assert list(event.results()) == [HuntResult(1, ("a", "b"), TrialOutcome.HUNG, None, ("b",))]


def argv(*more: str) -> list[str]:
    program, worker = (text_of(f"node/programs/{name}.py") for name in ("torch_group", "torch_group_worker"))
    messages = ("--python", PYTHON, "--backend", "gloo", "--nodes", "1", "--node", "0", "--ranks", "3")
    size = ("--head", "127.0.0.1", "--port", str(reserve_port("127.0.0.1")), "--bytes", "65536", "--limit", "280")
    return [sys.executable, "-I", "-c", *loader(), program, worker, *messages, *size, "--stall", "10", *more]


@needs_torch
def test_three_processes_sum_over_gloo() -> None:
    """Truly, on this machine's processors."""
    done = subprocess.run(argv(), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert parse_collective(done.stdout).ranks == 3


@needs_torch
def test_a_stopped_process_is_named() -> None:
    """Rank 1 is stopped in the middle (SIGSTOP): the watcher names it, and nothing is left running."""
    with subprocess.Popen(argv("--seconds", "200"), stdout=subprocess.PIPE, text=True) as group:
        pid = _rank_under(group.pid, 1)
        os.kill(pid, signal.SIGSTOP)
        message, _ = group.communicate(timeout=600)
    assert group.returncode == torch_group_worker.STALLED
    assert [rank for rank, _ in parse_stopped(message).missing] == [1]
    assert not Path(f"/proc/{pid}").exists()


def _rank_under(parent: int, rank: int) -> int:
    """The process of that rank, once all have started their work (they have then used two seconds of processor)."""
    while True:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            mine = (
                int(stat[1]) == parent and f'"rank": {rank},'.encode() in words[-1] and b'"role": "rank"' in words[-1]
            )
            if mine and int(stat[11]) > 2 * os.sysconf("SC_CLK_TCK"):
                return int(entry.name)
        time.sleep(0.5)


def test_a_missing_python_is_reported() -> None:
    """Nothing is started."""
    messages = ["worker", "--python", "/nowhere/python", "--nodes", "1", "--node", "0", "--ranks", "1"]
    more = ["--head", "127.0.0.1", "--port", "1", "--bytes", "4", "--stall", "1", "--limit", "1"]
    assert torch_group.main([*messages, *more]) == torch_group.NO_PYTHON
