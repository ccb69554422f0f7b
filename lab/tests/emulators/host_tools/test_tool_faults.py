"""Faults that a host's own tools show: each is one root finding, on the right part, with the right remedy."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Report, Verdict
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.variation import healthy
from lab.tests.emulators.host_tools.offline_kit import findings
from lab.tests.emulators.host_tools.test_gpu_load_faults import LOADS as ON_GPU_LOADS
from tests.e2e.fault_table import expectations, is_subject


@dataclass(frozen=True)
class Case:
    fault: str
    part: str
    check: str
    subject: str
    remedy: str
    serial: str = ""


CASES = (
    *(
        Case(each.fault, each.target, each.check, each.subject, each.remedy, each.serial)
        for each in expectations()
        if each.seen_offline and each.check not in ON_GPU_LOADS
    ),
    Case(
        "slow-nvme",
        "bay1",
        "nvme_read",
        "nvme1n1 (Dell DC NVMe PM9A3)",
        "replace it if that does not help",
        "NVME00011",
    ),
    Case("xid", "gpu3=74", "kernel_log", "gpu 3", "nvlink", "165000010003"),
)
"""What the table of faults calls seen offline; and two that it shows on another part, or in a lab."""


def machine() -> Machine:
    return healthy(build(1, Layout(IPv4Network("10.88.0.0/16")), "unused"), 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fault}-{case.part}")
def test_a_fault_is_one_root(case: Case, tmp_path: Path) -> None:
    """Other failures that it causes are reported as its consequence, and every other check passes."""
    broken = find(case.fault).apply(machine(), case.part)
    roots = Report("burnin", "bootstrap", findings(broken, tmp_path)).roots()
    assert [(root.check, root.verdict, root.serial) for root in roots] == [(case.check, Verdict.FAIL, case.serial)]
    assert is_subject(case.subject, roots[0].subject)
    assert case.remedy in roots[0].remedy


@pytest.mark.parametrize("fault", sorted({case.fault for case in CASES if case.part}))
def test_without_a_part_the_first_one_breaks_and_an_unknown_one_is_refused(fault: str) -> None:
    """The message lists the parts that exist."""
    assert find(fault).apply(machine(), "").faults
    with pytest.raises(UsageError, match="has no gpu9"):
        find(fault).apply(machine(), "gpu9")


@pytest.mark.parametrize("code", ["13", "79", "", "x"])
def test_an_xid_that_is_no_sign_of_bad_hardware_is_refused(code: str) -> None:
    """The lab has no log line for it, or it would rightly block no node from gold; empty means the usual one."""
    if not code:
        assert find("xid").apply(machine(), "gpu0=").gpus[0].xids == (119,)
        return
    with pytest.raises(UsageError, match="knows no Xid"):
        find("xid").apply(machine(), f"gpu0={code}")
