"""The lab's sum over many nodes: of sound ones it comes to an end, and of the others each is named by its rank."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.formats.nvidia.collectives import CollectiveResult, Stopped, parse_collective, parse_stopped
from clusterctl.formats.training_group import parse_training
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.emulators.host_tools.tools_kit import ToolBox
from tests.ports import reserve_port

NODES = 3
RANKS = 2
STALLED = 3


def summed(
    folder: Path, broken: dict[int, str], *, absent: int | None = None, more: tuple[str, ...] = ()
) -> tuple[int, str]:
    """Return how the first node of a group of three ended, and what it printed; `broken`: nodes' faults by number."""
    port = reserve_port("127.0.0.1")
    size = ("--nodes", str(NODES), "--ranks", str(RANKS), "--bytes", "4096", "--iterations", "1", "--backend", "gloo")
    stall = "5" if broken else "60"  # a node of a crowded machine may be late, too
    times = ("--seconds", "1", "--stall", stall, "--start", "60" if absent is None else "8", "--limit", "150")
    where = ("--head", "127.0.0.1", "--port", str(port), "--python", "python3", "--interface", "lo", "--devices", "")
    running = [
        ToolBox(folder / str(node), machine(node, broken)).start(
            "torch-group", "--node", str(node), *size, *times, *where, *more
        )
        for node in range(NODES)
        if node != absent
    ]
    output = [process.communicate(timeout=600) for process in running]
    return running[0].returncode, output[0][0]


def machine(node: int, broken: dict[int, str]) -> Machine:
    well = build(node + 1, Layout(IPv4Network("10.88.0.0/16")), "unused")
    return find(broken[node]).apply(well, "") if node in broken else well


def test_sound_nodes_sum_to_the_end(tmp_path: Path) -> None:
    """In the words of nccl-tests, with each rank and no wrong value."""
    code, message = summed(tmp_path, {})
    result = parse_collective(message)
    assert (code, result.ranks, result.out_of_bounds) == (0, NODES * RANKS, 0)
    assert parse_stopped(message) == Stopped((), (), stalled=False)


def test_wrong_values_are_counted(tmp_path: Path) -> None:
    """The load hang_hunt checks every sum."""
    result: CollectiveResult = parse_collective(summed(tmp_path, {1: "wrong-sums"})[1])
    assert (result.out_of_bounds or 0) >= 1024


@pytest.mark.parametrize("node", range(NODES))
def test_a_node_that_stops_in_the_middle_is_named(node: int, tmp_path: Path) -> None:
    """Also where it is the first node, which counts for the others."""
    code, message = summed(tmp_path, {node: "hanging-sum"})
    ranks = tuple((rank, "it is silent") for rank in range(node * RANKS, (node + 1) * RANKS))
    assert (code, parse_stopped(message)) == (STALLED, Stopped(ranks, (), stalled=True))


def test_a_node_that_never_joins_is_named(tmp_path: Path) -> None:
    """Once the time to come is over."""
    code, message = summed(tmp_path, {}, absent=2)
    ranks = tuple((rank, "it never came") for rank in (4, 5))
    assert (code, parse_stopped(message)) == (STALLED, Stopped(ranks, (), stalled=True))


TRAINING = ("--layers", "1", "--width", "128", "--sequence", "64", "--batch", "4")


def test_a_training_gives_the_times_of_each_rank(tmp_path: Path) -> None:
    """Its work of its own, and its wait for the others; ranks of one node share them."""
    code, message = summed(tmp_path, {}, more=TRAINING)
    result = parse_training(message)
    assert (code, len(result.ranks)) == (0, NODES * RANKS)
    assert result.steps > 0
    assert result.ranks[0] == result.ranks[1]


def test_a_training_names_a_node_that_never_joins(tmp_path: Path) -> None:
    """As a sum does."""
    code, message = summed(tmp_path, {}, absent=2, more=TRAINING)
    assert (code, [rank for rank, _ in parse_stopped(message).missing]) == (STALLED, [4, 5])
