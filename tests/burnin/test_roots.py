"""One cause, one root: everything else that is bad points at it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Cause, causes_of
from clusterctl_burnin.probe import Status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import judge, sweep, unmeasured
from tests.burnin.kit import expected, healthy_text, readings, result
from tests.burnin.test_checks import XID, append, line, without_second_gpu

SUITE = shipped_suite()


def roots(*findings: Finding) -> list[str]:
    return [finding.key for finding in Report("burnin", "bootstrap", findings).roots()]


def test_a_healthy_node_has_a_pass_of_every_check() -> None:
    """The whole suite at once: all pass, all report, each with evidence that is handed over."""
    judged = judge(SUITE.checks, readings(), expected())
    assert Report("burnin", "bootstrap", judged.findings).verdict is Verdict.PASS
    assert {f.check for f in judged.findings} == set(CHECKS)
    kept = {evidence.digest for evidence in judged.evidence}
    assert all(set(f.evidence) <= kept for f in judged.findings)


def test_a_missing_gpu_is_one_root() -> None:
    """gpu_count; the checks that had one GPU fewer to look at point at it."""
    without = healthy_text("nvlink")
    judged = judge(
        SUITE.checks,
        readings(nvidia_smi=without_second_gpu, nvlink=lambda _: without[: without.index("GPU 1")]),
        expected(),
    )
    assert roots(*judged.findings) == ["gpu_count:node"]


def test_a_gpu_off_the_bus_is_the_root_of_its_absence() -> None:
    """Xid 79 before gpu_count."""
    off = append(XID.format("43:00", "79, GPU has fallen off the bus.") + XID.format("43:00", "45, Ch 1"))
    judged = judge(SUITE.checks, readings(nvidia_smi=without_second_gpu, dmesg=off), expected())
    assert roots(*judged.findings) == ["kernel_log:gpu 0000:43:00.0"]


def test_a_full_disk_is_the_root_of_loads_that_could_not_run() -> None:
    """Open MPI's ranks meet by files in /tmp. A load that was slow has another cause, and so has traffic of one process."""
    full = Finding(check="disk_space", verdict=Verdict.FAIL, code=Code.DISK_FULL, subject="/tmp")
    ended = Finding(check="all_reduce", verdict=Verdict.FAIL, code=Code.LOAD_FAILED)
    slow = Finding(check="all_reduce_node", verdict=Verdict.FAIL, code=Code.LOAD_SLOW)
    pair = Finding(check="ib_write_bw", verdict=Verdict.FAIL, code=Code.LOAD_FAILED, subject="mlx5_3")
    found = link_roots([full, ended, slow, pair])
    assert [one.root for one in found] == ["", full.key, "", ""]


def test_a_dead_driver_is_one_root() -> None:
    """nvidia-smi cannot talk to the driver: every GPU check is unmeasured because of that."""
    dead = result("nvidia_smi", "couldn't communicate with the NVIDIA driver.\n", rc=9)
    judged = judge(
        SUITE.checks, readings(nvidia_smi=dead, nvlink=result("nvlink", "couldn't communicate", rc=9)), expected()
    )
    assert roots(*judged.findings) == ["nvidia_driver:node"]


def test_a_hung_tool_is_one_root() -> None:
    """nvidia-smi hangs, nothing else is known: the first check that needed it stands for all; with an Xid, the Xid."""
    hung = {name: result(name, "", rc=None, status=Status.TIMEOUT) for name in ("nvidia_smi", "nvlink")}
    judged = judge(SUITE.checks, readings(nvidia_smi=hung["nvidia_smi"]), expected())
    assert roots(*judged.findings) == ["nvidia_driver:node"]
    gsp = append(XID.format("1b:00", "119, Timeout waiting for RPC from GSP!"))
    judged = judge(SUITE.checks, readings(**hung, dmesg=gsp), expected())
    assert roots(*judged.findings) == ["kernel_log:gpu 0000:1b:00.0"]


def test_the_wrong_machine_explains_everything() -> None:
    """Whatever else is wrong with a machine that is not the node is not the node's."""
    judged = judge(SUITE.checks, readings(nvidia_smi=line("DRAM Uncorrectable", "9")), expected(name="node002"))
    assert roots(*judged.findings) == ["identity:node"]


def test_two_faults_are_two_roots() -> None:
    """An ECC error and a port that is down have nothing to do with each other."""
    down = healthy_text("ibstat").replace("Active", "Down", 1).replace("LinkUp", "Polling", 1)
    judged = judge(
        SUITE.checks, readings(nvidia_smi=line("DRAM Uncorrectable", "9"), ibstat=lambda _: down), expected()
    )
    assert sorted(roots(*judged.findings)) == ["gpu_ecc:gpu 0", "hca_link:mlx5_0"]


def test_a_slow_rail_is_the_cables_fault() -> None:
    """A load's finding points at the fault of the same port, or of the node's links, and at nothing of another port."""
    cable = Finding(check="hca_link", verdict=Verdict.FAIL, code=Code.HCA_PORT_DOWN, subject="mlx5_3")
    slow, other = (
        Finding(check="ib_write_bw", verdict=Verdict.FAIL, code=Code.LOAD_SLOW, subject="mlx5_3"),
        Finding(check="ib_write_bw", verdict=Verdict.FAIL, code=Code.LOAD_SLOW, subject="mlx5_4"),
    )
    together = Finding(check="all_reduce", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED)
    linked = link_roots([cable, slow, other, together])
    assert [f.root for f in linked] == ["", cable.key, "", cable.key]


def test_when_the_node_does_not_answer_every_check_reports_it_once() -> None:
    """All of the suite INCONCLUSIVE, one root, one remedy."""
    findings = unmeasured(SUITE.checks, "no SSH: timed out", "see that the host is up")
    assert {f.check for f in findings} == set(CHECKS)
    assert {f.verdict for f in findings} == {Verdict.INCONCLUSIVE}
    assert len(roots(*findings)) == 1


def test_a_sweep_runs_each_probe_once() -> None:
    """Six checks read `nvidia-smi -q`; it runs once."""
    once = sweep(SUITE.checks)
    assert once.stdin.decode().count('\\"name\\": \\"nvidia_smi\\"') == 1
    assert 30 < once.timeout < 240


CHECK_NAMES = st.sampled_from([*sorted(CHECKS), "ib_write_bw", "all_reduce", "cable"])
FINDINGS = st.lists(
    st.builds(
        Finding,
        check=CHECK_NAMES,
        verdict=st.sampled_from(list(Verdict)),
        subject=st.sampled_from(["node", "gpu 0", "gpu 1", "mlx5_0", "hca 0000:18:00.0"]),
        cause=st.sampled_from(["a", "b"]),
        measured=st.sampled_from(["", "Xid 79", "Xid 48"]),
        serial=st.sampled_from(["", "1", "2"]),
    ),
    max_size=12,
)


TWO_MACHINES = [
    Finding(check="identity", verdict=Verdict.FAIL, code=Code.WRONG_SERIAL, subject=subject)
    for subject in ("node", "gpu 0")
]
CROSSED = [
    Finding(check="clock_offset", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED, subject=subject, cause=cause)
    for subject, cause in (("node", "a"), ("gpu 0", "a"), ("gpu 0", "b"), ("node", "b"))
]


DECLARED = {
    **causes_of(CHECKS.values()),
    "clock_offset": (Cause("identity"), Cause("swap_off", unmeasured=True)),
    "swap_off": (Cause("clock_offset", same_part=True),),
}


@pytest.mark.parametrize("causes", [{}, DECLARED], ids=["rules", "declared"])
@given(findings=FINDINGS)
@example(findings=TWO_MACHINES)
@example(findings=CROSSED)
def test_linking_never_hides_what_is_bad(causes: dict[str, Sequence[Cause]], findings: list[Finding]) -> None:
    """Whatever is found: nothing is lost or changed but its root, every root is there, is itself none's consequence,
    some root remains where anything is bad, and linking again changes nothing.
    """
    linked = link_roots(findings, causes)
    assert [dataclasses.replace(f, root="") for f in linked] == findings
    keys = {f.key for f in linked}
    bad_roots = {f.key for f in linked if not f.root and not f.verdict.admits}
    for finding in linked:
        if finding.root:
            assert finding.root in keys
            assert finding.root in bad_roots
            assert not finding.verdict.admits
    assert bool(bad_roots) == any(not f.verdict.admits for f in linked)
    assert link_roots(linked, causes) == linked


def test_a_declared_cause_may_be_a_consequence() -> None:
    """Then the first cause explains both; a cause that only leaves things unmeasured explains no failure."""
    driver, count, other = (
        Finding(check=name, verdict=Verdict.FAIL, code=Code.GPU_COUNT) for name in ("driver", "count", "other")
    )
    unread = Finding(check="links", verdict=Verdict.INCONCLUSIVE, code=Code.NOT_MEASURED)
    failed = Finding(check="links", verdict=Verdict.FAIL, code=Code.NVLINK_DOWN, subject="gpu 1")
    causes = {"count": (Cause("driver"),), "links": (Cause("count", unmeasured=True),), "driver": (Cause("count"),)}
    linked = link_roots([driver, count, other, unread, failed], causes)
    assert [finding.root for finding in linked] == ["", driver.key, "", driver.key, ""]


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.WARN, Verdict.NOT_APPLICABLE])
def test_what_admits_is_no_consequence(verdict: Verdict) -> None:
    """A warning stays a warning of its own."""
    linked = link_roots(
        [
            Finding(check="identity", verdict=Verdict.FAIL, code=Code.WRONG_SERIAL),
            Finding(check="gpu_ecc", verdict=verdict, code=Code.GPU_ECC_UNCORRECTABLE, subject="gpu 0"),
        ]
    )
    assert linked[1].root == ""
