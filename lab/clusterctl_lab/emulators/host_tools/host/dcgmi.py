"""dcgmi: `diag --run LEVEL --json`, the diagnosis of this machine's GPUs; it tests nothing and answers immediately.

The document is that of DCGM 4 by NVIDIA's schema for its tests (NVIDIA/DCGM, testing/python3/dcgm_diag_schema.json). A
failed test has DCGM's error numbers (dcgm_errors.h: 52, faulty memory, of category 10, severity 2); the exit code is
DCGM_ST_NVVS_ERROR. The dcgmi of the lab's DCGM package does everything else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterctl_lab.emulators.host_tools.host.facts import Facts, Gpu, driver_version, load

VERSION = "4.4.1"
PACKAGED = Path("/usr/bin/dcgmi")
TEST_FAILED = 226
LEVELS = {
    "1": {"Deployment": ["software"]},
    "2": {"Deployment": ["software"], "Integration": ["pcie"], "Hardware": ["memory"]},
}
LONG = {
    "Deployment": ["software"],
    "Integration": ["pcie"],
    "Hardware": ["memory", "diagnostic", "nvbandwidth"],
    "Stress": ["memory_bandwidth", "targeted_power", "targeted_stress"],
}
LEVELS["3"] = LONG
LEVELS["4"] = {**LONG, "Hardware": [*LONG["Hardware"], "memtest", "pulse_test"]}


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if words[:1] != ["diag"] and PACKAGED.exists():
        os.execv(PACKAGED, [str(PACKAGED), *words])  # noqa: S606 — no shell is what we want
    if len(words) != 4 or words[:2] != ["diag", "--run"] or words[2] not in LEVELS or words[3] != "--json":
        sys.stderr.write("the lab's dcgmi knows diag --run 1|2|3|4 --json\n")
        return 2
    if not driver_version():
        json.dump({"DCGM Diagnostic": {"runtime_error": "the NVIDIA driver is not loaded"}}, sys.stdout)
        return TEST_FAILED
    facts, level = load(), LEVELS[words[2]]
    json.dump(_document(facts, level, driver_version()), sys.stdout, indent=2)
    run = {test for tests in level.values() for test in tests}
    return TEST_FAILED if any(gpu.fails_diag in run or not gpu.persistence for gpu in facts.gpus) else 0


def _document(facts: Facts, level: dict[str, list[str]], driver: str) -> dict[str, object]:
    entities = [{"device_id": "2330", "entity_id": gpu.index, "serial_num": gpu.serial} for gpu in facts.gpus]
    categories = [
        {"category": category, "tests": [_test(test, facts.gpus) for test in tests]}
        for category, tests in level.items()
    ]
    return {
        "DCGM Diagnostic": {"test_categories": categories},
        "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1, "entities": entities}],
        "metadata": {"Driver Version Detected": driver, "version": VERSION},
    }


def _test(test: str, gpus: Sequence[Gpu]) -> dict[str, object]:
    results = [_result(test, gpu) for gpu in gpus]
    failed = any(result["status"] == "Fail" for result in results)
    return {"name": test, "results": results, "test_summary": {"status": "Fail" if failed else "Pass"}}


def _result(test: str, gpu: Gpu) -> dict[str, object]:
    entity = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu.index}
    if test == gpu.fails_diag:
        return {**entity, "status": "Fail", "warnings": [_warning(52, 10, 2, f"Memory of GPU {gpu.index} is corrupt.")]}
    if test == "software" and not gpu.persistence:
        text = f"Persistence Mode: Persistence mode for GPU {gpu.index} is disabled."
        return {**entity, "status": "Fail", "warnings": [_warning(29, 8, 5, text)]}
    return {**entity, "status": "Pass"}


def _warning(code: int, category: int, severity: int, text: str) -> dict[str, object]:
    return {"error_id": code, "error_category": category, "error_severity": severity, "warning": text}
