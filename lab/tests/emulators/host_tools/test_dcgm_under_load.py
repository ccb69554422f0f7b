"""Errors that DCGM alone counts during a load: what the stand-in for dcgm-exporter reports, and what the watch finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.registry import CHECKS, NODE_LOADS
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.emulators.host_tools.offline_kit import expected
from lab.tests.emulators.host_tools.tools_kit import ToolBox
from tests.burnin.kit import readings, result
from tests.lab_data import lab_limits

MACHINE = build(3, Layout(IPv4Network("10.88.0.0/16")), "unused")
LOAD_S = 60


def reading(box: ToolBox, after: float) -> Readings:
    """Return what the watch reads of the host so many seconds after its first reading."""
    texts = {"dcgm_metrics": ("dcgm-metrics", "8"), "nvidia_smi": ("nvidia-smi", "-q")}
    found = {name: result(name, box.run(*argv).stdout) for name, argv in texts.items()}
    moved = {name: replace(one, started=one.started + timedelta(seconds=after)) for name, one in found.items()}
    return readings(**moved)


def found_during_a_load(machine: Machine, folder: Path) -> tuple[Finding, ...]:
    box = ToolBox(folder, machine)
    before = reading(box, 0)
    (load,) = NODE_LOADS["gpu_load"].check(lab_limits()).probes
    assert box.run(*load.argv).returncode == 0
    return CHECKS["dcgm_exporter"].found_during(before, reading(box, LOAD_S), expected(machine))


def test_crc_errors_that_only_dcgm_counts_are_found_on_their_gpu(tmp_path: Path) -> None:
    (finding,) = found_during_a_load(find("nvlink-crc-under-load").apply(MACHINE, "gpu5"), tmp_path)
    assert (finding.verdict, finding.subject, finding.code) == (Verdict.FAIL, "gpu 5", Code.NVLINK_ERRORS)
    assert "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL" in finding.cause


def test_a_load_of_healthy_gpus_adds_nothing(tmp_path: Path) -> None:
    assert found_during_a_load(MACHINE, tmp_path) == ()
