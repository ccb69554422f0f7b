"""`dcgmi diag --run N --json`: each test's result of each GPU, in the shapes of DCGM 3 and 4.

NVIDIA publishes neither schema nor stability promise for this JSON
(https://docs.nvidia.com/datacenter/dcgm/latest/reference/diagnostics/errors.html). Two shapes are known.

DCGM 3: root `DCGM GPU Diagnostic`, results by `gpu_ids`, one number or several in a text; NVIDIA's own test data
(https://github.com/NVIDIA/DCGM, nvvs/tests) has `null` between tests, and text before the document.

DCGM 4: root `DCGM Diagnostic`, results by `entity_group` and `entity_id`, serial numbers in `entity_groups`: a schema
for NVIDIA's tests is testing/python3/dcgm_diag_schema.json there; real output of 4.2.3 and 4.5.2 is in
https://github.com/baldwinSPC/glimmer-burnin (runners/dcgm-diag/testdata).
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import read_value

_WHERE = "dcgmi diag"
ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
GPU = "GPU"


class DiagStatus(enum.Enum):
    """NOT_RUN also stands for each unknown word: it is no pass."""

    PASS = "pass"  # noqa: S105 — a result, not a password
    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"
    NOT_RUN = "not run"


class DcgmSeverity(enum.Enum):
    """What DCGM asks for (dcgmErrorSeverity_enum in dcgm_errors.h). UNSTATED: DCGM 3 reports no severity."""

    UNSTATED = -1
    NONE = 0
    MONITOR = 1
    ISOLATE = 2
    UNKNOWN = 3
    TRIAGE = 4
    CONFIG = 5
    RESET = 6


@dataclass(frozen=True, slots=True)
class DiagMessage:
    """A warning of a test; `code` is DCGM's (DCGM_FR_…), None where it has none."""

    text: str
    severity: DcgmSeverity
    code: int | None = None


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test on one GPU by DCGM's number; `gpu` is None for the whole node or another entity."""

    __test__ = False

    test: str
    status: DiagStatus
    gpu: int | None = None
    entity: str = ""
    messages: tuple[DiagMessage, ...] = ()


@dataclass(frozen=True, slots=True)
class DcgmDiagnosis:
    """`runtime_error` is set where the diagnosis was aborted; `serials` are those of GPUs, by DCGM's number."""

    version: str
    runtime_error: str
    results: tuple[TestResult, ...]
    serials: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Warning:
    warning: str
    error_id: int | None = None
    error_severity: int | None = None


@dataclass(frozen=True, slots=True)
class _Result:
    status: str
    gpu_ids: int | str | None = None
    entity_group: str | None = None
    entity_id: int | None = None
    warnings: tuple[_Warning | str, ...] | str = ()


@dataclass(frozen=True, slots=True)
class _Test:
    name: str
    results: tuple[_Result | None, ...] = ()
    test_summary: _Result | None = None


@dataclass(frozen=True, slots=True)
class _Category:
    category: str = ""
    tests: tuple[_Test | None, ...] = ()


@dataclass(frozen=True, slots=True)
class _Diagnostic:
    version: str = ""
    runtime_error: str = ""
    test_categories: tuple[_Category, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entity:
    entity_id: int
    serial_num: str = ""


@dataclass(frozen=True, slots=True)
class _Group:
    entity_group: str
    entities: tuple[_Entity, ...] = ()


@dataclass(frozen=True, slots=True)
class _Metadata:
    version: str = ""


@dataclass(frozen=True, slots=True)
class _Document:
    metadata: _Metadata = _Metadata()
    entity_groups: tuple[_Group, ...] = ()


def parse_diagnosis(text: str) -> DcgmDiagnosis:
    """Return the diagnosis. Raises `ParseError` without such a document, or where a part of it is not understood."""
    document = _json(text)
    root = next((document[name] for name in ROOTS if name in document), None)
    if root is None:
        raise ParseError(f"neither {ROOTS[0]!r} nor {ROOTS[1]!r} is its root", where=_WHERE)
    diagnostic, more = read_value(_Diagnostic, root, _WHERE), read_value(_Document, document, _WHERE)
    results = tuple(
        result
        for category in diagnostic.test_categories
        for test in category.tests
        if test is not None
        for result in _results(test)
    )
    version = diagnostic.version or more.metadata.version
    return DcgmDiagnosis(version, diagnostic.runtime_error.strip(), results, _serials(more))


def _json(text: str) -> Mapping[str, Any]:
    """Return the document; DCGM may print text before it, such as the host engine's log."""
    start = text.find("{")
    try:
        found = json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParseError(f"no JSON document in it: {text.strip()[:200] or 'it is empty'}", where=_WHERE)
    return found


def _results(test: _Test) -> Iterator[TestResult]:
    """Yield the results of a test; its summary where it has none of its own."""
    results = [result for result in test.results if result is not None]
    for result in results or ([test.test_summary] if test.test_summary else []):
        messages = tuple(_messages(result))
        status = _status(result.status)
        for gpu, entity in _entities(result):
            yield TestResult(test.name, status, gpu, entity, messages)


def _entities(result: _Result) -> Iterator[tuple[int | None, str]]:
    if result.entity_group is not None and result.entity_group.upper() != GPU:
        yield None, f"{result.entity_group} {'' if result.entity_id is None else result.entity_id}".strip()
    elif result.entity_id is not None:
        yield result.entity_id, ""
    elif isinstance(result.gpu_ids, int):
        yield result.gpu_ids, ""
    else:
        numbers = _gpu_numbers(result.gpu_ids or "")
        yield from ((gpu, "") for gpu in numbers or (None,))


def _gpu_numbers(text: str) -> list[int]:
    """Return the numbers of a list such as `0,1,2`."""
    numbers = list(filter(None, map(str.strip, text.split(","))))
    if not all(map(str.isdecimal, numbers)):
        raise ParseError(f"{text!r} are not GPU numbers", where=_WHERE)
    return list(map(int, numbers))


def _messages(result: _Result) -> Iterator[DiagMessage]:
    for warning in [result.warnings] if isinstance(result.warnings, str) else result.warnings:
        if isinstance(warning, str):
            yield DiagMessage(warning.strip(), DcgmSeverity.UNSTATED)
        else:
            yield DiagMessage(warning.warning.strip(), _severity(warning.error_severity), warning.error_id)


def _severity(number: int | None) -> DcgmSeverity:
    if number is None:
        return DcgmSeverity.UNSTATED
    return DcgmSeverity(number) if number in {severity.value for severity in DcgmSeverity} else DcgmSeverity.UNKNOWN


def _status(word: str) -> DiagStatus:
    """Return the status of `PASS`, `Pass`, `Skip`, `SKIPPED` …: spelling differs between versions."""
    known = {"skipped": DiagStatus.SKIP, **{status.value: status for status in DiagStatus}}
    return known.get(" ".join(word.lower().split()), DiagStatus.NOT_RUN)


def _serials(document: _Document) -> Mapping[int, str]:
    """Return serials by GPU number, without DCGM's placeholder for an unknown one (`<<<NOT_SUPPORTED>>>`)."""
    gpus = (group for group in document.entity_groups if group.entity_group.upper() == GPU)
    serials = {entity.entity_id: entity.serial_num for group in gpus for entity in group.entities}
    return MappingProxyType({number: serial for number, serial in serials.items() if serial.isalnum()})
