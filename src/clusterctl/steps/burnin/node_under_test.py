"""A node under test: what its burn-in has found so far, and how its probes are read over SSH."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.errors import (
    AuthenticationError,
    ClusterctlError,
    EdgeError,
    NoSshError,
    OutcomeUnknownError,
    SshFailure,
    UntrustedError,
)
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Evidence, Finding, Origin, worst
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.payloads.node import FiguresMeasured
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.step import StepOutcome
from clusterctl_burnin.alike import Traits
from clusterctl_burnin.figures import to_payload
from clusterctl_burnin.fleet_stats import Sample
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.loads.obstacles import needs_of, obstacle
from clusterctl_burnin.loads.rank_placement import Seat
from clusterctl_burnin.probe import Readings, argv_for, parse_readings
from clusterctl_burnin.suites.suite import Suite

ALIVE_S = 20.0
"""Seconds: a host that does not run `true` within them is silent."""


@dataclass(frozen=True, slots=True)
class SkuLimits:
    """The limits by which a node of one SKU is judged."""

    sku: Sku
    limits: Limits


@dataclass(frozen=True, slots=True)
class WatchReading:
    """What the watch of the loads read of a node, or the reason why nothing; the controller's time (UTC) of it."""

    readings: Readings | str
    at: datetime


@dataclass(frozen=True, slots=True)
class BmcReading:
    """What a BMC reports of its machine, and the controller's time (UTC) of it."""

    at: datetime
    inventory: Inventory
    entries: tuple[LogEntry, ...]
    evidence: tuple[Evidence, ...]


def unknown(found: Iterable[Finding], known: Iterable[Finding]) -> list[Finding]:
    """Return the findings that `known` does not have by check, part and code, or has with a lighter verdict only."""
    ranks: dict[tuple[str, str, Code], int] = {}
    for one in known:
        key = (one.check, one.subject, one.code)
        ranks[key] = max(one.verdict.rank, ranks.get(key, -1))
    return [one for one in found if one.verdict.rank > ranks.get((one.check, one.subject, one.code), -1)]


@dataclass(frozen=True, slots=True)
class SamplerSession:
    """A session that samples a node while loads run: its thread, and what ends it."""

    thread: threading.Thread
    ended: threading.Event


@dataclass(slots=True)
class NodeUnderTest:
    """One node at its burn-in.

    figures  are compared with those of all nodes of its SKU
    traits   are compared with those of its batch
    shared_slots   adapters whose slots report too little power on other nodes of its SKU too, where that was looked up
    seen, watched, disturbed   of the watch: its last reading; its findings that are not among the node's yet; by
             load, the finding that stands in place of a result that does not count
    sampler, samplers  of the watch, too: the session that samples the node, where one runs, and how many there were
    bmc      what its BMC reported before the loads, or why it did not
    recorded False where nothing records the findings: no evidence is kept
    """

    state: NodeState
    serial: Serial
    host: HostAddress
    profile: SkuLimits
    findings: list[Finding] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    placement: Seat = field(default_factory=Seat)
    figures: tuple[Sample, ...] = ()
    traits: Traits = field(default_factory=dict)
    shared_slots: frozenset[str] = frozenset()
    seen: WatchReading | None = None
    sampler: SamplerSession | None = None
    samplers: int = 0
    watched: list[Finding] = field(default_factory=list)
    disturbed: dict[str, Finding] = field(default_factory=dict)
    bmc: BmcReading | ClusterctlError | None = None
    recorded: bool = True

    @property
    def name(self) -> str:
        return self.state.name

    @property
    def sku(self) -> Sku:
        return self.profile.sku

    @property
    def limits(self) -> Limits:
        return self.profile.limits

    @property
    def healthy(self) -> bool:
        found = (*self.findings, *self.watched, *self.disturbed.values())
        return worst(finding.verdict for finding in found).admits

    def fit_for(self, load: str) -> bool:
        """Return whether no finding keeps the node from a load of the registry."""
        return obstacle(needs_of(load), self.findings) is None

    @property
    def member(self) -> Participant:
        return self.placement.member(self.name, self.host.address)

    def keep(self, evidence: Iterable[Evidence]) -> None:
        """Keep the evidence until it is recorded; nothing where no journal will hold it."""
        if self.recorded:
            self.evidence.update((item.digest, item) for item in evidence)

    def _counted(self) -> Iterator[Finding]:
        """Yield the findings; a load that ended well and was disturbed did not pass."""
        marked = set()
        for finding in self.findings:
            if finding.check not in self.disturbed or not finding.verdict.admits:
                yield finding
            elif finding.check not in marked:
                marked.add(finding.check)
                yield self.disturbed[finding.check]

    def outcome(self, suite: Suite) -> StepOutcome:
        """Return what is to be recorded of it, its figures among that."""
        measured = FiguresMeasured(population=self.sku.name, figures=to_payload(self.figures))
        facts = (node_event(self.state.id, measured),) if self.figures else ()
        return StepOutcome(self.state.id, tuple(self._counted()), tuple(self.evidence.values()), facts, suite.name)


@dataclass(frozen=True, slots=True)
class SessionFailure:
    """Why a session brought no readings: `words`, and a remedy where the error has one.

    `lost`: there was no session at all, or it broke; otherwise the host did answer. `failure`: the kind of a lost one.
    """

    cause: str
    remedy: str = ""
    lost: bool = False
    failure: SshFailure = SshFailure.UNKNOWN


def read_probes(
    shell: Shell, host: HostAddress, stdin: bytes, deadline: Deadline, *, privileged: bool
) -> tuple[Readings | SessionFailure, tuple[Evidence, ...]]:
    """Return the readings of one session, or why there are none; never raise for what a host does wrong."""
    try:
        ran = shell.run(host, argv_for(host.user, privileged=privileged), stdin, deadline)
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        return _no_session(peer_error(error, host.name)), ()
    try:
        readings = parse_readings(ran.value.stdout)
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        broken = peer_error(error, host.name)
        printed = ran.value.stderr.strip()[-200:]
        words = "its answer did not come in time" if ran.value.exit_status is None else broken.message
        return SessionFailure(f"{words}{f' ({printed})' if printed else ''}"), ran.evidence
    origins = {item.origin for item in ran.evidence}  # simulated by the site's setting or the host's marker
    return (replace(readings, origin=Origin.SIMULATED) if Origin.SIMULATED in origins else readings), ()


def unanswered(shell: Shell, host: HostAddress, deadline: Deadline) -> SessionFailure | None:
    """Return why the host does not answer; None where it does, or where no time is left to find out."""
    if deadline.remaining < ALIVE_S:
        return None
    try:
        ran = shell.run(host, ("true",), b"", deadline.within(ALIVE_S))
    except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
        return _no_session(peer_error(error, host.name))
    if ran.value.exit_status is not None:
        return None
    words = f"a command did not end within {ALIVE_S:.0f} s"
    return SessionFailure(words, lost=True, failure=SshFailure.NO_GREETING)


def _no_session(error: ClusterctlError) -> SessionFailure:
    has_remedy = isinstance(error, (AuthenticationError, UntrustedError)) or type(error) is EdgeError
    match error:
        case NoSshError():
            failure = error.failure
        case OutcomeUnknownError():
            failure = SshFailure.BROKEN
        case _:
            failure = SshFailure.UNKNOWN
    return SessionFailure(error.message, error.remedy if has_remedy else "", lost=True, failure=failure)
