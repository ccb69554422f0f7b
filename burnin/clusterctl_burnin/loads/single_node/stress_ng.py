"""stress_ng: processors and memory compute what they should under full load, and count no error while they do.

stress-ng works on all processors and on most of the available memory, package by package, and checks its results
(https://github.com/ColinIanKing/stress-ng). Its figures are no benchmark: they are held against the same program's on
other nodes of the fleet, never against a limit. A processor that was not loaded is
unmeasured. Heat that slows processors down is a warning; what it costs shows in those figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.host.cpu_memory_load import CpuMemoryLoad, ModuleErrors, PackageLoad, parse_cpu_memory_load
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Expected, inconclusive
from clusterctl_burnin.checks.memory_errors import MEMORY_CORRECTED_MAX
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import missing

_NAME = "stress_ng"
_MARGIN_S = 90.0
"""stress-ng may take long to end: node/programs/cpu_memory_load.py waits for 60 s."""
_DAY_S = 24 * 3600
_NOT_INSTALLED = 127
_KINDS = ("cpu", "vm")
_SHOWN = 3
_BAD = Finding(check=_NAME, verdict=Verdict.FAIL, code=Code.WRONG_RESULT, deterministic=False)
"""A second run may come out otherwise: the gate asks for one before it quarantines."""
CPU_RATE = Metric(
    "stress_ng_cpu",
    "bogo-ops/s",
    Bad.LOW,
    0.1,
    0.0,
    "compare the package's clock and temperature under load, BIOS profile and power caps with the others'",
)
_MODULE = "find the socket by that label in the server's manual, or in the BMC's event log, reseat the module, run the "
_MODULE += "burn-in again; if it is wrong again, replace it"
_PROCESSOR = "look for the part in the BMC's event log and in the kernel log (EDAC, mce); if they name none, exchange "
_PROCESSOR += "the package's memory with the other's, run the burn-in again, and replace what the fault moves with"
_COOL = "check that fans turn and air baffles are in place, then the package's heat sink"


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    how = limits.methods.stress_ng
    length = how.seconds if seconds is None else seconds
    argv = ("cpu-memory-load", str(length), str(how.memory_percent))
    return (Probe(_NAME, argv, timeout=length + _MARGIN_S),)


_RAN = Probe(_NAME, ("cpu-memory-load",))


def _outcome(readings: Readings) -> CpuMemoryLoad:
    result = readings.result(_RAN)
    if result.rc == _NOT_INSTALLED:
        remedy = "install stress-ng (the role burnin_tools does), then run the burn-in again"
        raise UnmeasuredError(f"stress-ng could not be started: {result.error_output}", remedy=remedy)
    return parse_cpu_memory_load(readings.text(_RAN))


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    outcome = _outcome(readings)
    wrong = [line for package in outcome.packages for line in package.wrong]
    modules = [_module(errors, outcome.seconds, wrong, expected.limits) for errors in outcome.modules]
    named = any(finding.verdict is Verdict.FAIL for finding in modules)
    found = [*modules, *(finding for package in outcome.packages for finding in _package(package, named=named))]
    found += missing(_NAME, len(outcome.packages), expected.sku.cpu_count, "processors")
    yield from found
    if outcome.packages and all(finding.verdict is Verdict.WARN for finding in found):
        yield _passed(outcome.packages)


def _module(errors: ModuleErrors, seconds: float, wrong: Sequence[str], limits: Limits) -> Finding:
    """Return the finding for a memory module with errors under the load, and wrong results without another cause."""
    limit = limits[MEMORY_CORRECTED_MAX]
    subject = f"{errors.name} ({errors.location})" if errors.location else errors.name
    cause = f"{errors.uncorrected or errors.corrected} {'un' if errors.uncorrected else ''}corrected memory errors"
    cause += f" in {seconds:.0f} s of load"
    bad = replace(_BAD, subject=subject, cause=_and(cause, wrong), remedy=_MODULE)
    if errors.uncorrected:
        return replace(
            bad,
            code=Code.MEMORY_UNCORRECTED,
            measured=Quantity(errors.uncorrected, "errors"),
            expected=exactly(0, "errors"),
        )
    bad = replace(
        bad,
        code=Code.MEMORY_CORRECTED_RATE,
        measured=Quantity(errors.corrected, "errors"),
        expected=limit.at_most,
    )
    if wrong or exceeds(errors.corrected, seconds, limit.value / _DAY_S):
        return bad
    remedy = "replace the module if later burn-ins find more errors"
    return replace(bad, verdict=Verdict.WARN, code=Code.MEMORY_CORRECTED, remedy=remedy)


def _package(outcome: PackageLoad, *, named: bool) -> Iterator[Finding]:
    """Yield a package's findings. `named`: a memory module has been found that explains wrong results."""
    subject = f"cpu {outcome.package}"
    bad = replace(_BAD, subject=subject, remedy=_PROCESSOR)
    if outcome.machine_checks:
        cause = _and(f"{outcome.machine_checks} machine check exceptions under load", outcome.wrong)
        raised = Quantity(outcome.machine_checks, "exceptions")
        bad = replace(bad, code=Code.CPU_MACHINE_CHECK, cause=cause)
        yield replace(bad, measured=raised, expected=exactly(0, "exceptions"))
    elif outcome.wrong and not named:
        yield replace(bad, cause=f"the package, or its memory, computes wrong results: {_first(outcome.wrong)}")
    elif not outcome.wrong and (why := _unmeasured(outcome)):
        remedy = "read stress-ng's output in the evidence, then run the burn-in again"
        yield inconclusive(_NAME, UnmeasuredError(f"{subject}: {why}", remedy=remedy), subject)
    if outcome.throttled:
        cause = f"heat slowed the package down {outcome.throttled} times under load"
        hot = replace(bad, verdict=Verdict.WARN, code=Code.CPU_THROTTLED, cause=cause, remedy=_COOL)
        yield replace(hot, measured=Quantity(outcome.throttled, "times"), expected=exactly(0, "times"))


def _and(cause: str, wrong: Sequence[str]) -> str:
    return f"{cause}, and wrong results: {_first(wrong)}" if wrong else cause


def _first(wrong: Sequence[str]) -> str:
    """Return the first wrong results: thousands of lines may be equal."""
    more = len(wrong) - _SHOWN
    return "; ".join(wrong[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _unmeasured(outcome: PackageLoad) -> str:
    """Return why it proves nothing; empty where it does."""
    if outcome.code is None:
        return f"stress-ng did not end in time and was killed; its last output: {outcome.last_line}"
    if outcome.code != 0:
        return f"stress-ng ended with exit code {outcome.code}: {outcome.last_line}"
    idle = [kind for kind in _KINDS if kind not in outcome.stressors or not outcome.stressors[kind].done]
    return f"stress-ng finished no work on {' and '.join(idle)}: it had too little time" if idle else ""


def _passed(packages: Sequence[PackageLoad]) -> Finding:
    memory = sum(package.memory_bytes for package in packages) / 2**30
    cpus = sum(package.cpus for package in packages)
    slowest = min(package.stressors["cpu"].rate for package in packages)
    cause = f"{cpus} CPUs and {memory:.0f} GiB of memory computed without an error; the slowest package is shown"
    return passed(_NAME, cause, measured=Quantity(slowest, "bogo-ops/s"))


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for package in _outcome(readings).packages:
        if package.code == 0 and "cpu" in package.stressors and package.stressors["cpu"].done:
            rate = package.stressors["cpu"].rate
            yield Sample(node, CPU_RATE, rate, population, f"cpu {package.package}")


LOAD = NodeLoad(
    _NAME,
    _probes,
    _judge,
    (CPU_RATE,),
    _samples,
    (MEMORY_CORRECTED_MAX,),
    needs=frozenset({Area.PROCESSOR, Area.MEMORY}),
    about=frozenset({Area.PROCESSOR, Area.MEMORY}),
)
