"""dcgm_diag: NVIDIA's own diagnosis of each GPU, judged by its report and never by its exit code alone.

dcgmi exits with DCGM's error number as a byte: 226 is DCGM_ST_NVVS_ERROR, -30, which it also returns where a test
failed (https://github.com/NVIDIA/DCGM/issues/158). Tests of the levels:
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.dcgm import DcgmDiagnosis, DcgmSeverity, DiagStatus, TestResult, parse_diagnosis
from clusterctl_burnin.check import Expected, inconclusive
from clusterctl_burnin.probe import ProbeResult, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import missing

NAME = "dcgm_diag"
TIMEOUTS: Mapping[int, float] = {1: 120.0, 2: 600.0, 3: 2700.0, 4: 10_800.0}
"""Time-outs of the levels, several times what NVIDIA calls normal (seconds, 2 minutes, 15 minutes, 1 to 2 hours)."""
_MUST_RUN: Mapping[int, frozenset[str]] = {
    1: frozenset(),
    2: frozenset({"memory", "pcie"}),
    3: frozenset({"memory", "pcie", "diagnostic", "targeted_power", "targeted_stress"}),
    4: frozenset({"memory", "pcie", "diagnostic", "targeted_power", "targeted_stress", "memtest"}),
}
"""Tests of an H100 that every run of a level includes; others (such as EUD) are included where they are installed."""
_OTHER_NAMES = {"gpu_memory": "memory"}
_PERSISTENCE = "persistence mode"
_CONFIGURE = "configure the node again (roles nvidia_driver and cuda_dcgm), then run the burn-in again"
_WHY = "run dcgmi diag --run {} --verbose on the node: it prints the reason"
_ENGINE = "run systemctl status nvidia-dcgm and read /var/log/nvidia-dcgm on the node, then run the burn-in again"


def findings(level: int, result: ProbeResult, serials: Mapping[int, str], expected: Expected) -> Iterator[Finding]:
    """Yield the findings; `serials` by nvidia-smi's index, since DCGM 3 reports none. Raises `UnmeasuredError`."""
    diagnosis = _diagnosis(result)
    if diagnosis.runtime_error:
        raise UnmeasuredError(f"dcgmi diag broke off: {diagnosis.runtime_error[:300]}", remedy=_ENGINE)
    whole, by_gpu = _by_gpu(diagnosis.results)
    found = list(_of_node(whole))
    for gpu, results in sorted(by_gpu.items()):
        serial = diagnosis.serials.get(gpu) or serials.get(gpu, "")
        found += _of_gpu(level, gpu, serial, results)
    found += missing(NAME, len(by_gpu), expected.sku.gpu_count, "GPUs")
    if result.rc != 0 and not any(one.status is DiagStatus.FAIL for one in diagnosis.results):
        found.append(_unexplained(result))
    yield from found
    if not found:
        tests = len({one.test for one in diagnosis.results})
        cause = f"level {level} of DCGM {diagnosis.version} passed on {len(by_gpu)} GPUs: {tests} tests"
        yield passed(NAME, cause)


def _by_gpu(results: Iterable[TestResult]) -> tuple[list[TestResult], dict[int, list[TestResult]]]:
    """Return the results of the whole node, and those of each GPU."""
    whole: list[TestResult] = []
    by_gpu: dict[int, list[TestResult]] = defaultdict(list)
    for one in results:
        (whole if one.gpu is None else by_gpu[one.gpu]).append(one)
    return whole, by_gpu


def _diagnosis(result: ProbeResult) -> DcgmDiagnosis:
    """Return its report. Raises `UnmeasuredError` where it failed without one, else `ParseError`."""
    try:
        return parse_diagnosis(result.stdout)
    except ParseError as error:
        if result.rc == 0:
            raise
        cause = f"{result.command} failed with exit code {result.rc}: {result.error_output}"
        raise UnmeasuredError(cause, remedy=_ENGINE) from error


def _of_node(results: Sequence[TestResult]) -> Iterator[Finding]:
    """Yield findings of tests of the whole node, or of a processor or a switch."""
    for one in results:
        subject = one.entity.lower() or "node"
        if one.status is DiagStatus.FAIL:
            yield _failed(subject, "", [one])
        elif one.status is DiagStatus.WARN or (one.messages and one.status is DiagStatus.PASS):
            yield _warned(subject, "", [one])


@dataclass(frozen=True, slots=True)
class _ByStatus:
    """The results of a GPU. configured: failed for a setting alone; warned: passed or skipped, with a complaint."""

    failed: tuple[TestResult, ...]
    configured: tuple[TestResult, ...]
    passed: tuple[TestResult, ...]
    skipped: tuple[TestResult, ...]
    warned: tuple[TestResult, ...]


def _by_status(results: Sequence[TestResult]) -> _ByStatus:
    def having(*statuses: DiagStatus) -> tuple[TestResult, ...]:
        return tuple(one for one in results if one.status in statuses)

    failed = having(DiagStatus.FAIL)
    return _ByStatus(
        failed=tuple(one for one in failed if not _configuration(one)),
        configured=tuple(filter(_configuration, failed)),
        passed=having(DiagStatus.PASS, DiagStatus.WARN),
        skipped=having(DiagStatus.SKIP, DiagStatus.NOT_RUN),
        warned=tuple(r for r in results if r.status is DiagStatus.WARN or (r.messages and r not in failed)),
    )


def _not_run(level: int, subject: str, serial: str, tests: Sequence[str], configured: Sequence[TestResult]) -> Finding:
    why = f" ({_words(configured)})" if configured else ""
    cause = f"dcgmi diag did not run these tests of level {level}: {', '.join(tests)}{why}"
    remedy = f"{_CONFIGURE}; dcgmi diag --run {level} --verbose prints why it skips a test"
    return inconclusive(NAME, UnmeasuredError(cause, remedy=remedy), subject, serial)


def _of_gpu(level: int, gpu: int, serial: str, results: Sequence[TestResult]) -> Iterator[Finding]:
    """Yield at most one finding: the worst of the GPU."""
    subject, of = f"gpu {gpu}", _by_status(results)
    ran = {_name(one.test) for one in (*of.failed, *of.configured, *of.passed)}
    idle = sorted(_MUST_RUN[level] - ran)
    skipped = sorted({one.test for one in of.skipped})
    warned = of.configured or of.warned
    if of.failed:
        yield _failed(subject, serial, of.failed)
    elif idle or not ran:
        yield _not_run(level, subject, serial, idle or skipped, of.configured)
    elif warned:
        yield _warned(subject, serial, warned)
    elif skipped:
        cause = f"dcgmi diag skipped {', '.join(skipped)}; all else passed"
        yield Finding(
            check=NAME,
            verdict=Verdict.WARN,
            code=Code.DIAGNOSIS_SKIPPED,
            subject=subject,
            cause=cause,
            measured="skipped",
            expected="pass",
            remedy=_WHY.format(level),
            serial=serial,
        )


def _failed(subject: str, serial: str, results: Sequence[TestResult]) -> Finding:
    severities = {message.severity for one in results for message in one.messages}
    name = f"the GPU with serial {serial}" if serial else "the GPU"
    if DcgmSeverity.RESET in severities:
        remedy = f"drain the node and reset {name}; replace it if the test fails again"
    elif DcgmSeverity.ISOLATE in severities:
        remedy = f"take the node out of service and replace {name} if the test fails again"
    else:
        remedy = f"run dcgmi diag -r 3 on the node; replace {name} if it fails again"
    tests = ", ".join(dict.fromkeys(one.test for one in results))
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.DIAGNOSIS_FAILED,
        subject=subject,
        cause=f"dcgmi diag fails: {_words(results)}",
        measured=tests,
        expected="pass",
        remedy=remedy,
        serial=serial,
        deterministic=False,
    )


def _warned(subject: str, serial: str, results: Sequence[TestResult]) -> Finding:
    tests = ", ".join(dict.fromkeys(one.test for one in results))
    config = all(_configuration(one) for one in results if one.status is DiagStatus.FAIL)
    remedy = (
        _CONFIGURE
        if config and any(one.status is DiagStatus.FAIL for one in results)
        else ("check it again after the next burn-in")
    )
    return Finding(
        check=NAME,
        verdict=Verdict.WARN,
        code=Code.DIAGNOSIS_WARNED,
        subject=subject,
        cause=_words(results),
        measured=tests,
        expected="pass",
        remedy=remedy,
        serial=serial,
    )


def _unexplained(result: ProbeResult) -> Finding:
    """Return INCONCLUSIVE: it failed, and no test in its report did."""
    cause = f"dcgmi diag reports no failed test, but ends with exit code {result.rc}: {result.error_output}"
    return inconclusive(NAME, UnmeasuredError(cause, remedy=_ENGINE))


def _configuration(one: TestResult) -> bool:
    """Return whether it fails only for a setting: DCGM 4 reports that; of DCGM 3's tests, persistence mode is one."""
    if not one.messages:
        return _name(one.test) == "persistence_mode"
    return all(
        message.severity is DcgmSeverity.CONFIG
        or (message.severity is DcgmSeverity.UNSTATED and _PERSISTENCE in f"{one.test} {message.text}".lower())
        for message in one.messages
    )


def _name(test: str) -> str:
    """Return the name as of DCGM 4: `GPU Memory` of DCGM 3 is its `memory`."""
    plain = test.lower().replace(" ", "_")
    return _OTHER_NAMES.get(plain, plain)


def _words(results: Iterable[TestResult]) -> str:
    parts = (f"{one.test}: {'; '.join(c.text for c in one.messages) or one.status.value}" for one in results)
    return " | ".join(dict.fromkeys(parts))[:400]
