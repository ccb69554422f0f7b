"""Healthy machines are never exactly alike, and nothing is found on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path
from random import Random

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl_burnin.checks.cpu_frequency import CPU_CLOCK
from clusterctl_burnin.checks.cpu_share import CPU_SHARE
from clusterctl_burnin.checks.gpu_idle import GPU_MEMORY_TEMPERATURE, GPU_TEMPERATURE
from clusterctl_burnin.fleet_stats import Sample, compare
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.variation import healthy
from lab.tests.emulators.host_tools.offline_kit import findings

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))
QUICK = (0, 1, 2)
ALL = range(20)
MACHINES = 3
FLEET = 64


def machines(seed: int, count: int = MACHINES) -> list[Machine]:
    return [healthy(build(index, LAYOUT, "unused"), seed) for index in range(1, count + 1)]


def false_findings(seed: int, folder: Path, count: int = MACHINES) -> list[Finding]:
    """All that is neither PASS nor without application: even a warning would be a false one here."""
    found = [finding for machine in machines(seed, count) for finding in findings(machine, folder)]
    assert found
    healthy_ones = (Verdict.PASS, Verdict.NOT_APPLICABLE)
    return [finding for finding in found if finding.verdict not in healthy_ones]


@pytest.mark.parametrize("seed", QUICK)
def test_nothing_is_found_on_healthy_machines(seed: int, tmp_path: Path) -> None:
    """Every check of the suite passes, whatever the healthy values are."""
    assert false_findings(seed, tmp_path, 1) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", ALL)
def test_nothing_is_found_with_any_seed(seed: int, tmp_path: Path) -> None:
    """Twenty seeds, several machines each."""
    assert false_findings(seed, tmp_path) == []


@pytest.mark.parametrize("seed", ALL)
def test_no_healthy_fleet_has_an_outlier(seed: int) -> None:
    """Sixty-four machines, compared with each other by all limits that compare: no machine fails, and no heat or
    clock warns. A share of processors cannot exceed 100 %, so that its noise has one side only, the bad
    one: about one such fleet in twenty has a node that is warned of, as too little to matter.
    """
    compared = compare(sample for machine in machines(seed, FLEET) for sample in samples_of(machine))
    assert compared.judged == FLEET * (8 + 8 + 2 + 1)
    assert not compared.unjudged
    warned = [finding for found in compared.findings.values() for finding in found]
    assert {finding.check for finding in warned} <= {f"fleet_{CPU_SHARE.name}"}
    assert all(finding.verdict is Verdict.WARN and "too little to matter" in finding.cause for finding in warned)


def samples_of(machine: Machine) -> Iterator[Sample]:
    """As its probes would report it; the share of its processors varies as on hosts without other load."""
    for gpu in machine.gpus:
        yield Sample(machine.name, GPU_TEMPERATURE, gpu.temperature_c, "h100", f"gpu {gpu.index}")
        yield Sample(machine.name, GPU_MEMORY_TEMPERATURE, gpu.memory_temperature_c, "h100", f"gpu {gpu.index}")
    drawn = Random(f"{machine.seed}:{machine.name}")
    for package in range(2):
        yield Sample(machine.name, CPU_CLOCK, machine.busy_mhz - drawn.randint(0, 25), "h100", f"cpu {package}")
    yield Sample(machine.name, CPU_SHARE, round(100 - abs(drawn.gauss(0, 0.3)), 1), "h100")


def test_the_same_seed_gives_the_same_machine() -> None:
    """A lab is reproducible; another seed, and another machine, are drawn again."""
    assert machines(7) == machines(7)
    first, other = machines(7)[0], machines(8)[0]
    assert first.gpus != other.gpus
    assert [g.temperature_c for g in first.gpus] != [g.temperature_c for g in machines(7)[1].gpus]


def test_noise_changes_measured_values_only() -> None:
    """Names, serials, addresses, cables and what is broken stay as they were delivered."""
    plain = build(1, LAYOUT, "unused")
    noisy = healthy(plain, 3)
    assert replace(noisy, gpus=(), hcas=(), inlet_c=0, busy_mhz=0, kernel_log=(), seed=0) == replace(
        plain, gpus=(), hcas=(), inlet_c=0, busy_mhz=0, kernel_log=(), seed=0
    )
    assert [(g.serial, g.uuid, g.pci, g.pcie_width, g.xids) for g in noisy.gpus] == [
        (g.serial, g.uuid, g.pci, g.pcie_width, g.xids) for g in plain.gpus
    ]
    assert [(h.serial, h.cable, h.firmware, h.rate_gbps) for h in noisy.hcas] == [
        (h.serial, h.cable, h.firmware, h.rate_gbps) for h in plain.hcas
    ]


def test_every_value_has_a_spread() -> None:
    """Over a hundred machines each drawn value takes several values: a constant would test nothing."""
    drawn = machines(0, 100)
    gpus, hcas = [g for m in drawn for g in m.gpus], [h for m in drawn for h in m.hcas]
    spreads = {
        name: len(Counter(values))
        for name, values in {
            "temperature": [g.temperature_c for g in gpus],
            "memory temperature": [g.memory_temperature_c for g in gpus],
            "memory": [g.memory_used_mib for g in gpus],
            "ecc": [g.correctable_ecc for g in gpus],
            "rows": [g.remapped_rows for g in gpus],
            "replays": [g.pcie_replays for g in gpus],
            "symbols": [h.errors.symbol_per_hour for h in hcas],
            "downs": [h.errors.link_downed for h in hcas],
            "hca": [h.temperature_c for h in hcas],
            "inlet": [m.inlet_c for m in drawn],
            "clock": [m.busy_mhz for m in drawn],
            "log": [m.kernel_log for m in drawn],
        }.items()
    }
    assert min(spreads.values()) >= 2, spreads
