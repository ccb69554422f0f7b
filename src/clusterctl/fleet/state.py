"""Where a node stands and why: the whole of it, and in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.acts import Act, Intent, Intents, intent_of
from clusterctl.fleet.decisions.waiver import Waiver
from clusterctl.fleet.durations import utc_text
from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Inventory, Location, Mac, NodeId, RevalidationOrigin, Serial, Stage, Step


@dataclass(frozen=True, slots=True)
class OperatorHold:
    """No step touches the node from `at` on, until it is released or `until` has passed (None: until released).

    plan  of the rolling change that holds the node while it changes its machine; empty for an operator's hold
    """

    reason: str
    by: str
    at: datetime
    until: datetime | None = None
    plan: str = ""

    def active(self, now: datetime) -> bool:
        return self.until is None or now < self.until

    def __str__(self) -> str:
        until = "until released" if self.until is None else f"until {utc_text(self.until)}"
        return f"held by {self.by} {until}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Revalidation:
    """What ordered a node's revalidation, and why."""

    origin: RevalidationOrigin
    reason: str


class _StageView:
    """What follows from a node's stage and hold alone."""

    __slots__ = ()
    stage: Stage
    hold: OperatorHold | None

    @property
    def next_step(self) -> Step | None:
        return self.stage.next_step

    def held(self, now: datetime) -> bool:
        """Return whether an operator holds the node: no step may touch it."""
        return self.hold is not None and self.hold.active(now)

    def in_pool(self, now: datetime) -> bool:
        """Return whether the node is gold and has no hold."""
        return self.stage is Stage.GOLD and not self.held(now)


@dataclass(frozen=True, slots=True)
class NodeState(_StageView):
    """Where a node stands, and why.

    cause, remedy  as text, of what keeps the node back; empty where nothing does
    stopped_at     the step that held or quarantined it
    stopped_by     the operator who decided it; empty where the gate did
    hold, waivers  operators' decisions, until they are revoked or end
    former_serials of machines that were this node before their chassis or board was swapped
    intents        the last intent of each act on it, and its result
    attempts       how often the step that comes next was started since the node last moved
    inventory      what its BMC last reported
    boot_mac       of the port that it boots from, by the site; None: as the BMC reports it
    reports        the last report of each step by its name, and when it was written
    reinstall      why its OS is to be installed again, until that begins; empty where it was not ordered
    revalidation   the operator or rule and the reason of its revalidation, until it is gold again; None without one
    admitted_at    when the node last became gold as this machine, with this OS
    adopted        it was installed already when it was taken in: clusterctl never writes its OS
    progress_at    until when the machine's messages about its install are recorded, and those of that instant
    """

    id: NodeId
    name: str = ""
    stage: Stage = Stage.SEEN
    since: datetime | None = None
    verdict: Verdict = Verdict.INCONCLUSIVE
    cause: str = ""
    remedy: str = ""
    stopped_at: Step | None = None
    bmc: str = ""
    location: Location = field(default_factory=Location)
    expected_serial: Serial | None = None
    serial: Serial | None = None
    inventory: Inventory | None = None
    sku: str = ""
    root_disk: Serial | None = None
    root_rule: RootDisk | None = None
    address: str = ""
    host_key: str = ""
    attempts: int = 0
    intents: Intents = ()
    reports: Mapping[str, Report] = field(default_factory=dict)
    reported_at: Mapping[str, datetime] = field(default_factory=dict)
    events: int = 0
    last_seq: int = 0
    stopped_by: str = ""
    hold: OperatorHold | None = None
    waivers: tuple[Waiver, ...] = ()
    former_serials: tuple[Serial, ...] = ()
    boot_mac: Mac | None = None
    reinstall: str = ""
    progress_at: datetime | None = None
    progress: tuple[str, ...] = ()
    revalidation: Revalidation | None = None
    admitted_at: datetime | None = None
    adopted: bool = False

    @property
    def open_acts(self) -> Intents:
        """Return the intents without a result: look at the machine before acting again."""
        return tuple(intent for intent in self.intents if intent.open)

    def intent(self, act: Act) -> Intent | None:
        """Return the last intent of an act; None where it was never intended."""
        return intent_of(self.intents, act)

    @property
    def aliases(self) -> tuple[Serial, ...]:
        """Return the other serials that its BMC gives for the machine."""
        return self.inventory.aliases if self.inventory else ()

    @property
    def macs(self) -> tuple[Mac, ...]:
        """Return the MACs of its Ethernet ports, as far as its BMC knows them; else the boot MAC of the site."""
        nics = self.inventory.nics if self.inventory else None
        reported = tuple(nic.mac for nic in nics or ())
        return reported or ((self.boot_mac,) if self.boot_mac else ())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What keeps the node back: the root findings of the step that stopped it."""
        if self.stopped_at is None or self.stopped_by or self.stopped_at.value not in self.reports:
            return ()
        return self.reports[self.stopped_at.value].roots()


@dataclass(frozen=True, slots=True)
class NodeSummary(_StageView):
    """A node in one line: what lists and plans need of thousands of nodes."""

    id: NodeId
    name: str
    stage: Stage
    verdict: Verdict
    since: datetime | None
    cause: str
    remedy: str
    stopped_at: Step | None
    bmc: str
    location: Location
    expected_serial: Serial | None
    serial: Serial | None
    sku: str
    root_disk: Serial | None
    address: str
    stopped_by: str = ""
    hold: OperatorHold | None = None
    waivers: tuple[Waiver, ...] = ()
    boot_mac: Mac | None = None
    aliases: tuple[Serial, ...] = ()
    adopted: bool = False


def summarise(state: NodeState) -> NodeSummary:
    return NodeSummary(**{name: getattr(state, name) for name in NodeSummary.__slots__})
