"""All checks of a suite on one node: one SSH session, one answer, findings with one root per cause."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Evidence, Finding
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import Check, Expected, causes_of, inconclusive
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.probe import NO_REQUIREMENTS, PARALLEL, Probe, Readings, UnmeasuredError, script
from clusterctl_burnin.roots import link_roots

STORAGE_READ = "storage-read"
"""The program that alone is given the site's storage: its URL may be a secret."""
SESSION_MARGIN = 30.0
"""Seconds for login, start of Python, the way back, and for what cannot be killed (`GIVE_UP` in node/bundle.py,
`CHASE` in node/processes.py), on top of the probes' own time-outs.
"""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to send: `stdin` for `probe.argv_for(user, privileged=True)`, and how long it may take at most (seconds)."""

    checks: tuple[Check, ...]
    stdin: bytes
    timeout: float


@dataclass(frozen=True, slots=True)
class SweepFindings:
    """Findings, and the raw evidence that they name by digest."""

    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...]


def sweep(
    checks: Sequence[Check],
    patience: float = 1.0,
    requirements: HostRequirements = NO_REQUIREMENTS,
    budget: float | None = None,
) -> Sweep:
    """Return each probe of the checks, once, with `patience` times its time-out, and the site's requirements.

    `budget`: seconds after which no probe of them runs any longer; None: each has its own time-out.
    """
    return _sweep(tuple(checks), patience, requirements, budget)


@functools.lru_cache(maxsize=64)
def _sweep(checks: tuple[Check, ...], patience: float, requirements: HostRequirements, budget: float | None) -> Sweep:
    """Return the sweep, cached: thousands of nodes get the same few."""
    asked = distinct(probe for check in checks for probe in check.probes)
    probes = tuple(replace(probe, timeout=probe.timeout * patience) for probe in asked)
    if not any(probe.argv[0] == STORAGE_READ for probe in probes):
        requirements = requirements.without_storage()
    text = script(probes, requirements=requirements, patience=patience, budget=budget)
    return Sweep(checks, text, at_most(probes))


def at_most(probes: Sequence[Probe], parallel: int = PARALLEL) -> float:
    """Return seconds that a session with `probes` may take, even if each uses up its time-out."""
    in_turn = sum(probe.timeout for probe in probes if not probe.waits)
    before = sum(probe.timeout for probe in probes if probe.first)
    return before + in_turn / parallel + max((probe.timeout for probe in probes), default=0.0) + SESSION_MARGIN


def distinct(probes: Iterable[Probe]) -> tuple[Probe, ...]:
    """Return the probes, each once; two different ones of one name are a mistake in the checks."""
    found: dict[str, Probe] = {}
    for probe in probes:
        if found.setdefault(probe.name, probe) != probe:
            raise UsageError(f"two different probes are called {probe.name}", remedy="rename one of them")
    return tuple(found.values())


def judge(checks: Sequence[Check], readings: Readings, expected: Expected) -> SweepFindings:
    """Return the findings: each check reports what it found, or why it found nothing."""
    return judge_all(checks, [(readings, expected)])[0]


def judge_all(checks: Sequence[Check], nodes: Sequence[tuple[Readings, Expected]]) -> tuple[SweepFindings, ...]:
    """Return the findings of each node. One check judges all nodes, and then the next one does."""
    found: list[list[Finding]] = [[] for _ in nodes]
    for check in checks:
        for own, (readings, expected) in zip(found, nodes, strict=True):
            own.extend(check.findings(readings, expected))
    causes = causes_of(checks)
    return tuple(
        SweepFindings(link_roots(own, causes), tuple(readings.evidence().values()))
        for own, (readings, _) in zip(found, nodes, strict=True)
    )


def unmeasured(checks: Sequence[Check], cause: str, remedy: str) -> tuple[Finding, ...]:
    """Return the findings where the node's answer never came or was no answer: one root, and every check reports."""
    error = UnmeasuredError(cause, remedy=remedy, code=Code.NO_SESSION, fault="session")
    return link_roots(inconclusive(check.name, error) for check in checks)
