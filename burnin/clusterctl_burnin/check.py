"""Checks: readings of a node in, findings out. Nothing that was not measured passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from clusterctl.fleet.errors import ClusterctlError, ParseError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.node import Inventory, Serial
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError


@dataclass(frozen=True, slots=True)
class Expected:
    """What the node should be: everything that a judgement needs beside the readings.

    inventory        what the BMC told of it, so that an absent part can be named; None where unknown
    driver_version   the NVIDIA driver that was configured; empty where nobody said
    network          the host's own, empty where the site says nothing of it; the error where it cannot be told
    known_lines      kernel messages that this site calls harmless, beside the shipped ones
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


@dataclass(frozen=True, slots=True)
class Check:
    """One question asked of a node. `judge` may raise `UnmeasuredError` and `ParseError`: the check is then
    INCONCLUSIVE; so it is when `judge` finds nothing at all.
    """

    name: str
    probes: tuple[Probe, ...]
    judge: Judge

    def findings(self, readings: Readings, expected: Expected) -> tuple[Finding, ...]:
        """Judge the readings; each finding names its evidence and the limits that it was judged by."""
        try:
            found = tuple(self.judge(readings, expected))
        except (UnmeasuredError, ParseError) as error:
            found = (inconclusive(self.name, error),)
        if not found:
            found = (inconclusive(self.name, UnmeasuredError(f"{self.name} found nothing to judge")),)
        evidence = readings.digests(self.probes)
        return tuple(replace(f, evidence=f.evidence or evidence, limits=expected.limits.digest) for f in found)


def inconclusive(check: str, error: ClusterctlError, subject: str = "node", serial: str = "") -> Finding:
    """What stands in for a judgement when nothing was measured."""
    if isinstance(error, ParseError):
        cause = f"{error.where}: {error.message}" if error.where else error.message
        remedy = error.remedy or "look at the raw output in the evidence; another version of the tool may print it so"
    else:
        cause, remedy = error.message, error.remedy or "run the burn-in again"
    return Finding(
        check=check,
        verdict=Verdict.INCONCLUSIVE,
        subject=subject,
        cause=cause,
        remedy=remedy,
        serial=serial,
        deterministic=False,
    )


def known(value: T | None, what: str) -> T:
    """The value, or `UnmeasuredError` where the tool did not tell `what`."""
    if value is None:
        raise UnmeasuredError(f"the tool does not tell {what}", remedy="see the raw output in the evidence")
    return value
