"""all_at_once: each load's own words under one name, no rates, and nothing unmeasured passes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from clusterctl.fleet.finding import Finding, Origin, Verdict
from clusterctl.fleet.quantity import Quantity
from clusterctl_burnin.loads.single_node.all_at_once import LOAD
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.burnin import gpu_load_kit
from tests.burnin.kit import LIMITS, SKU, START, expected
from tests.burnin.solo_kit import counted, drives, fio, loaded, package

POWER_BRAKE = "0x0000000000000088"
FOUR_GPUS = replace(SKU, gpu_count=4, data_drive_count=1)
WELL = {
    "gpu_load": gpu_load_kit.document(map(gpu_load_kit.gpu, range(4))),
    "stress_ng": json.dumps(loaded(package(0), package(1))),
    "nvme_read": json.dumps(drives(nvme0n1=fio("fio_read"))),
}


def findings(**message: str) -> tuple[Finding, ...]:
    """What the load makes of its parts' documents; those that are not named are well."""
    check, documents = LOAD.check(LIMITS), {**WELL, **message}
    results = {
        probe.name: ProbeResult(
            probe.name, probe.argv, Status.OK, 0, documents[probe.name.removeprefix("all_at_once.")], "", START, 60.0
        )
        for probe in check.probes
    }
    readings = Readings("node001", "boot-1", Origin.REAL, START, START, results)
    return check.findings(readings, expected(sku=FOUR_GPUS))


def gpus(**changes: Any) -> str:
    return gpu_load_kit.document(gpu_load_kit.gpu(index, **changes) for index in range(4))


def test_all_well_is_one_finding() -> None:
    """It names what ran."""
    (found,) = findings()
    assert (found.check, found.verdict) == ("all_at_once", Verdict.PASS)
    assert found.cause == "gpu_load, stress_ng, nvme_read ran at the same time without a fault"


def test_its_probes_are_its_own_and_run_together() -> None:
    """They are kept apart from those of the loads alone; GPUs work for as long as the others."""
    probes = {probe.name: probe.argv for probe in LOAD.probes(LIMITS, 120)}
    assert set(probes) == {"all_at_once.gpu_load", "all_at_once.stress_ng", "all_at_once.nvme_read"}
    assert probes["all_at_once.stress_ng"][1] == "120"
    assert probes["all_at_once.gpu_load"][probes["all_at_once.gpu_load"].index("--seconds") + 1] == "60"


def test_power_that_does_not_reach_is_the_nodes() -> None:
    """One finding for all GPUs that the server braked, with the power supplies to look at."""
    (found,) = findings(gpu_load=gpus(reasons={POWER_BRAKE: 12}, gemm_bf16_tflops=380.0))
    assert (found.verdict, found.subject, found.measured) == (Verdict.FAIL, "node", Quantity(4, "GPUs"))
    assert found.cause.startswith("with all other work, gpu_load: the server's power brake")
    assert "power supplies" in found.remedy


def test_a_rate_is_no_fault_here() -> None:
    """The loads take from each other: GPUs may be slow."""
    (found,) = findings(gpu_load=gpus(gemm_bf16_tflops=300.0, host_to_device_gb_per_s=9.0))
    assert found.verdict is Verdict.PASS


def test_wrong_results_are_reported_with_their_evidence() -> None:
    """By the load that had them; the evidence is that load's output alone."""
    (found,) = findings(stress_ng=json.dumps(loaded(package(0), package(1, "stress_ng_wrong", 2))))
    (alone,) = findings()
    assert (found.subject, found.verdict, len(found.evidence)) == ("cpu 1", Verdict.FAIL, 1)
    assert len(alone.evidence) == 3


def test_a_warning_does_not_hide_that_the_rest_passed() -> None:
    """Heat warns, as it does alone."""
    hot = json.dumps(loaded(package(0), package(1), after=counted(throttled=7)))
    assert [found.verdict for found in findings(stress_ng=hot)] == [Verdict.WARN, Verdict.PASS]


@pytest.mark.parametrize("load", sorted(WELL))
def test_a_part_that_did_not_answer_is_inconclusive(load: str) -> None:
    """Then it is unknown whether all of it ran at the same time."""
    (found,) = findings(**{load: "nothing"})
    assert found.verdict is Verdict.INCONCLUSIVE
    assert f"{load}: " in found.cause
