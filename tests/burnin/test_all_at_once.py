"""all_at_once: each load's own words under one name, no rates, and nothing unmeasured passes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from clusterctl.fleet.finding import Finding, Origin, Verdict
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl_burnin.loads.single_node.all_at_once import LOAD
from clusterctl_burnin.node.programs import adapter_load
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.burnin import gpu_load_kit
from tests.burnin.kit import LIMITS, SKU, START, expected, healthy_text
from tests.burnin.solo_kit import counted, drives, fio, loaded, package

TABLE = (
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 8388608    20000            0.00               {:.2f}               0.003007\n"
)


def adapters(*names: str, trouble: str = "", rates: Sequence[float] = (), **bad: tuple[int, str]) -> dict[str, object]:
    """What `adapter-load` prints; the clients of `bad` ended with this code and message, others wrote 201 Gb/s."""
    well: dict[str, object] = {"code": 0, "output": "", "error": ""}
    wrote = dict(zip(names, rates, strict=False))

    def client(name: str) -> dict[str, object]:
        code, error = bad.get(name, (0, ""))
        return {"code": code, "output": "" if code else TABLE.format(wrote.get(name, 201.0)), "error": error}

    return {
        "version": 1,
        "trouble": trouble,
        "adapters": [{"name": name, "server": well, "client": client(name)} for name in names],
    }


POWER_BRAKE = "0x0000000000000088"
FOUR_GPUS = replace(SKU, gpu_count=4, data_drive_count=1)
WELL = {
    "gpu_load": gpu_load_kit.document(map(gpu_load_kit.gpu, range(4))),
    "stress_ng": json.dumps(loaded(package(0), package(1))),
    "nvme_read": json.dumps(drives(nvme0n1=fio("fio_read"))),
    "adapter_load": json.dumps(adapters("mlx5_0", "mlx5_1")),
}


def findings(sku: Sku | None = None, **message: str) -> tuple[Finding, ...]:
    """What the load makes of its parts' documents; those that are not named are well."""
    check, documents = LOAD.check(LIMITS), {**WELL, **message}
    results = {
        probe.name: ProbeResult(
            probe.name, probe.argv, Status.OK, 0, documents[probe.name.removeprefix("all_at_once.")], "", START, 60.0
        )
        for probe in check.probes
    }
    readings = Readings("node001", "boot-1", Origin.REAL, START, START, results)
    return check.findings(readings, expected(sku=sku or FOUR_GPUS))


def gpus(**changes: Any) -> str:
    return gpu_load_kit.document(gpu_load_kit.gpu(index, **changes) for index in range(4))


def test_all_well_is_one_finding() -> None:
    """It names what ran."""
    (found,) = findings()
    assert (found.check, found.verdict) == ("all_at_once", Verdict.PASS)
    assert found.cause == "gpu_load, stress_ng, nvme_read, adapter_load ran at the same time without a fault"


def test_its_probes_are_its_own_and_run_together() -> None:
    """They are kept apart from those of the loads alone; GPUs work for as long as the others."""
    probes = {probe.name: probe.argv for probe in LOAD.probes(LIMITS, 120)}
    assert set(probes) == {f"all_at_once.{name}" for name in ("gpu_load", "stress_ng", "nvme_read", "adapter_load")}
    assert probes["all_at_once.adapter_load"][1] == "120"
    assert probes["all_at_once.stress_ng"][1] == "120"
    assert probes["all_at_once.gpu_load"][probes["all_at_once.gpu_load"].index("--seconds") + 1] == "60"


def test_power_that_does_not_reach_is_the_nodes() -> None:
    """One finding for all GPUs that the server braked, with the power supplies to look at."""
    (found,) = findings(gpu_load=gpus(reasons={POWER_BRAKE: 12}, gemm_bf16_tflops=380.0))
    assert (found.verdict, found.subject, found.measured) == (Verdict.FAIL, "node", Quantity(4, "GPUs"))
    assert found.cause.startswith("with all other work, gpu_load: the server's power brake")
    assert "power supplies" in found.remedy


@pytest.mark.parametrize(
    ("document", "verdict", "subject"),
    [
        (adapters("mlx5_0", "mlx5_1", mlx5_1=(1, "Completion with error at client")), Verdict.FAIL, "mlx5_1"),
        (adapters("mlx5_0", "mlx5_1", mlx5_0=(124, "it did not answer")), Verdict.FAIL, "mlx5_0"),
        (adapters("mlx5_0", mlx5_0=(127, "no such file")), Verdict.INCONCLUSIVE, "node"),
        (adapters(trouble="ibstat: can't open"), Verdict.INCONCLUSIVE, "node"),
    ],
)
def test_an_adapter_that_fails_while_all_else_works(
    document: dict[str, object], verdict: Verdict, subject: str
) -> None:
    """It is named; without perftest or a list of adapters nothing of them passes."""
    (found,) = findings(adapter_load=json.dumps(document))
    assert (found.verdict, found.subject) == (verdict, subject)
    assert found.cause.startswith("with all other work, adapter_load: ")


def test_an_adapter_far_behind_the_fastest_is_named() -> None:
    """At a quarter of the fastest of its node it passes; below it fails, and one more run has to show it again."""
    (even,) = findings(adapter_load=json.dumps(adapters("mlx5_0", "mlx5_1", "mlx5_2", rates=(200.0, 52.0, 180.0))))
    assert even.verdict is Verdict.PASS
    (found,) = findings(adapter_load=json.dumps(adapters("mlx5_0", "mlx5_1", "mlx5_2", rates=(200.0, 49.0, 180.0))))
    assert (found.verdict, found.subject, found.deterministic) == (Verdict.FAIL, "mlx5_1", False)
    assert (found.measured, found.expected) == (Quantity(49.0, "Gb/s"), at_least(50.0, "Gb/s"))
    assert "slower than the fastest of its node (200 Gb/s)" in found.cause


def test_an_adapter_without_a_rate_is_not_healthy() -> None:
    """Perftest ended well and printed no table: INCONCLUSIVE."""
    document = adapters("mlx5_0")
    document["adapters"] = [
        {"name": "mlx5_0", **{end: {"code": 0, "output": "", "error": ""} for end in ("server", "client")}}
    ]
    (found,) = findings(adapter_load=json.dumps(document))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_adapters_without_an_active_port_are_not_loaded() -> None:
    """In InfiniBand mode nothing was measured (the cause is that of hca_link); in Ethernet mode it is as it should be."""
    (found,) = findings(adapter_load=json.dumps(adapters()))
    assert found.verdict is Verdict.INCONCLUSIVE
    (found,) = findings(replace(FOUR_GPUS, hca_link_layer="Ethernet"), adapter_load=json.dumps(adapters()))
    assert found.verdict is Verdict.PASS
    assert "adapter_load" not in found.cause


def test_which_adapters_are_loaded() -> None:
    """By ibstat, recorded on 8 x H100: those with an active InfiniBand port."""
    listing = healthy_text("ibstat")
    assert adapter_load.active(listing) == ["mlx5_0", "mlx5_1"]
    assert adapter_load.active(listing.replace("State: Active", "State: Down", 1)) == ["mlx5_1"]
    assert adapter_load.active(listing.replace("Link layer: InfiniBand", "Link layer: Ethernet", 1)) == ["mlx5_1"]


def test_a_rate_is_no_fault_here() -> None:
    """The loads take from each other: GPUs may be slow."""
    (found,) = findings(gpu_load=gpus(gemm_bf16_tflops=300.0, host_to_device_gb_per_s=9.0))
    assert found.verdict is Verdict.PASS


def test_wrong_results_are_reported_with_their_evidence() -> None:
    """By the load that had them; the evidence is that load's output alone."""
    (found,) = findings(stress_ng=json.dumps(loaded(package(0), package(1, "stress_ng_wrong", 2))))
    (alone,) = findings()
    assert (found.subject, found.verdict, len(found.evidence)) == ("cpu 1", Verdict.FAIL, 1)
    assert len(alone.evidence) == 4


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
