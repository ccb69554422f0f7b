"""The type of a check: readings of a node in, findings out. What was not measured never passes."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from clusterctl.fleet.errors import ClusterctlError, ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.node import Inventory, Serial
from clusterctl_burnin.fleet_stats import Metric, Sample
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError


@dataclass(frozen=True, slots=True)
class Expected:
    """What the node should be: everything that a judgement needs in addition to the readings.

    inventory        what the BMC reports, so that an absent part can be named; None where unknown
    driver_version   the NVIDIA driver that was configured; empty where the site names none
    network          the host's own, empty where the site has none; the error where it cannot be determined
    known_lines      kernel messages that this site declares harmless, in addition to the shipped ones
    sent, received   when the controller (its clock, UTC) began to send the probes and had the answer
    """

    name: str
    serial: Serial
    sku: Sku
    limits: Limits
    sent: datetime
    received: datetime
    driver_version: str = ""
    inventory: Inventory | None = None
    network: HostNetwork | ClusterctlError = field(default_factory=HostNetwork)
    known_lines: KnownLines = field(default_factory=KnownLines)


T = TypeVar("T")

Judge = Callable[[Readings, Expected], Iterable[Finding]]


SamplesOf = Callable[[str, str, Readings], Iterable[Sample]]
"""Returns the samples of a node of a population from its readings; may raise `UnmeasuredError` and `ParseError`."""


def no_samples(node: str, population: str, readings: Readings) -> tuple[Sample, ...]:
    """Return no samples: the figures are not compared."""
    del node, population, readings
    return ()


class Area(enum.Enum):
    """What a check is about. Reports and suites list the checks in this order."""

    NODE = "node"
    NETWORK = "network"
    SYSTEM = "operating system"
    GPU = "GPUs"
    PCIE = "PCIe"
    NVLINK = "NVLink"
    INFINIBAND = "InfiniBand"
    PROCESSOR = "processors"
    MEMORY = "memory"
    STORAGE = "storage"
    COOLING = "cooling"
    SERVICES = "services"


EVERY_AREA = frozenset(Area)
JudgeLoad = Callable[[Readings, Readings, Expected], Iterable[Finding]]
"""Judges a load by the readings before and after it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A check with failures that explain a bad finding of another check.

    same_part   of the same part only
    unmeasured  only where that other check could not measure
    """

    check: str
    same_part: bool = False
    unmeasured: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """What a check sees of the time between two readings, one before a load and one after it.

    probes  are read both times; each reading is one state of counters or of a log
    judge   yields what was added between the two; nothing where nothing was. It may raise as the judge of a check may
    limits  of a load, which this judge alone reads: one without a figure is the load's to report
    """

    probes: tuple[Probe, ...]
    judge: JudgeLoad
    limits: tuple[LimitKey, ...] = ()


MALFORMED = (ArithmeticError, LookupError, RecursionError, ValueError)
"""Errors that Python raises where text is not the number, address or list that a parser takes it for."""
_SOUND = frozenset({Verdict.PASS, Verdict.NOT_APPLICABLE})
EVERY_SUITE = frozenset({"bootstrap", "hunt", "hunt-training", "nightly", "revalidate", "soak"})


@dataclass(frozen=True, slots=True)
class Check:
    """One question about a node. The docstring of its module describes it in the documentation.

    judge    may raise `UnmeasuredError` and `ParseError`: the check is then INCONCLUSIVE, as it is without any finding
    limits   the limits that it judges by; a limits file may change those that have a default, and must have the others
    metrics  figures that are compared over the fleet; `samples` reads them from the probes' output
    causes   checks with failures that explain this one's; they precede it in suites and reports
    suites   the shipped suites that require it
    after_loads  whether it runs again after the loads, which provoke errors that an idle node does not have
    idle_only    whether it needs a node without jobs: a job would fail it, or it would disturb the job
    watch        how it judges the time of a load; None for a check that does not judge a time
    """

    name: str
    probes: tuple[Probe, ...]
    judge: Judge
    area: Area = Area.NODE
    limits: tuple[LimitKey, ...] = ()
    causes: tuple[Cause, ...] = ()
    suites: frozenset[str] = EVERY_SUITE
    metrics: tuple[Metric, ...] = ()
    samples: SamplesOf = no_samples
    after_loads: bool = False
    idle_only: bool = False
    watch: Watch | None = None

    def findings(self, readings: Readings, expected: Expected) -> tuple[Finding, ...]:
        """Judge the readings; each finding names its evidence and the limits that it was judged by.

        Output that no parser foresaw (a number of 5,000 digits, an address that is none) ends like output that a parser
        refuses. What the check found before it could not go on stays, except what passed.
        """
        found = self._judged(lambda: self.judge(readings, expected), self.probes)
        if not found:
            found = [inconclusive(self.name, UnmeasuredError(f"{self.name} found nothing to judge"))]
        judged = without_figure(self.name, self.limits, expected.limits, found)
        evidence = readings.digests(self.probes)
        return tuple(finding.judged_by(expected.limits.digest, evidence) for finding in judged)

    def found_during(self, before: Readings, after: Readings, expected: Expected) -> tuple[Finding, ...]:
        """Judge the time between two readings; empty where nothing was added, or where the check has no `watch`.
        NOT_APPLICABLE names why the check does not watch this node.

        What could not be compared is INCONCLUSIVE. Each finding names both readings as its evidence.
        """
        watch = self.watch
        if watch is None:
            return ()
        found = self._judged(lambda: watch.judge(before, after, expected), watch.probes)
        evidence = (*before.digests(watch.probes), *after.digests(watch.probes))
        bad = [finding for finding in found if finding.verdict is not Verdict.PASS]
        return tuple(replace(f, evidence=evidence, limits=expected.limits.digest) for f in bad)

    def _judged(self, judge: Callable[[], Iterable[Finding]], probes: tuple[Probe, ...]) -> list[Finding]:
        """Return what `judge` found; what passed is left out, and the reason added, where it could not go on."""
        found: list[Finding] = []
        try:
            for finding in judge():
                found.append(finding)  # noqa: PERF402 — what was found before an error stays
        except (UnmeasuredError, ParseError) as error:
            reason: ClusterctlError = error
        except MALFORMED as error:
            tools = ", ".join(probe.argv[0] for probe in probes)
            reason = ParseError(f"the output is malformed ({type(error).__name__})", where=tools)
        else:
            return found
        return [*(finding for finding in found if finding.verdict not in _SOUND), inconclusive(self.name, reason)]


def without_figure(
    name: str, keys: Iterable[LimitKey], limits: Limits, found: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return the findings of a check or load; one that lacks a figure does not pass: INCONCLUSIVE stands for what did.

    What fails by other figures, or does not apply to the node, stays as it is.
    """
    lacking = [key for key in keys if key.name in limits.open]
    judged = [one for one in found if one.verdict in (Verdict.PASS, Verdict.WARN)]
    if not lacking or not judged:
        return tuple(found)
    return (*(one for one in found if one.verdict is not Verdict.PASS), _no_limit(name, lacking, limits, judged[0]))


def _no_limit(name: str, lacking: Sequence[LimitKey], limits: Limits, judged: Finding) -> Finding:
    names = ", ".join(f"{key.name} ({key.unit})" for key in lacking)
    return Finding(
        check=name,
        verdict=Verdict.INCONCLUSIVE,
        code=Code.NO_LIMIT,
        measured=judged.measured if len(lacking) == 1 else None,
        cause=f"the limits {limits.name} have no figure for {names}",
        remedy=f"write the figure into the site's limits/{limits.name}.yml; clusterctl sku calibrate proposes one",
        evidence=judged.evidence,
        limits=limits.digest,
    )


def in_order(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the checks by area and name, each after the checks that are its causes; `ValueError` for a circle."""
    areas = {area: number for number, area in enumerate(Area)}
    waiting = {check.name: check for check in sorted(checks, key=lambda check: (areas[check.area], check.name))}
    found: list[Check] = []
    while waiting:
        ready = next((c for c in waiting.values() if not any(cause.check in waiting for cause in c.causes)), None)
        if ready is None:
            raise ValueError(f"these checks are causes of each other: {', '.join(waiting)}")
        found.append(waiting.pop(ready.name))
    return tuple(found)


def causes_of(checks: Iterable[Check]) -> Mapping[str, tuple[Cause, ...]]:
    """Return the declared causes by the name of the check that they explain."""
    return {check.name: check.causes for check in checks}


def inconclusive(check: str, error: ClusterctlError, subject: str = "node", serial: str = "") -> Finding:
    """Return the finding of a check that could not measure."""
    code, fault = (error.code, error.fault) if isinstance(error, UnmeasuredError) else (Code.NOT_MEASURED, "")
    if isinstance(error, ParseError):
        code, fault = Code.OUTPUT_UNREADABLE, error.where
        cause = f"{error.where}: {error.message}" if error.where else error.message
        remedy = error.remedy or (
            "read the raw output in the evidence; another version of the tool may print another format"
        )
    else:
        cause, remedy = error.message, error.remedy or "run the burn-in again"
    return Finding(
        check=check,
        verdict=Verdict.INCONCLUSIVE,
        code=code,
        fault=fault,
        subject=subject,
        cause=cause,
        remedy=remedy,
        serial=serial,
        deterministic=False,
    )


def known(value: T | None, what: str) -> T:
    """Return the value. Raises `UnmeasuredError` where the tool did not report `what`."""
    if value is None:
        raise UnmeasuredError(
            f"the tool does not report {what}",
            code=Code.NOT_REPORTED,
            fault=what,
            remedy="read the raw output in the evidence",
        )
    return value
