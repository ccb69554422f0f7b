"""What the burn-in would read on a lab host, and how it would judge it, without a host: the stand-ins run here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterctl.fleet.finding import Finding, Origin
from clusterctl.fleet.node import Gpu, Guid, Hca, Inventory, Serial
from clusterctl_burnin.check import Expected
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.node.bundle import AGAIN
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import judge
from clusterctl_lab.emulators.host_tools import CONTAINER, EXPORTER, GPU_IMAGE, machine_files, programs
from clusterctl_lab.machine import Machine
from tests.burnin.kit import healthy_text
from tests.fleet.skus import H100_X8
from tests.lab_data import lab_limits
from tests.paths import ROOT

DRIVER = "550.127.08"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WATCHED_S = "0.4"
"""For how long port counters are watched here; the check's own five seconds are for real links."""
OF_THE_HOST = frozenset({"docker", "findmnt", "zpool"})
"""Stand-ins that need a host around them: their probes answer as on a healthy node."""
OF_TOOLS = frozenset(
    {"clock-sync", "container-gpus", "containers", "drive-smart", "nvme-health", "port-counters", "transceivers"}
)
"""Built-in programs that ask tools which have stand-ins."""
STAND_INS = (frozenset(name.replace("_", "-") for name in programs()) | OF_TOOLS) - OF_THE_HOST
REQUIREMENTS = HostRequirements(gpu_image=GPU_IMAGE, containers=(CONTAINER,), dcgm_exporter=EXPORTER)
SOLO = tuple(load.check(lab_limits()) for load in shipped_suite().solo)
PROBES = tuple({probe.name: probe for check in (*CHECKS.values(), *SOLO) for probe in check.probes}.values())


def findings(machine: Machine, folder: Path) -> tuple[Finding, ...]:
    """The whole suite's judgement of the machine, and that of every load of one node."""
    return judge((*shipped_suite().checks, *SOLO), readings(machine, folder), expected(machine)).findings


def roce_findings(machine: Machine, folder: Path) -> tuple[Finding, ...]:
    """Return the same judgement of a machine whose SKU has adapters in Ethernet mode."""
    wanted = expected(machine)
    roce = replace(wanted, sku=replace(wanted.sku, hca_link_layer="Ethernet"))
    return judge((*shipped_suite().checks, *SOLO), readings(machine, folder), roce).findings


def readings(machine: Machine, folder: Path) -> Readings:
    """What no stand-in answers is healthy: those things are the host's own."""
    ours = [probe for probe in PROBES if probe.argv[0] in STAND_INS]
    twice = [probe for probe in ours if probe.again_after]
    message = iter(_answers(machine, folder, [_argv(probe) for probe in (*twice, *ours, *twice)]))
    first = {probe.name: next(message)[1] for probe in twice}
    results = {probe.name: next(message) for probe in ours}
    for probe in twice:
        code, out, err = next(message)
        results[probe.name] = (code, f"{first[probe.name]}{AGAIN.format(5.0)}\n{out}", err)
    probes = {}
    for probe in PROBES:
        own = healthy_text(probe.name).replace("node001", machine.name) if probe not in ours else ""
        code, out, err = results.get(probe.name, (0, own, ""))
        probes[probe.name] = ProbeResult(probe.name, probe.argv, Status.OK, code, out, err, START, 0.1)
    return Readings(machine.name, "boot-1", Origin.SIMULATED, START, START + timedelta(seconds=1), probes)


def loaded(machine: Machine, folder: Path, load: NodeLoad) -> tuple[Finding, ...]:
    """Return what a load of one node reports, with stand-ins for all of the node's tools."""
    check = load.check(lab_limits())
    message = _answers(machine, folder, [probe.argv for probe in check.probes])
    results = {
        probe.name: ProbeResult(probe.name, probe.argv, Status.OK, code, out, err, START, 0.1)
        for probe, (code, out, err) in zip(check.probes, message, strict=True)
    }
    reported = Readings(machine.name, "boot-1", Origin.SIMULATED, START, START + timedelta(seconds=1), results)
    return check.findings(reported, expected(machine))


def expected(machine: Machine) -> Expected:
    """Return what the site expects of the machine, and what its BMC reported."""
    inventory = Inventory(
        machine.manufacturer,
        machine.model,
        Serial(machine.serial),
        gpus=tuple(Gpu(f"GPU.{g.index}", g.model, Serial(g.serial), g.pci[4:].lower()) for g in machine.gpus),
        hcas=tuple(Hca(h.name, h.model, Serial(h.serial), Guid(h.guid)) for h in machine.hcas),
    )
    return Expected(
        name=machine.name,
        serial=Serial(machine.serial),
        sku=H100_X8,
        limits=lab_limits(),
        sent=START,
        received=START + timedelta(seconds=1),
        driver_version=DRIVER,
        inventory=inventory,
    )


def _argv(probe: Probe) -> tuple[str, ...]:
    watches = probe.argv[0] in ("port-counters", "ethernet-links")
    return (probe.argv[0], WATCHED_S) if watches else probe.argv


def _answers(machine: Machine, folder: Path, commands: list[tuple[str, ...]]) -> list[tuple[int, str, str]]:
    ((content, _),) = machine_files(machine).values()
    facts, driver, root = folder / f"{machine.name}.json", folder / "driver", folder / "root-disk"
    root.write_text(f"{machine.drives[0].serial}\n")
    facts.write_bytes(content)
    driver.write_text(f"{DRIVER}\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "CLUSTERCTL_LAB_FACTS": str(facts),
        "CLUSTERCTL_LAB_DRIVER": str(driver),
        "CLUSTERCTL_LAB_PROCESSES": str(folder / "processes"),  # none: hosts of a lab may work on this machine now
        "CLUSTERCTL_LAB_ROOT_DISK": str(root),
        "CLUSTERCTL_LAB_DOCKER": str(folder),
        "CLUSTERCTL_LAB_PACKAGED_DOCKER": str(folder / "not-there"),
        "CLUSTERCTL_REQUIREMENTS": json.dumps(REQUIREMENTS.data()),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "lab.tests.emulators.host_tools.tool_runner"],
        env=environment,
        cwd=ROOT,
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    return [(code, out, err) for code, out, err in json.loads(ran.stdout)]
