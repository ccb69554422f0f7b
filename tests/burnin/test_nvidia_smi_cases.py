"""Every check that reads nvidia-smi -q gives the verdicts of the truth table data/nvidia_smi/cases.yml."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from clusterctl.fleet.finding import Finding, Verdict, worst
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import parse_query
from clusterctl_burnin.limits.limit import Limit
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import HEALTHY, LIMITS, SKU, expected, readings, result

DATA = HEALTHY.parent / "nvidia_smi"
TABLE = yaml.safe_load((DATA / "cases.yml").read_text())
MACHINES: Mapping[str, Mapping[str, Any]] = TABLE["machines"]
CASES: Mapping[str, Mapping[str, Any]] = TABLE["cases"]
JUDGED = tuple(name for name, check in CHECKS.items() if "nvidia_smi" in {probe.name for probe in check.probes})
EDGE = ("dcgm_exporter", "gpudirect_rdma", "docker_gpu", "gpu_topology", "nvlink", "nvlink_errors", "site_firmware")
"""They read other tools as well, which the healthy node of the kit answers for."""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find(lines: list[str], path: str) -> int:
    """Return the number of the first GPU's line with that path of keys."""
    at = next(number for number, line in enumerate(lines) if line.startswith("GPU 0000"))
    for key in path.split("/"):
        depth = _indent(lines[at])
        for number in range(at + 1, len(lines)):
            if lines[number].strip() and _indent(lines[number]) <= depth:
                raise LookupError(f"no line {path!r}")
            if _indent(lines[number]) == depth + 4 and lines[number].partition(" : ")[0].strip() == key:
                at = number
                break
        else:
            raise LookupError(f"no line {path!r}")
    return at


def _changed(machine: str, case: Mapping[str, Any]) -> str:
    lines = (DATA / f"{machine}.txt").read_text().splitlines()
    for path, value in case.get("set", {}).items():
        at = _find(lines, path)
        head = lines[at].partition(" : ")[0]
        lines[at] = head.rstrip() if value is None else f"{head} : {value}"
    for path, new in case.get("add", {}).items():
        at = _find(lines, path)
        lines[at + 1 : at + 1] = [" " * (_indent(lines[at]) + 4) + line for line in new]
    for path in case.get("drop", ()):
        at = _find(lines, path)
        end = next(n for n in range(at + 1, len(lines)) if _indent(lines[n]) <= _indent(lines[at]))
        del lines[at:end]
    return "\n".join(lines) + "\n"


def _judged(machine: str, text: str) -> dict[str, tuple[Finding, ...]]:
    facts = MACHINES[machine]
    driver = next(line.partition(" : ")[2] for line in text.splitlines() if line.startswith("Driver Version"))
    figures = {name: Limit(value=value, unit="x", source="case") for name, value in facts.get("limits", {}).items()}
    limits = dataclasses.replace(LIMITS, limits={**LIMITS.limits, **figures})
    reported = expected(
        sku=dataclasses.replace(SKU, gpu_model=facts["gpu_model"] if "gpu_model" in facts else machine[5:].upper()),
        limits=limits,
        driver_version=driver,
        inventory=None,
    )
    here = facts.get("fabric_manager_on_node", True)
    service = result("fabric_manager_service", "active\n" if here else "inactive\n", rc=0 if here else 3)
    seen = readings(
        nvidia_smi=lambda _: text,
        fabric_manager_service=service,
        fabric_manager_version=result("fabric_manager_version", f"Fabric Manager version is : {driver}\n"),
    )
    return {name: CHECKS[name].findings(seen, reported) for name in JUDGED if name not in EDGE}


def _verdict(findings: tuple[Finding, ...]) -> Verdict:
    applicable = [finding.verdict for finding in findings if finding.verdict is not Verdict.NOT_APPLICABLE]
    return worst(applicable) if applicable else Verdict.NOT_APPLICABLE


def _differences(found: Mapping[str, tuple[Finding, ...]], wanted: Mapping[str, str], *, lax: bool) -> list[str]:
    """Return how the findings differ from the wanted verdicts; what no verdict is wanted of must pass."""
    wrong = []
    for name, findings in found.items():
        word, _, code = wanted.get(name, "pass").partition(" ")
        allowed = {Verdict(word)} | ({Verdict.INCONCLUSIVE} if lax and name not in wanted else set())
        seen = {f.code for f in findings if f.verdict.value == word}
        if _verdict(findings) not in allowed or (code and Code[code] not in seen):
            wrong.append(
                f"{name}: wanted {word} {code}, found {[(f.verdict.value, f.code.name, f.cause) for f in findings]}"
            )
    return wrong


@pytest.mark.parametrize("machine", MACHINES)
def test_a_healthy_machine_of_each_generation_passes(machine: str) -> None:
    """Drivers R470 to R580, Volta to Blackwell: no check fails, and unmeasured values are reported."""
    text = (DATA / f"{machine}.txt").read_text()
    assert len(parse_query(text).gpus) == text.count("Product Name")
    assert _differences(_judged(machine, text), MACHINES[machine].get("expect", {}), lax=False) == []


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found_by_its_check_and_by_no_other(name: str) -> None:
    """The verdicts that the table names change, all others stay."""
    case = CASES[name]
    machine = case["machine"]
    assert {case["source"], MACHINES[machine]["source"]} <= TABLE["sources"].keys()
    wanted = {**MACHINES[machine].get("expect", {}), **case["expect"]}
    found = _judged(machine, _changed(machine, case))
    assert wanted.keys() <= found.keys()
    assert _differences(found, wanted, lax=case.get("unmeasured", False)) == []
