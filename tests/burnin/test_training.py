"""The load training: the time of each rank names the slow node, and the hunt makes sure of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Origin, Verdict
from clusterctl.formats.training_group import parse_training
from clusterctl_burnin.campaign import Campaign, CampaignPlan, GroupTrials, read
from clusterctl_burnin.hunting.model import host
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.loads.model import Participant, TrialOutcome
from clusterctl_burnin.loads.multi_node.training import LOAD, judged
from clusterctl_burnin.loads.report import findings
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import ProbeResult, Readings, Status, loader
from clusterctl_burnin.suites.suite import shipped_suite
from tests.lab_data import lab_limits
from tests.ports import reserve_port

RECORDED = Path(__file__).parent / "data/training"
"""Printed by the program itself over gloo, one rank each of four nodes on the two processors of one machine that had
much else to do (PyTorch 2.13.0); of the third node of `third_slow`, the rank was stopped for 90 of each 120 ms."""
WELL, THIRD_SLOW = ((RECORDED / f"{name}.txt").read_text() for name in ("four_nodes", "third_slow"))
PYTHON = os.environ.get("CLUSTERCTL_TORCH_PYTHON", "")
needs_torch = pytest.mark.skipif(not PYTHON, reason="CLUSTERCTL_TORCH_PYTHON names no Python that has PyTorch")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAB = lab_limits()
PLAN = CampaignPlan(shipped_suite("hunt-training"), LAB, "ops")
NAMES = ("n0", "n1", "n2", "n3")


def members(names: Sequence[str]) -> tuple[Participant, ...]:
    return tuple(Participant(name, f"10.0.0.{number}", (), (), "eth0") for number, name in enumerate(names))


def reading(stdout: str, rc: int | None = 0, status: Status = Status.OK, stderr: str = "") -> Readings:
    result = ProbeResult("training", ("torch-group",), status, rc, stdout, stderr, NOW, 1.0)
    return Readings("h", "b", Origin.REAL, NOW, NOW, {"training": result})


def printed(own_ms: Sequence[float], sum_ms: float = 5.0) -> str:
    """What rank 0 prints of ranks with this work of their own."""
    ranks = [{"own_ms": own, "wait_ms": max(own_ms) - own + sum_ms} for own in own_ms]
    return "# Training " + json.dumps({"steps": 100, "gradient_bytes": 1 << 20, "ranks": ranks}) + "\n"


def test_the_times_of_each_rank_are_read() -> None:
    """Own work and wait; the rank that waits least waits for no other, so that its wait is the sum's own time."""
    found = parse_training(THIRD_SLOW)
    assert (found.steps, found.gradient_bytes, len(found.ranks)) == (20, 1586176, 4)
    assert max(found.ranks, key=lambda rank: rank.own_ms) is found.ranks[2]
    assert found.sum_ms == found.ranks[2].wait_ms


@pytest.mark.parametrize(
    "text",
    ["", WELL + WELL, WELL.replace("133.7246918665187", "NaN"), WELL.replace("126.8", "-126.8"), "# Training {}\n"],
)
def test_no_training_is_made_of_what_is_none(text: str) -> None:
    """No result, two, times that are none, fields that lack."""
    with pytest.raises(ParseError):
        parse_training(text)


def test_healthy_nodes_pass_with_figures() -> None:
    """The slowest of four is within a few percent of the median."""
    result = judged(NAMES, WELL, 1, 90.0)
    assert (result.outcome, result.missing) == (TrialOutcome.PASSED, ())
    assert result.value is not None
    assert 97 < result.value < 98
    assert (
        "n0 has 97.5 % of the median node's speed: its rank 0 works 134 ms and waits 69.8 ms in a step" in result.detail
    )


def test_the_slow_node_is_named_and_not_those_that_wait_for_it() -> None:
    """All four need 500 ms for a step; one of them works 382 ms of it, the others 131 to 152."""
    result = judged(NAMES, THIRD_SLOW, 1, 90.0)
    assert (result.outcome, result.missing) == (TrialOutcome.SLOW, ("n2",))
    assert "n2 has 37 % of the median node's speed" in result.detail


@pytest.mark.parametrize(
    ("own_ms", "ranks", "slow"),
    [
        ((40.0, 44.0), 1, ()),
        ((40.0, 50.0), 1, ("n1",)),  # of two, the faster one is the measure
        ((40.0, 40.0, 60.0, 60.0), 1, ("n2", "n3")),
        ((40.0, 40.0, 40.0, 60.0, 40.0, 40.0), 2, ("n1",)),  # its second GPU
        ((60.0, 60.0, 60.0), 1, ()),  # equally slow: nothing in the group shows it
    ],
)
def test_a_node_is_as_slow_as_its_slowest_rank(own_ms: Sequence[float], ranks: int, slow: tuple[str, ...]) -> None:
    """Compared with the median node of its group."""
    assert judged(NAMES[: len(own_ms) // ranks], printed(own_ms), ranks, 90.0).missing == slow


@pytest.mark.parametrize(
    ("head", "outcome", "missing", "words"),
    [
        (reading(WELL), TrialOutcome.PASSED, (), "median node"),
        (reading(THIRD_SLOW), TrialOutcome.SLOW, ("n2",), "median node"),
        (reading(printed([4.0, 4.0, 4.0])), TrialOutcome.UNMEASURED, (), "3 of 4 ranks took part"),
        (reading("nothing"), TrialOutcome.UNMEASURED, (), "0 results of a training"),
        (
            reading("# Stalled in step 4\n# Missing rank 3 in step 3: it is silent\n", 3),
            TrialOutcome.HUNG,
            ("n3",),
            "n3",
        ),
        (
            reading("# Failed rank 1: ValueError: the loss is nan in step 4\n", 4),
            TrialOutcome.FAILED,
            (),
            "rank 1 on n1",
        ),
        (reading("", 6, stderr="this Python has no PyTorch"), TrialOutcome.UNMEASURED, (), "no PyTorch"),
        ("it does not answer", TrialOutcome.UNMEASURED, (), "it does not answer"),
    ],
)
def test_what_the_answers_of_a_group_show(
    head: Readings | str, outcome: TrialOutcome, missing: tuple[str, ...], words: str
) -> None:
    """A slow node, a silent one, a failed rank, PyTorch that is not there, and output that is none."""
    job = PLAN.job("training", members(NAMES))
    assert all(b"--layers" in command.stdin for command in job.commands.values())
    (trial,) = read(job, {"n0": head} | dict.fromkeys(NAMES[1:], reading("")), LAB).trials
    assert (trial.outcome, trial.missing) == (outcome, missing)
    assert words in trial.detail


def hunted(names: Sequence[str], speeds: Mapping[str, float], output: Mapping[str, Readings] | None = None) -> Campaign:
    """A campaign of trainings to its end; `speeds`: of the nodes that are not as fast as all."""
    campaign = Campaign(PLAN, "training", names)
    while (asked := campaign.next()) is not None:
        for group in asked.groups:
            own = [40.0 * (1 + 0.01 * (hash_of(name, asked.number) % 5)) / speeds.get(name, 1.0) for name in group]
            head = (output or {}).get(group[0], reading(printed(own)))
            job = PLAN.job("training", members(group))
            answers = {group[0]: head} | dict.fromkeys(group[1:], reading(""))
            campaign.add(GroupTrials(asked.number, group, read(job, answers, LAB).trials))
    return campaign


def hash_of(name: str, number: int) -> int:
    return int(name[1:]) * 31 + number * 17


def test_a_hunt_of_48_hosts_finds_the_slow_one_by_trainings() -> None:
    """Six groups of eight in each round; the node that is at 30 % of the others' speed is bad, no other is in doubt."""
    names = [f"n{number:02d}" for number in range(48)]
    campaign = hunted(names, {"n17": 0.3})
    measured = campaign.measured()
    assert [one.part for one in measured.answer.bad] == [host("n17")]
    assert (measured.answer.settled, measured.answer.suspects) == (True, ())
    assert campaign.rounds <= 12
    found = findings([measured], members(names), LAB)
    (bad,) = found["n17"]
    assert bad.verdict is Verdict.FAIL
    assert str(bad.measured).endswith("%")
    assert bad.remedy == LOAD.remedy
    assert {one.verdict for name in names if name != "n17" for one in found[name]} == {Verdict.PASS}


def test_without_pytorch_no_node_is_healthy() -> None:
    """Each is INCONCLUSIVE, with the role that installs it."""
    lacking = dict.fromkeys(NAMES, reading("", 6, stderr="this Python has no PyTorch"))
    found = findings([hunted(NAMES, {}, lacking).measured()], members(NAMES), LAB)
    assert {one.verdict for its in found.values() for one in its} == {Verdict.INCONCLUSIVE}
    assert all("role pytorch" in one.remedy for its in found.values() for one in its)


def test_every_limits_file_has_the_training_and_its_limit() -> None:
    """By default: 90 % of the median node's speed, by NCCL, eight ranks a node."""
    limits = shipped_limits("h100-sxm-ndr400")
    assert limits["training_speed_min"].value == 90
    assert (limits.methods.training.backend, limits.methods.training.ranks_per_node) == ("nccl", 8)


def argv(node: int, nodes: int, port: int) -> list[str]:
    program, worker = (text_of(f"node/programs/{name}.py") for name in ("torch_group", "torch_group_worker"))
    group = ("--python", PYTHON, "--backend", "gloo", "--nodes", str(nodes), "--node", str(node), "--ranks", "1")
    where = ("--head", "127.0.0.1", "--port", str(port), "--stall", "120", "--start", "400", "--limit", "900")
    shape = ("--seconds", "10", "--layers", "2", "--width", "128", "--sequence", "64", "--batch", "2")
    return [sys.executable, "-I", "-c", *loader(), program, worker, *group, *where, *shape]


@needs_torch
def test_three_real_nodes_train_and_the_one_that_is_stopped_now_and_then_is_named() -> None:
    """DistributedDataParallel over gloo on this machine's processors; the second node's rank gets a quarter of the time."""
    port, names = reserve_port("127.0.0.1"), NAMES[:3]
    running = [subprocess.Popen(argv(node, 3, port), stdout=subprocess.PIPE, text=True) for node in range(3)]
    with throttled(running[1].pid):
        output = [one.communicate(timeout=1200)[0] for one in running]
    assert [one.returncode for one in running] == [0, 0, 0], output
    result = judged(names, output[0], 1, 60.0)
    assert (result.outcome, result.missing) == (TrialOutcome.SLOW, ("n1",)), result.detail


@contextmanager
def throttled(parent: int) -> Iterator[None]:
    """Stop the rank below a process for 90 of each 120 ms, once it has begun its work."""
    over = threading.Event()

    def stop_and_go() -> None:
        while not over.wait(0.1) and (pid := rank_of(parent)) is None:
            pass
        while not over.is_set() and pid is not None:
            try:
                os.kill(pid, signal.SIGSTOP)
                over.wait(0.09)
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                return
            over.wait(0.03)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def rank_of(parent: int) -> int | None:
    """The process of the rank, once it has used two seconds of processor: it has imported PyTorch then."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[1]) == parent and b'"role": "rank"' in words[-1] and int(stat[11]) > 2 * os.sysconf("SC_CLK_TCK"):
            return int(entry.name)
    return None
