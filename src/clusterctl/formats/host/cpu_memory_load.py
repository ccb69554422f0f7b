"""The JSON document of the node's built-in `cpu-memory-load`: stress-ng's output, and counters before and after it.

stress-ng's YAML (`--yaml`) and its messages: https://github.com/ColinIanKing/stress-ng, recorded with 0.15.06.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.formats.documents import Alias, Count, Figure, read_document, read_value
from clusterctl.formats.site.yaml_document import parse_yaml

_WHERE = "cpu-memory-load"
_MAX_FIGURES = 256 << 10
"""Characters. Those of two stressors have 2,000."""
_FAIL = re.compile(r"^stress-ng: fail: +\[\d+\] (?P<what>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stressor:
    """One kind of work: total in stress-ng's bogo operations, and bogo operations per second."""

    done: int
    rate: float


@dataclass(frozen=True, slots=True)
class PackageLoad:
    """One processor package under load.

    code       stress-ng's exit code; None where it did not end and was killed
    wrong      stress-ng's failure messages
    last_line  its last line of output
    stressors  by name (`cpu`, `vm`); empty where it printed no figures
    throttled, machine_checks   growth of the counters; None where the machine has none
    """

    package: int
    cpus: int
    memory_bytes: int
    code: int | None
    wrong: tuple[str, ...]
    last_line: str
    stressors: Mapping[str, Stressor]
    throttled: int | None
    machine_checks: int | None


@dataclass(frozen=True, slots=True)
class ModuleErrors:
    """Growth of a memory module's error counters."""

    name: str
    location: str
    corrected: int
    uncorrected: int


@dataclass(frozen=True, slots=True)
class CpuMemoryLoad:
    """`seconds`: time between the two readings of the counters. `modules`: those with counters that grew."""

    seconds: float
    packages: tuple[PackageLoad, ...]
    modules: tuple[ModuleErrors, ...]


@dataclass(frozen=True, slots=True)
class _Module:
    name: str
    location: str | None
    corrected: Count | None
    uncorrected: Count | None


@dataclass(frozen=True, slots=True)
class _Counters:
    package: Count
    throttled: Count | None
    machine_checks: Count | None


_UNCOUNTED = _Counters(package=0, throttled=None, machine_checks=None)


@dataclass(frozen=True, slots=True)
class _Counted:
    modules: tuple[_Module, ...]
    packages: tuple[_Counters, ...]


@dataclass(frozen=True, slots=True)
class _Package:
    package: Count
    cpus: Count
    bytes: Count
    code: int | None
    output: str
    metrics: str | None


@dataclass(frozen=True, slots=True)
class _Document:
    seconds: Figure
    before: _Counted
    after: _Counted
    packages: tuple[_Package, ...]


@dataclass(frozen=True, slots=True)
class _Metric:
    stressor: str
    done: Annotated[Count, Alias("bogo-ops")]
    rate: Annotated[Figure, Alias("bogo-ops-per-second-real-time")]


@dataclass(frozen=True, slots=True)
class _Metrics:
    metrics: tuple[_Metric, ...]


def parse_cpu_memory_load(text: str) -> CpuMemoryLoad:
    """Return the result. Raises `ParseError` for another document, unknown figures, or a counter that decreased."""
    document = read_document(_Document, text, _WHERE)
    before = {one.package: one for one in document.before.packages}
    after = {one.package: one for one in document.after.packages}
    packages = tuple(
        _package(one, before.get(one.package, _UNCOUNTED), after.get(one.package, _UNCOUNTED))
        for one in document.packages
    )
    return CpuMemoryLoad(document.seconds, packages, tuple(_grown(document.before, document.after)))


def _package(found: _Package, before: _Counters, after: _Counters) -> PackageLoad:
    lines = [line for line in found.output.splitlines() if line.strip()]
    where = f"package {found.package}"
    return PackageLoad(
        package=found.package,
        cpus=found.cpus,
        memory_bytes=found.bytes,
        code=found.code,
        wrong=tuple(match["what"] for match in _FAIL.finditer(found.output)),
        last_line=lines[-1].strip() if lines else "",
        stressors=_stressors(found.metrics, where) if found.metrics is not None else {},
        throttled=_by(before.throttled, after.throttled, f"{where}: throttled"),
        machine_checks=_by(before.machine_checks, after.machine_checks, f"{where}: machine checks"),
    )


def _stressors(text: str, where: str) -> Mapping[str, Stressor]:
    if len(text) > _MAX_FIGURES:
        raise ParseError(f"stress-ng's figures are longer than {_MAX_FIGURES >> 10} KiB", where=f"{_WHERE} {where}")
    try:
        figures = parse_yaml(text, _WHERE).data  # a host's text: a few aliases of aliases would stand for gigabytes
    except UsageError:
        raise ParseError("stress-ng's figures are no YAML", where=f"{_WHERE} {where}") from None
    found = read_value(_Metrics, figures, f"{_WHERE} {where}")
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
        raise ParseError(f"the counter of {what} decreased from {before} to {after}", where=_WHERE)
    return after - before
