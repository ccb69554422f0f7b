"""dcgm_diag: both shapes of the document, and no exit code, skipped test or broken run that passes for health."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Origin, Verdict
from clusterctl.formats.nvidia.dcgm import DcgmSeverity, DiagStatus, parse_diagnosis
from clusterctl_burnin.loads.single_node.dcgm_diag import LOAD, level_of
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.burnin.kit import LIMITS, SKU, START, expected

Result = Mapping[str, Any]
SERIALS = "0, 165000010000\n1, 165000010001\n"
PASS: Result = {"status": "Pass"}
SKIP: Result = {"status": "Skip"}
PERSISTENCE = "Persistence Mode: Persistence mode for GPU 1 is disabled."


def fails(text: str, severity: int) -> Result:
    warning = {"warning": text, "error_id": 29, "error_category": 8, "error_severity": severity}
    return {"status": "Fail", "warnings": [warning]}


def four(*tests: tuple[str, Result, Result], serials: tuple[str, str] = ("165A", "165B"), **more: Any) -> str:
    """As DCGM 4 writes it, by NVIDIA's schema: each test's result of GPU 0 and of GPU 1."""
    entries = [
        {
            "name": name,
            "results": [
                {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, **result}
                for gpu, result in enumerate(results)
            ],
            "test_summary": {"status": "Pass"},
        }
        for name, *results in tests
    ]
    entities = [{"device_id": "2330", "entity_id": gpu, "serial_num": serial} for gpu, serial in enumerate(serials)]
    return json.dumps(
        {
            "DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": entries}], **more},
            "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1, "entities": entities}],
            "metadata": {"Driver Version Detected": "550.127.08", "version": "4.4.1"},
        }
    )


def three(*tests: tuple[str, list[Result]]) -> str:
    """As DCGM 3 writes it: numbers of GPUs in a text or as one number, `null` between tests, words before it all."""
    entries: list[Any] = []
    for name, results in tests:
        entries += [{"name": name, "results": results}, None]
    document = {
        "DCGM GPU Diagnostic": {"test_categories": [{"category": "x", "tests": entries[:-1]}], "version": "3.3.9"}
    }
    return f"WARNING: something first\n{json.dumps(document)}"


def judged(text: str, rc: int = 0, seconds: int | None = None, status: Status = Status.OK) -> tuple[Finding, ...]:
    """The output for a node with two GPUs, with their serial numbers from nvidia-smi."""
    diag, smi = LOAD.probes(LIMITS, seconds)
    reported = {
        diag.name: ProbeResult(diag.name, diag.argv, status, rc, text, "", START, 90.0),
        smi.name: ProbeResult(smi.name, smi.argv, Status.OK, 0, SERIALS, "", START, 0.5),
    }
    readings = Readings("node001", "boot-1", Origin.REAL, START, START + timedelta(seconds=90), reported)
    return LOAD.check(LIMITS, seconds).findings(readings, expected(sku=dataclasses.replace(SKU, gpu_count=2)))


SOUND = (("software", PASS, PASS), ("memory", PASS, PASS), ("pcie", PASS, PASS))


def test_level_two_of_dcgm_four_passes() -> None:
    """One finding, with level, version and the number of tests."""
    (finding,) = judged(four(*SOUND))
    assert finding.verdict is Verdict.PASS
    assert "level 2 of DCGM 4.4.1 passed on 2 GPUs: 3 tests" in finding.cause


def test_level_two_of_dcgm_three_passes() -> None:
    """Its other names, its numbers in a text, and its words before the document."""
    every = [{"gpu_ids": "0,1", "status": "PASS"}]
    each = [{"gpu_ids": 0, "status": "PASS"}, {"gpu_ids": "1", "status": "Pass"}]
    (finding,) = judged(three(("Denylist", every), ("GPU Memory", each), ("PCIe", each)))
    assert finding.verdict is Verdict.PASS
    assert "DCGM 3.3.9" in finding.cause


@pytest.mark.parametrize(
    ("severity", "remedy"),
    [(2, "replace the GPU with serial 165B"), (6, "reset the GPU with serial 165B"), (4, "-r 3")],
)
def test_a_failed_test_names_its_gpu(severity: int, remedy: str) -> None:
    """By its serial number; what to do is what DCGM asks for. It is confirmed by a second run."""
    text = four(
        ("software", PASS, PASS), ("memory", PASS, fails("A DBE was detected.", severity)), ("pcie", PASS, PASS)
    )
    (finding,) = judged(text, rc=226)
    assert (finding.verdict, finding.subject, finding.serial) == (Verdict.FAIL, "gpu 1", "165B")
    assert "memory: A DBE was detected." in finding.cause
    assert remedy in finding.remedy
    assert not finding.deterministic


def test_dcgm_three_prints_no_serial_number_but_nvidia_smi_does() -> None:
    """A failure of a GPU that DCGM only counts."""
    each = [{"gpu_ids": "0", "status": "PASS"}, {"gpu_ids": "1", "status": "FAIL", "warnings": ["Memory is bad"]}]
    (finding,) = judged(three(("GPU Memory", each), ("PCIe", [{"gpu_ids": "0,1", "status": "PASS"}])), rc=226)
    assert (finding.verdict, finding.serial) == (Verdict.FAIL, "165000010001")


@pytest.mark.parametrize(
    "text",
    [
        four(("software", PASS, fails(PERSISTENCE, 5)), *SOUND[1:]),
        three(
            ("Persistence Mode", [{"gpu_ids": "1", "status": "FAIL", "warnings": [PERSISTENCE]}]),
            ("GPU Memory", [{"gpu_ids": "0,1", "status": "PASS"}]),
            ("PCIe", [{"gpu_ids": "0,1", "status": "PASS"}]),
        ),
    ],
    ids=["4", "3"],
)
def test_persistence_mode_is_a_setting(text: str) -> None:
    """A warning with the role that mends it, though dcgmi ends with 226."""
    (finding,) = judged(text, rc=226)
    assert (finding.verdict, finding.subject) == (Verdict.WARN, "gpu 1")
    assert "ersistence mode" in finding.cause
    assert "nvidia_driver" in finding.remedy


def test_a_setting_does_not_hide_a_defect() -> None:
    """Both failed on one GPU: the defect is reported."""
    text = four(("software", PASS, fails(PERSISTENCE, 5)), ("memory", PASS, fails("bad", 2)), ("pcie", PASS, PASS))
    assert [(f.verdict, "bad" in f.cause) for f in judged(text, rc=226)] == [(Verdict.FAIL, True)]


def test_a_level_with_skipped_tests_was_not_run() -> None:
    """As on a GPU where persistence mode is off and DCGM then skips the hardware tests."""
    text = four(("software", PASS, fails(PERSISTENCE, 5)), ("memory", PASS, SKIP), ("pcie", PASS, SKIP))
    (finding,) = judged(text, rc=226)
    assert (finding.verdict, finding.subject) == (Verdict.INCONCLUSIVE, "gpu 1")
    assert "did not run these tests of level 2: memory, pcie" in finding.cause
    assert "ersistence mode" in finding.cause


def test_another_test_that_was_skipped_is_a_warning() -> None:
    """It is no pass, and not what the level consists of either."""
    found = judged(four(*SOUND, ("eud", SKIP, SKIP)))
    assert [finding.verdict for finding in found] == [Verdict.WARN] * 2
    assert "skipped eud" in found[0].cause


def test_a_pass_with_a_warning_is_a_warning() -> None:
    """DCGM has been seen to pass a memory test that could not allocate (NVIDIA/DCGM#284)."""
    odd = {**fails("Failed to allocate memory", 1), "status": "Pass"}
    (finding,) = judged(four(SOUND[0], ("memory", PASS, odd), SOUND[2]))
    assert (finding.verdict, finding.subject) == (Verdict.WARN, "gpu 1")


def test_an_unknown_word_is_no_pass() -> None:
    """An unknown spelling of DCGM's is not run until its meaning is added to the table."""
    assert parse_diagnosis(four(("memory", PASS, {"status": "Mostly fine"}))).results[1].status is DiagStatus.NOT_RUN
    (finding,) = judged(four(SOUND[0], ("memory", PASS, {"status": "Mostly fine"}), SOUND[2]))
    assert finding.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "rc", "cause"),
    [
        (four(*SOUND), 226, "no failed test, but ends with exit code 226"),
        ("Error: unable to establish a connection to the specified host: localhost", 255, "unable to establish"),
        (four(runtime_error="Unable to get the driver version"), 226, "broke off: Unable to get the driver version"),
        ("", 0, "no JSON document"),
        ('{"something": "else"}', 0, "neither 'DCGM Diagnostic'"),
        (four(), 0, "0 of 2 GPUs"),
        (four(("software", PASS, PASS), ("memory", PASS, PASS)), 0, "pcie"),
    ],
)
def test_what_was_not_diagnosed_does_not_pass(text: str, rc: int, cause: str) -> None:
    """Whatever the exit code is."""
    found = judged(text, rc=rc)
    assert {finding.verdict for finding in found} == {Verdict.INCONCLUSIVE}
    assert cause in found[0].cause


@pytest.mark.parametrize("status", [Status.MISSING, Status.TIMEOUT])
def test_a_missing_or_hanging_dcgmi_is_inconclusive(status: Status) -> None:
    """No GPU was diagnosed."""
    assert [finding.verdict for finding in judged("", status=status)] == [Verdict.INCONCLUSIVE]


def test_fewer_gpus_than_the_sku_has_are_not_passed_over() -> None:
    """DCGM diagnoses what it sees."""
    one = [{"gpu_ids": "0", "status": "PASS"}]
    (finding,) = judged(three(("GPU Memory", one), ("PCIe", one)))
    assert "1 of 2 GPUs" in finding.cause


@pytest.mark.parametrize(
    ("seconds", "level"), [(10, 1), (30, 1), (119, 1), (120, 2), (900, 3), (7199, 3), (7200, 4), (86_400, 4)]
)
def test_seconds_choose_the_level(seconds: int, level: int) -> None:
    """The highest that is normally done in them; its time-out leaves several times as much."""
    assert level_of(seconds) == level
    probe = LOAD.probes(LIMITS, seconds)[0]
    assert probe.argv == ("dcgmi", "diag", "--run", str(level), "--json")
    assert probe.timeout > {1: 30, 2: 120, 3: 900, 4: 7200}[level]


def test_severities_and_wrong_numbers() -> None:
    """An unknown severity stays unknown; numbers of GPUs that are none are refused by name."""
    result = parse_diagnosis(four(("memory", PASS, fails("x", 99)))).results[1]
    assert result.messages[0].severity is DcgmSeverity.UNKNOWN
    with pytest.raises(ParseError, match="are not GPU numbers"):
        parse_diagnosis(three(("PCIe", [{"gpu_ids": "all", "status": "PASS"}])))
