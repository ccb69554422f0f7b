"""gpu_load: wrong results, throttling, slowness, silence: each is reported for its GPU, and nothing unmeasured passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.nvidia.gpu_load import GpuLoadEnd, parse_gpu_load
from clusterctl_burnin.loads.gpu.throttle_reasons import faulty_reasons
from clusterctl_burnin.loads.single_node.gpu_load import LOAD
from clusterctl_burnin.probe import Status
from tests.burnin.gpu_load_kit import SERIALS, answer, document, gpu, judged
from tests.burnin.kit import LIMITS, expected

RECORDED = Path(__file__).parent / "data" / "gpu_load" / "torch-2.13.0-cpu.json"
THERMAL, BRAKE, SW_THERMAL, SLOWDOWN, CAP = "0x48", "0x88", "0x20", "0x8", "0x4"


def broken(**changes: Any) -> tuple[Finding, ...]:
    """Four GPUs, the third of them with these changes."""
    return judged(document(gpu(index, **(changes if index == 2 else {})) for index in range(4)))


def test_four_healthy_gpus_pass_at_their_power_limit() -> None:
    """One finding for all, with the slowest product; power cap and idleness are no faults."""
    (finding,) = broken()
    assert (finding.verdict, finding.measured) == (Verdict.PASS, Quantity(760, "TFLOP/s"))
    assert finding.limits == LIMITS.digest


@pytest.mark.parametrize(
    ("changes", "cause", "measured", "remedy"),
    [
        ({"mismatches": 1}, "computes wrong results: it repeated a product", "1", "replace it"),
        ({"digest": "cd" * 32}, "differs from the node's other GPUs", "cdcdcdcdcdcd", "replace it"),
        ({"reasons": {THERMAL: 7}}, "thermal brake halved its clock, or more, at 66", "0x40 in 7 of 12", "heat sink"),
        ({"reasons": {BRAKE: 2}}, "power brake", "0x80 in 2 of 12", "power supplies"),
        ({"reasons": {SW_THERMAL: 1}}, "because of its temperature", "0x20 in 1 of 12", "heat sink"),
        ({"reasons": {SLOWDOWN: 2}}, "for heat or power", "0x8 in 2 of 12", "heat sink"),
        ({"memory_temperature_max_c": 96.0}, "memory is too hot", "96", "heat sink"),
        ({"gemm_bf16_tflops": 599.0}, "BF16 product is slow", "599", "clocks"),
        ({"gemm_bf16_tflops": 680.0}, "more than 10 % slower than that of the node's fastest (763)", "680", "clocks"),
        ({"gemm_fp8_tflops": 1000.0}, "FP8 product is slow", "1000", "clocks"),
        ({"memory_gb_per_s": 2500.0}, "copy inside its memory is slow", "2500", "clocks"),
        ({"host_to_device_gb_per_s": 27.0}, "copy from the host is slow", "27", "PCIe link"),
        ({"device_to_host_gb_per_s": 25.0}, "copy to the host is slow", "25", "PCIe link"),
        ({"peer_gb_per_s": 43.0}, "copy to its neighbour is slow", "43", "NVLinks"),
        ({"ended": "hung", "phase": "repeats"}, "hung under load: it got no further than repeats", "repeats", "Xid"),
        (
            {"ended": "failed", "error": "AcceleratorError: CUDA error: unspecified launch failure"},
            "CUDA error",
            "",
            "",
        ),
        (
            {"ended": "failed", "exit_code": -11, "phase": "fp8"},
            "without a message in fp8, exit code -11",
            "fp8",
            "Xid",
        ),
    ],
)
def test_a_bad_gpu_fails_by_name(changes: dict[str, Any], cause: str, measured: str, remedy: str) -> None:
    """Its serial number, and where it is found; a second run confirms before anything is quarantined."""
    (finding,) = broken(**changes)
    assert (finding.verdict, finding.subject, finding.serial) == (Verdict.FAIL, "gpu 2", SERIALS[2])
    assert cause in finding.cause
    assert "0000:1d:00.0, GPU-2" in finding.cause
    assert measured in str(finding.measured)
    assert remedy in finding.remedy
    assert not finding.deterministic


@pytest.mark.parametrize(
    ("changes", "cause", "remedy"),
    [
        (
            {"ended": "failed", "began": False, "phase": "import", "error": "No module named 'torch'"},
            "torch",
            "the role pytorch",
        ),
        ({"ended": "hung", "began": False, "phase": "start"}, "got no further than start", "what else"),
        ({"ended": "failed", "error": "CUDA out of memory", "out_of_memory": True}, "out of memory", "what else uses"),
        (
            {"others": ["/tmp/bad (process 5695)"], "gemm_bf16_tflops": 290.2},
            "/tmp/bad (process 5695)",
            "drain the node",
        ),
        ({"ended": "failed", "exit_code": -9, "phase": "bf16"}, "killed from outside in bf16", "OOM killer"),
        ({"gemm_bf16_tflops": None}, "BF16 product was not measured", ""),
        ({"memory_gb_per_s": None}, "copy inside its memory was not measured", ""),
        ({"peer_gb_per_s": None, "not_measured": {"peer": "no direct access"}}, "no direct access", "NVLinks"),
        ({"repeats": 0}, "no product was repeated", "again"),
        ({"samples": 0, "reasons": {}}, "nvidia-smi did not observe the GPU under load", "nvidia-smi"),
    ],
)
def test_what_was_not_measured_is_inconclusive(changes: dict[str, Any], cause: str, remedy: str) -> None:
    """Of that GPU alone, with the reason and what to do."""
    (finding,) = broken(**changes)
    assert (finding.verdict, finding.subject) == (Verdict.INCONCLUSIVE, "gpu 2")
    assert cause in finding.cause
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("recorded", "verdict", "cause"),
    [
        ("h100-torch-2.11.0", Verdict.PASS, "none was throttled"),
        ("h100-stopped-process", Verdict.INCONCLUSIVE, "got no further than bf16"),
        ("h100-in-use", Verdict.INCONCLUSIVE, "/tmp/bad (process 662)"),
    ],
)
def test_one_real_h100(recorded: str, verdict: Verdict, cause: str) -> None:
    """The program's output on one H100 80GB HBM3 at its power limit: healthy, with a process stopped by SIGSTOP, and with a
    second program on it (290 instead of 686 TFLOP/s).
    """
    (finding,) = judged(RECORDED.with_name(f"{recorded}.json").read_text(), gpu_count=1)
    assert finding.verdict is verdict
    assert cause in finding.cause


def test_gpus_that_the_server_brakes_together_are_one_finding() -> None:
    """Of what feeds them; a GPU that computes wrong results is reported as well."""
    braked = {"reasons": {BRAKE: 2}, "gemm_bf16_tflops": 380.0}
    found = judged(document([gpu(0, **braked), gpu(1, **braked, mismatches=3), gpu(2), gpu(3)]))
    assert [(one.subject, one.verdict) for one in found] == [("node", Verdict.FAIL), ("gpu 1", Verdict.FAIL)]
    assert "power supplies" in found[0].remedy


def test_a_wrong_result_outranks_a_slow_one() -> None:
    """One finding a GPU: its worst."""
    (finding,) = broken(mismatches=3, gemm_bf16_tflops=100.0, reasons={THERMAL: 9})
    assert "wrong results" in finding.cause


def test_two_gpus_that_disagree_blame_neither() -> None:
    """Without a majority the node is bad, and no GPU of it."""
    (finding,) = judged(document([gpu(0), gpu(1, digest="cd" * 32)]), gpu_count=2)
    assert (finding.verdict, finding.subject) == (Verdict.FAIL, "node")
    assert "no majority" in finding.cause


def test_gpus_of_two_models_are_not_compared_bit_by_bit() -> None:
    """CuBLAS promises equal bits on equal chips only."""
    (finding,) = judged(document([gpu(0), gpu(1, digest="cd" * 32, name="NVIDIA H200")]), gpu_count=2)
    assert finding.verdict is Verdict.PASS


def test_when_all_hang_none_is_blamed() -> None:
    """A hanging driver reports nothing about any GPU."""
    found = judged(document(gpu(index, ended="hung", phase="bf16") for index in range(4)))
    assert {finding.verdict for finding in found} == {Verdict.INCONCLUSIVE}


def test_missing_fp8_is_a_warning_with_its_reason() -> None:
    """The rest was measured; the findings name what was not."""
    why = {"fp8": "RuntimeError: torch 1.13.1 knows no FP8 product"}
    (finding,) = judged(document(gpu(i, gemm_fp8_tflops=None, not_measured=why) for i in range(4)))
    assert finding.verdict is Verdict.WARN
    assert "torch 1.13.1 knows no FP8 product" in finding.cause


def test_an_absent_gpu_is_not_passed_over() -> None:
    """Fewer than the SKU has: the present ones prove nothing about the others."""
    (finding,) = judged(document(gpu(index) for index in range(3)))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "3 of 4 GPUs" in finding.cause


@pytest.mark.parametrize(
    ("trouble", "absent", "remedy"),
    [
        ("there is no Python at /opt/pytorch/bin/python3", True, "the role pytorch to the node (pytorch_version"),
        ("nvidia-smi ended with 9", False, "driver"),
    ],
)
def test_without_pytorch_or_driver_the_remedy_names_the_missing_one(trouble: str, absent: bool, remedy: str) -> None:
    """Nothing was begun: inconclusive for the node."""
    (finding,) = judged(document([], trouble=trouble, python_absent=absent))
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert trouble in finding.cause
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("", ""),
        ("{}", "version"),
        (document([gpu(0, samples="many")]), "gpus.0.samples"),
        (document([gpu(0, gemm_bf16_tflops=-1)]), "gpus.0.gemm_bf16_tflops"),
        (document([gpu(0, reasons={"Not Active": 1})]), "gpu 0"),
    ],
)
def test_what_is_not_understood_is_named(text: str, field: str) -> None:
    """Never a default: the field stands in the error, and the load is inconclusive."""
    with pytest.raises(ParseError) as caught:
        parse_gpu_load(text)
    assert f"gpu-load {field}".strip() in caught.value.where
    assert [finding.verdict for finding in judged(text)] == [Verdict.INCONCLUSIVE]


def test_a_hardware_slowdown_seen_once_is_no_fault() -> None:
    """NVIDIA: the reason may be reported while a clock changes."""
    assert faulty_reasons({0x8: 1, 0x4: 20}) == ()
    assert [reason.mask for reason in faulty_reasons({0x8 | 0x40: 1})] == [0x40]


def test_the_recorded_run_on_processors_is_read_and_never_passes() -> None:
    """Real PyTorch 2.13.0, two processes: nothing watched them and they have no host to copy to."""
    load = parse_gpu_load(RECORDED.read_text())
    assert [(one.ended, one.repeats > 0, one.mismatches) for one in load.gpus] == [(GpuLoadEnd.OK, True, 0)] * 2
    assert load.gpus[0].digest == load.gpus[1].digest != ""
    found = judged(RECORDED.read_text(), gpu_count=2)
    assert [finding.verdict for finding in found] == [Verdict.FAIL] * 2
    assert "BF16 product is slow" in found[0].cause


def test_a_program_that_had_to_be_killed_is_inconclusive() -> None:
    """Its own time-out comes before ours; the finding has both in seconds."""
    found = LOAD.check(LIMITS).findings(answer("", status=Status.TIMEOUT), expected())
    assert [finding.verdict for finding in found] == [Verdict.INCONCLUSIVE]


@pytest.mark.parametrize(("seconds", "reported", "limit"), [(None, "10", "330"), (60, "60", "480")])
def test_the_suite_sets_the_duration(seconds: int | None, reported: str, limit: str) -> None:
    """The program gets a limit of its own that is shorter than the probe's."""
    (probe,) = LOAD.probes(LIMITS, seconds)
    words = dict(zip(probe.argv[1::2], probe.argv[2::2], strict=True))
    assert (words["--seconds"], words["--limit"]) == (reported, limit)
    assert words["--python"] == LIMITS.methods.gpu_load.python
    assert probe.timeout > float(words["--limit"])


def test_figures_for_the_fleet() -> None:
    """Per GPU: product, memory, temperature under load, by serial number."""
    found = list(LOAD.samples("node001", "xe9680", answer(document([gpu(0), gpu(1, memory_gb_per_s=None)]))))
    reported = {(one.metric.name, one.subject): (one.value, one.serial) for one in found}
    assert reported["gpu_gemm_bf16", "gpu 1"] == (761.0, SERIALS[1])
    assert reported["gpu_load_temperature", "gpu 0"] == (66.0, SERIALS[0])
    assert ("gpu_memory_rate", "gpu 1") not in reported
