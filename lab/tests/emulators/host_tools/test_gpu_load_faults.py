"""Faults of GPUs that only work shows: each is found by the load that is there for it, and by no other."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.registry import NODE_LOADS
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.variation import healthy
from lab.tests.emulators.host_tools.offline_kit import findings, loaded

LOADS = ("dcgm_diag", "gpu_load")


@dataclass(frozen=True)
class Case:
    fault: str
    load: str
    cause: str
    remedy: str


CASES = (
    Case("dcgm-fail", "dcgm_diag", "memory: Memory of GPU 5 is corrupt.", "replace the GPU with serial 165000010005"),
    Case("hot-gpu-under-load", "gpu_load", "thermal brake", "heat sink"),
    Case("silent-corruption", "gpu_load", "computes wrong results", "replace it"),
    Case("slow-gpu", "gpu_load", "slower than that of the node's fastest", "clocks"),
)


def machine(seed: int = 0) -> Machine:
    return healthy(build(1, Layout(IPv4Network("10.88.0.0/16")), "unused"), seed)


@pytest.mark.parametrize("seed", range(2))
def test_healthy_gpus_pass_both_loads(seed: int, tmp_path: Path) -> None:
    """However their healthy values are drawn."""
    for load in LOADS:
        assert [finding.verdict for finding in loaded(machine(seed), tmp_path, NODE_LOADS[load])] == [Verdict.PASS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_a_fault_is_found_by_its_load_alone(case: Case, tmp_path: Path) -> None:
    """On the right GPU, with its serial number; the other load passes."""
    broken = find(case.fault).apply(machine(), "gpu5")
    for load in LOADS:
        (finding,) = loaded(broken, tmp_path, NODE_LOADS[load])
        if load == case.load:
            assert (finding.verdict, finding.subject, finding.serial) == (Verdict.FAIL, "gpu 5", "165000010005")
            assert case.cause in finding.cause
            assert case.remedy in finding.remedy
        else:
            assert finding.verdict is Verdict.PASS


def test_the_checks_see_nothing_of_them(tmp_path: Path) -> None:
    """An idle GPU shows none of these faults: that is what the loads are for."""
    broken = machine()
    for index, case in enumerate(CASES):
        broken = find(case.fault).apply(broken, f"gpu{index}")
    found = [finding for finding in findings(broken, tmp_path) if finding.check not in (*LOADS, "all_at_once")]
    assert all(finding.verdict.admits for finding in found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.fault)
def test_without_a_part_the_first_one_breaks_and_an_unknown_one_is_refused(case: Case) -> None:
    """The message lists the parts that exist."""
    assert find(case.fault).apply(machine(), "").faults == (f"{case.fault}:gpu0",)
    with pytest.raises(UsageError, match="has no gpu9"):
        find(case.fault).apply(machine(), "gpu9")


def test_persistence_mode_off_is_a_warning_of_the_diagnosis(tmp_path: Path) -> None:
    """As DCGM reports it: a failed test of severity CONFIG, exit code 226."""
    broken = find("persistence-off").apply(machine(), "gpu5")
    (finding,) = loaded(broken, tmp_path, NODE_LOADS["dcgm_diag"])
    assert (finding.verdict, finding.subject) == (Verdict.WARN, "gpu 5")
