"""A node at its burn-in: what was found of it so far, and how it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    EdgeError,
    EnvironmentBrokenError,
    ParseError,
    UntrustedError,
)
from clusterctl.fleet.event import Kind as EventKind
from clusterctl.fleet.finding import Evidence, Finding, Origin, worst
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.steps.executor.step import Outcome, node_event
from clusterctl_burnin.alike import Traits
from clusterctl_burnin.figures import to_data
from clusterctl_burnin.fleet_stats import Sample
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.model import Member
from clusterctl_burnin.loads.rank_placement import Seat
from clusterctl_burnin.probe import Readings, argv_for, parse_readings
from clusterctl_burnin.suites.suite import Suite

CALL_S = 20.0
"""A host that does not even run `true` within so long is silent."""


@dataclass(frozen=True, slots=True)
class SkuLimits:
    """What a node of one SKU is judged by."""

    sku: Sku
    limits: Limits


@dataclass(slots=True)
class NodeUnderTest:
    """One node at its burn-in. `figures`: what is compared with those of its fleet; `traits`: with its batch's."""

    node: NodeState
    serial: Serial
    host: HostAddress
    kind: SkuLimits
    findings: list[Finding] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    seat: Seat = field(default_factory=Seat)
    figures: tuple[Sample, ...] = ()
    traits: Traits = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        return worst(finding.verdict for finding in self.findings).admits

    @property
    def member(self) -> Member:
        return self.seat.member(self.node.name, self.host.address)

    def keep(self, evidence: Iterable[Evidence]) -> None:
        self.evidence.update((item.digest, item) for item in evidence)

    def outcome(self, suite: Suite) -> Outcome:
        data = {"population": self.kind.sku.name, "figures": to_data(self.figures)}
        facts = (node_event(self.node.id, EventKind.FIGURES_MEASURED, **data),) if self.figures else ()
        return Outcome(self.node.id, tuple(self.findings), tuple(self.evidence.values()), facts, suite.name)


@dataclass(frozen=True, slots=True)
class SessionFailure:
    """Why a session brought no readings: `words`, and what to do where the error knew. `lost`: there was no session at
    all, or it broke; else the host did talk to us.
    """

    words: str
    remedy: str = ""
    lost: bool = False


def read_probes(
    shell: Shell, host: HostAddress, stdin: bytes, deadline: Deadline, *, privileged: bool
) -> tuple[Readings | SessionFailure, tuple[Evidence, ...]]:
    """Readings of one session, or why there are none; never an exception for what a host does wrong."""
    try:
        ran = shell.run(host, argv_for(host.user, privileged=privileged), stdin, deadline)
    except (CancelledError, EnvironmentBrokenError):
        raise
    except ClusterctlError as error:
        return _no_session(error), ()
    try:
        readings = parse_readings(ran.value.stdout)
    except ParseError as error:
        said = ran.value.stderr.strip()[-200:]
        words = "its answer did not come in time" if ran.value.exit_status is None else error.message
        return SessionFailure(f"{words}{f' ({said})' if said else ''}"), ran.evidence
    origins = {item.origin for item in ran.evidence}  # what the site says, or the host's marker
    return (replace(readings, origin=Origin.SIMULATED) if Origin.SIMULATED in origins else readings), ()


def probe_ssh(shell: Shell, host: HostAddress, deadline: Deadline) -> SessionFailure | None:
    """Does the host still talk to us? None where it does, or where there is no time left to find out."""
    if deadline.remaining < CALL_S:
        return None
    try:
        ran = shell.run(host, ("true",), b"", deadline.within(CALL_S))
    except (CancelledError, EnvironmentBrokenError):
        raise
    except ClusterctlError as error:
        return _no_session(error)
    return (
        None
        if ran.value.exit_status is not None
        else SessionFailure(f"timed out: no answer within {CALL_S:.0f} s", lost=True)
    )


def _no_session(error: ClusterctlError) -> SessionFailure:
    knows = isinstance(error, (AuthenticationError, UntrustedError)) or type(error) is EdgeError
    return SessionFailure(error.message, error.remedy if knows else "", lost=True)
