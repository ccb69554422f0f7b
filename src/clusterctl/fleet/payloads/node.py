"""What is known of a node and what happens to it on its way to gold: payloads of the stream `node`."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.acts import DETAILS, Act, ActResult, AnyDetails
from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.finding import Report, Verdict
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Inventory, Mac, Serial, Stage, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDescribed(Payload):
    """What the site defines for a node. `serial` and `boot_mac` are empty or None where the site does not give them."""

    kind: ClassVar = Kind.NODE_DESCRIBED
    name: str
    bmc: str
    rack: str = ""
    unit: int | None = None
    serial: Serial | None = None
    boot_mac: Mac | None = None

    def __str__(self) -> str:
        return f"in the site: {self.name}, BMC {self.bmc or 'none'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeIdentified(Payload):
    """What a discover has read from the BMC.

    `sku` is empty where the machine fits none. `root_disk` is None where no drive fits the SKU's rule; `root_rule` the
    rule where the host or the installer names the root disk.
    """

    kind: ClassVar = Kind.NODE_IDENTIFIED
    inventory: Inventory
    sku: str
    root_disk: Serial | None = None
    root_rule: RootDisk | None = None

    def __str__(self) -> str:
        found = self.inventory
        sku = f"SKU {self.sku}" if self.sku else "no SKU"
        return f"identified: {found.manufacturer} {found.model} {found.serial}, {sku}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAddressed(Payload):
    kind: ClassVar = Kind.NODE_ADDRESSED
    address: str

    def __str__(self) -> str:
        return f"reached at {self.address}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RootDiskProven(Payload):
    """`disk`: serial, or WWN of a drive without one, of the drive that the installed host runs from."""

    kind: ClassVar = Kind.ROOT_DISK_PROVEN
    disk: Serial

    def __str__(self) -> str:
        return f"runs from root disk {self.disk}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKeyPinned(Payload):
    """`public`: the host's SSH public key, as `known_hosts` has it."""

    kind: ClassVar = Kind.HOST_KEY_PINNED
    public: str

    def __str__(self) -> str:
        return "host key pinned"


class HostKeyTrust(enum.StrEnum):
    """What vouches for the SSH host key of an adopted host: an operator, or a certificate of the site's authority."""

    OPERATOR = "operator"
    AUTHORITY = "authority"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAdopted(Payload):
    """A machine that is installed already is taken in.

    address   of its host
    public    the host's SSH public key, as `known_hosts` has it
    trust     what vouches for that key
    serial    of the machine, as its host reports it
    """

    kind: ClassVar = Kind.NODE_ADOPTED
    address: str
    public: str
    trust: HostKeyTrust
    serial: Serial

    def __str__(self) -> str:
        by = "an operator" if self.trust is HostKeyTrust.OPERATOR else "a certificate"
        return f"adopted: serial {self.serial} at {self.address}, its host key confirmed by {by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcPasswordChanged(Payload):
    """`number` counts the node's passwords; the vault has the password itself."""

    kind: ClassVar = Kind.BMC_PASSWORD_CHANGED
    number: int
    user: str
    serial: str = ""

    def __str__(self) -> str:
        return f"BMC: password {self.number} of {self.user} is in use"


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcPasswordShared(Payload):
    """The installer was given a BMC password. `sought_by_name`: without the node's MAC addresses."""

    kind: ClassVar = Kind.BMC_PASSWORD_SHARED
    number: int
    result: str
    sought_by_name: bool = False

    def __str__(self) -> str:
        return f"the installer and password {self.number}: {self.result}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Payload):
    kind: ClassVar = Kind.STEP_STARTED
    step: Step

    def __str__(self) -> str:
        return f"{self.step.value} started"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallProgress(Payload):
    """A message of the machine about its install, and when it sent it."""

    kind: ClassVar = Kind.INSTALL_PROGRESS
    at: datetime
    message: str

    def __str__(self) -> str:
        return f"install: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActIntended(Payload):
    """A side effect is about to happen. `acts.DETAILS` has the type of the details of each act."""

    kind: ClassVar = Kind.ACT_INTENDED
    act: Act
    target: str
    reason: str = ""
    details: AnyDetails | None = None

    def __post_init__(self) -> None:
        Payload.__post_init__(self)
        wanted = DETAILS.get(self.act)
        if (type(self.details) if self.details is not None else None) is not wanted:
            raise ValueError(f"{self.act.value} has details of another act")

    def __str__(self) -> str:
        return f"about to {self.act.value} on {self.target}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActObserved(Payload):
    """What came of a side effect. `component`: of a firmware act. `message` is for operators."""

    kind: ClassVar = Kind.ACT_OBSERVED
    act: Act
    result: ActResult = ActResult.DONE
    message: str = ""
    component: str = ""

    def __str__(self) -> str:
        return f"{self.act.value}: {self.result.value}" + (f", {self.message}" if self.message else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRecorded(Payload):
    kind: ClassVar = Kind.REPORT_RECORDED
    report: Report

    def __str__(self) -> str:
        tally = Counter(finding.verdict.value for finding in self.report.findings)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(tally.items()))
        return f"{self.report.step} reported: {counts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value: `subject` and `serial` name the part."""

    metric: str
    subject: str
    serial: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FiguresMeasured(Payload):
    """Figures of a node. `population`: the SKU of the nodes that are compared."""

    kind: ClassVar = Kind.FIGURES_MEASURED
    population: str
    figures: tuple[Figure, ...]

    def __str__(self) -> str:
        return f"{len(self.figures)} figures kept, to be compared with other nodes of its SKU"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageAdvanced(Payload):
    """The gate let the node go on."""

    kind: ClassVar = Kind.STAGE_ADVANCED
    to: Stage
    verdict: Verdict

    def __str__(self) -> str:
        return f"→ {self.to.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHeld(Payload):
    """The gate left the node where it is."""

    kind: ClassVar = Kind.NODE_HELD
    step: Step
    cause: str
    remedy: str
    verdict: Verdict

    def __str__(self) -> str:
        return f"held at {self.step.value}: {self.cause}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeQuarantined(Payload):
    """The gate or an operator took the node out. `check`, `subject` and `serial` name the part that is to blame.

    A copy in the part's own stream names the `node`.
    """

    kind: ClassVar = Kind.NODE_QUARANTINED
    step: Step
    cause: str
    remedy: str
    verdict: Verdict = Verdict.FAIL
    check: str = ""
    subject: str = "node"
    serial: str = ""
    by_operator: bool = False
    node: str = ""

    def __str__(self) -> str:
        return f"QUARANTINED at {self.step.value}: {self.cause}"


PAYLOADS: tuple[type[Payload], ...] = (
    NodeDescribed, NodeIdentified, NodeAddressed, RootDiskProven, HostKeyPinned, NodeAdopted, BmcPasswordChanged,
    BmcPasswordShared, StepStarted, InstallProgress, ActIntended, ActObserved, ReportRecorded, FiguresMeasured,
    StageAdvanced, NodeHeld, NodeQuarantined,
)  # fmt: skip
