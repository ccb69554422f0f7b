"""A host whose ZFS pool has given a drive up: what its stand-ins print, and what the check makes of it."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl_burnin.registry import CHECKS
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.emulators.host_tools.tools_kit import ToolBox
from tests.burnin.kit import expected, readings, result

MACHINE = build(3, Layout(IPv4Network("10.88.0.0/16")), "unused")


def judged(machine: Machine, folder: Path) -> tuple[Finding, ...]:
    status = ToolBox(folder, machine).run("zpool", "status", "-p").stdout
    return CHECKS["zpool"].findings(readings(zpool_status=result("zpool_status", status)), expected())


def test_the_drive_that_the_pool_gave_up_is_found_and_no_other(tmp_path: Path) -> None:
    """By its serial, among the machine's own data drives; the pool itself still takes data."""
    data = [drive for drive in MACHINE.drives if not drive.boot]
    found = judged(find("pool-degraded").apply(MACHINE, ""), tmp_path)
    bad = [one for one in found if one.verdict is not Verdict.PASS]
    assert [one.subject.endswith(data[-1].serial) for one in bad] == [True]
    assert bad[0].measured == "FAULTED"


def test_a_host_without_the_fault_has_no_pool(tmp_path: Path) -> None:
    """It prints what zpool prints then; the check holds only hosts with the role's record to it."""
    assert not MACHINE.system.pool_degraded
    box = ToolBox(tmp_path, replace(MACHINE, drives=MACHINE.drives[:1]))
    assert box.run("zpool", "status", "-p").stdout == "no pools available\n"
