"""A node at its burn-in: what was found of it so far, and how it is asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterctl.burnin.limit import Limits
from clusterctl.burnin.loads.model import Answer, Member
from clusterctl.burnin.probe import argv_for, parse_readings
from clusterctl.burnin.suite import Suite
from clusterctl.fleet.errors import CancelledError, ClusterctlError, EnvironmentBrokenError, ParseError
from clusterctl.fleet.finding import Evidence, Finding, worst
from clusterctl.fleet.node import Serial
from clusterctl.fleet.sku import Sku
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Shell
from clusterctl.steps.step import Outcome


@dataclass(frozen=True, slots=True)
class Kind:
    """What a node of one SKU is judged by."""

    sku: Sku
    limits: Limits


@dataclass(slots=True)
class Guest:
    """One node at its burn-in."""

    node: NodeState
    serial: Serial
    host: HostAddress
    kind: Kind
    findings: list[Finding] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    devices: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return worst(finding.verdict for finding in self.findings).admits

    @property
    def member(self) -> Member:
        return Member(self.node.name, self.host.address, self.devices)

    def keep(self, evidence: Iterable[Evidence]) -> None:
        self.evidence.update((item.digest, item) for item in evidence)

    def outcome(self, suite: Suite) -> Outcome:
        return Outcome(self.node.id, tuple(self.findings), tuple(self.evidence.values()), suite=suite.name)


def ask(
    shell: Shell, host: HostAddress, stdin: bytes, deadline: Deadline, *, privileged: bool
) -> tuple[Answer, tuple[Evidence, ...]]:
    """Readings of one session, or why there are none; never an exception for what a host does wrong."""
    try:
        ran = shell.run(host, argv_for(host.user, privileged=privileged), stdin, deadline)
    except (CancelledError, EnvironmentBrokenError):
        raise
    except ClusterctlError as error:
        return error.message, ()
    try:
        return parse_readings(ran.value.stdout), ()
    except ParseError as error:
        said = ran.value.stderr.strip()[-200:]
        return f"{error.message}{f' ({said})' if said else ''}", ran.evidence
