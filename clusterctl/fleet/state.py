"""Where a node stands and why: the whole of it, and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.node import Inventory, Location, Mac, NodeId, Serial, Stage, Verb


@dataclass(frozen=True, slots=True)
class OpenAct:
    """A side effect that was intended and whose result nobody wrote down: look at the world before acting again."""

    act: str
    target: str
    seq: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """Where a node stands, and why.

    cause, remedy  in plain words, of what keeps it back; empty when nothing does
    stopped_at     the step that held or quarantined it
    attempts       how often the step that comes next was started since the node last moved
    inventory      what its BMC last told of it
    reports        the last report of each step by its name, and when it was written
    """

    id: NodeId
    name: str = ""
    stage: Stage = Stage.SEEN
    since: datetime | None = None
    verdict: Verdict = Verdict.INCONCLUSIVE
    cause: str = ""
    remedy: str = ""
    stopped_at: Verb | None = None
    bmc: str = ""
    location: Location = field(default_factory=Location)
    expected_serial: Serial | None = None
    serial: Serial | None = None
    inventory: Inventory | None = None
    sku: str = ""
    root_disk: Serial | None = None
    address: str = ""
    host_key: str = ""
    attempts: int = 0
    acts: Mapping[str, int] = field(default_factory=dict)
    open_acts: tuple[OpenAct, ...] = ()
    reports: Mapping[str, Report] = field(default_factory=dict)
    reported_at: Mapping[str, datetime] = field(default_factory=dict)
    events: int = 0
    last_seq: int = 0

    @property
    def macs(self) -> tuple[Mac, ...]:
        """Of its Ethernet ports, as far as its BMC knows them."""
        nics = self.inventory.nics if self.inventory else None
        return tuple(nic.mac for nic in nics or ())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What keeps the node back: the root findings of the step that stopped it."""
        if self.stopped_at is None or self.stopped_at.value not in self.reports:
            return ()
        return self.reports[self.stopped_at.value].roots()

    @property
    def next_verb(self) -> Verb | None:
        return self.stage.next_verb


@dataclass(frozen=True, slots=True)
class Summary:
    """A node in one line: what lists and plans need of thousands of nodes."""

    id: NodeId
    name: str
    stage: Stage
    verdict: Verdict
    since: datetime | None
    cause: str
    remedy: str
    stopped_at: Verb | None
    bmc: str
    location: Location
    expected_serial: Serial | None
    serial: Serial | None
    sku: str
    root_disk: Serial | None
    address: str

    @property
    def next_verb(self) -> Verb | None:
        return self.stage.next_verb


def summarise(state: NodeState) -> Summary:
    return Summary(**{name: getattr(state, name) for name in Summary.__slots__})
