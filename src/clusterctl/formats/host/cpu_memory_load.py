"""The JSON document of the node's built-in `cpu-memory-load`: what stress-ng says, and counters before and after it.

stress-ng's YAML (`--yaml`) and its messages: https://github.com/ColinIanKing/stress-ng, recorded of 0.15.06.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import pydantic
import yaml

from clusterctl.fleet.errors import ParseError

_WHERE = "cpu-memory-load"
_FAIL = re.compile(r"^stress-ng: fail: +\[\d+\] (?P<what>.+)$", re.MULTILINE)
M = TypeVar("M", bound=pydantic.BaseModel)
Count = Annotated[int, pydantic.Field(ge=0)]
Rate = Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Stressor:
    """One kind of work: how much was done in all, in stress-ng's own unit, and a second."""

    done: int
    rate: float


@dataclass(frozen=True, slots=True)
class PackageLoad:
    """One processor package under load.

    code       stress-ng's exit code; None where it did not end and was killed
    wrong      what stress-ng says that it found wrong
    complaint  the last line that it said
    stressors  by name (`cpu`, `vm`); empty where it gave no figures
    throttled, machine_checks   by so many they grew; None where the machine does not count them
    """

    package: int
    cpus: int
    memory_bytes: int
    code: int | None
    wrong: tuple[str, ...]
    complaint: str
    stressors: Mapping[str, Stressor]
    throttled: int | None
    machine_checks: int | None


@dataclass(frozen=True, slots=True)
class ModuleErrors:
    """By how many errors a memory module's counters grew."""

    name: str
    location: str
    corrected: int
    uncorrected: int


@dataclass(frozen=True, slots=True)
class CpuMemoryLoad:
    """`seconds`: between the two looks at the counters. `modules`: those whose counters grew."""

    seconds: float
    packages: tuple[PackageLoad, ...]
    modules: tuple[ModuleErrors, ...]


class _Module(pydantic.BaseModel):
    name: str
    location: str | None
    corrected: Count | None
    uncorrected: Count | None


class _Counters(pydantic.BaseModel):
    package: Count
    throttled: Count | None
    machine_checks: Count | None


_UNCOUNTED = _Counters(package=0, throttled=None, machine_checks=None)


class _Counted(pydantic.BaseModel):
    modules: tuple[_Module, ...]
    packages: tuple[_Counters, ...]


class _Package(pydantic.BaseModel):
    package: Count
    cpus: Count
    bytes: Count
    code: int | None
    said: str
    metrics: str | None


class _Document(pydantic.BaseModel):
    seconds: Rate
    before: _Counted
    after: _Counted
    packages: tuple[_Package, ...]


class _Metric(pydantic.BaseModel):
    stressor: str
    done: Annotated[Count, pydantic.Field(alias="bogo-ops")]
    rate: Annotated[Rate, pydantic.Field(alias="bogo-ops-per-second-real-time")]


class _Metrics(pydantic.BaseModel):
    metrics: tuple[_Metric, ...]


def parse_cpu_memory_load(text: str) -> CpuMemoryLoad:
    """`ParseError` where it is no such document, stress-ng's figures are not understood, or a counter went back."""
    document = _validated(_Document, text, "")
    before = {one.package: one for one in document.before.packages}
    after = {one.package: one for one in document.after.packages}
    packages = tuple(
        _package(one, before.get(one.package, _UNCOUNTED), after.get(one.package, _UNCOUNTED))
        for one in document.packages
    )
    return CpuMemoryLoad(document.seconds, packages, tuple(_grown(document.before, document.after)))


def _package(told: _Package, before: _Counters, after: _Counters) -> PackageLoad:
    lines = [line for line in told.said.splitlines() if line.strip()]
    where = f"package {told.package}"
    return PackageLoad(
        package=told.package,
        cpus=told.cpus,
        memory_bytes=told.bytes,
        code=told.code,
        wrong=tuple(match["what"] for match in _FAIL.finditer(told.said)),
        complaint=lines[-1].strip() if lines else "",
        stressors=_stressors(told.metrics, where) if told.metrics is not None else {},
        throttled=_by(before.throttled, after.throttled, f"{where}: throttled"),
        machine_checks=_by(before.machine_checks, after.machine_checks, f"{where}: machine checks"),
    )


def _stressors(text: str, where: str) -> Mapping[str, Stressor]:
    try:
        told = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ParseError("stress-ng's figures are no YAML", where=f"{_WHERE} {where}") from None
    found = _validated(_Metrics, told, where)
    return {metric.stressor: Stressor(metric.done, metric.rate) for metric in found.metrics}


def _grown(before: _Counted, after: _Counted) -> Iterator[ModuleErrors]:
    earlier = {(module.name, module.location): module for module in before.modules}
    for module in after.modules:
        first = earlier.get((module.name, module.location))
        if first is None:
            continue
        corrected = _by(first.corrected, module.corrected, module.name)
        uncorrected = _by(first.uncorrected, module.uncorrected, module.name)
        if corrected or uncorrected:
            yield ModuleErrors(module.name, module.location or "", corrected or 0, uncorrected or 0)


def _by(before: int | None, after: int | None, what: str) -> int | None:
    if before is None or after is None:
        return None
    if after < before:
        raise ParseError(f"the counter of {what} went back from {before} to {after}", where=_WHERE)
    return after - before


def _validated(model: type[M], told: Any, where: str) -> M:
    try:
        return model.model_validate_json(told) if isinstance(told, str) else model.model_validate(told)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in (where, *first["loc"]) if part != "")
        raise ParseError(f"not understood: {first['msg']}", where=f"{_WHERE} {field}".strip()) from None
