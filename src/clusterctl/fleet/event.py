"""Events: all that was ever intended, observed or decided. `seq` is their order, never time."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, ClassVar

from clusterctl.fleet.finding import Digest
from clusterctl.fleet.peer_text import visible_line

MAX_TEXT = 100_000
"""Characters of one text of an event."""


class Stream(enum.StrEnum):
    """What an event is about. `subject` names one thing within its stream."""

    NODE = "node"
    PART = "part"
    FABRIC = "fabric"
    CAMPAIGN = "campaign"
    RUN = "run"
    JOB = "job"
    INCIDENT = "incident"
    ALERT = "alert"
    MAINTENANCE = "maintenance"
    WORKER = "worker"


class Kind(enum.StrEnum):
    """What happened. `codec.payload_types` has the payload type of each kind."""

    NODE_DESCRIBED = "node.described"
    NODE_IDENTIFIED = "node.identified"
    NODE_ADDRESSED = "node.addressed"
    ROOT_DISK_PROVEN = "node.root_disk_proven"
    HOST_KEY_PINNED = "node.host_key_pinned"
    NODE_ADOPTED = "node.adopted"
    BMC_PASSWORD_CHANGED = "bmc.password_changed"  # noqa: S105 — no password
    BMC_PASSWORD_SHARED = "bmc.password_shared"  # noqa: S105 — likewise
    STEP_STARTED = "step.started"
    INSTALL_PROGRESS = "install.progress"
    REINSTALL_ORDERED = "reinstall.ordered"
    REVALIDATION_ORDERED = "revalidation.ordered"
    ACT_INTENDED = "act.intended"
    ACT_OBSERVED = "act.observed"
    REPORT_RECORDED = "report.recorded"
    FIGURES_MEASURED = "figures.measured"
    STAGE_ADVANCED = "stage.advanced"
    NODE_HELD = "node.held"
    NODE_QUARANTINED = "node.quarantined"
    NODE_RELEASED = "node.released"
    NODE_REPAIR_REPORTED = "node.repair_reported"
    HOLD_SET = "hold.set"
    HOLD_LIFTED = "hold.lifted"
    WAIVER_GRANTED = "waiver.granted"
    WAIVER_REVOKED = "waiver.revoked"
    NODE_MERGED = "node.merged"
    NODE_RETIRED = "node.retired"
    NODE_RELOCATED = "node.relocated"
    PART_SEEN = "part.seen"
    PART_GONE = "part.gone"
    PART_REPLACED = "part.replaced"
    RUN_STARTED = "run.started"
    RUN_FINISHED = "run.finished"
    RUN_ORDERED = "run.ordered"
    RUN_BEGUN = "run.begun"
    RUN_CANCEL_ORDERED = "run.cancel_ordered"
    RUN_ABANDONED = "run.abandoned"
    RUN_ENDED = "run.ended"
    RUN_HANDED_BACK = "run.handed_back"
    EVIDENCE_REMOVED = "evidence.removed"
    WORKER_STARTED = "worker.started"
    WORKER_STOPPED = "worker.stopped"
    NIGHT_STARTED = "night.started"
    NIGHT_ENDED = "night.ended"
    WAVES_STOPPED = "run.waves_stopped"
    CAMPAIGN_STARTED = "campaign.started"
    CAMPAIGN_ASKED = "campaign.asked"
    CAMPAIGN_ANSWERED = "campaign.answered"
    CAMPAIGN_DROPPED = "campaign.dropped"
    CAMPAIGN_ENDED = "campaign.ended"
    BURN_STARTED = "burn.started"
    BURN_STAGE_MEASURED = "burn.stage_measured"
    BURN_SWITCH_GONE = "burn.switch_gone"
    BURN_SWITCH_BACK = "burn.switch_back"
    BURN_ENDED = "burn.ended"
    JOB_ATTRIBUTED = "job.attributed"
    JOB_RUN_ORDERED = "job.run_ordered"
    JOB_SUBMIT_INTENDED = "job.submit_intended"
    JOB_SUBMITTED = "job.submitted"
    JOB_STOP_INTENDED = "job.stop_intended"
    JOB_ATTEMPT_ENDED = "job.attempt_ended"
    JOB_DRAIN_INTENDED = "job.drain_intended"
    JOB_RUN_ENDED = "job.run_ended"
    FABRIC_DEVICE_SEEN = "fabric.device_seen"
    FABRIC_LINK_SEEN = "fabric.link_seen"
    FABRIC_TRANSCEIVER_SEEN = "fabric.transceiver_seen"
    FABRIC_FAULT_SEEN = "fabric.fault_seen"
    FABRIC_COUNTERS_READ = "fabric.counters_read"
    FABRIC_LINKS_JUDGED = "fabric.links_judged"
    FABRIC_ALARMS_READ = "fabric.alarms_read"
    FABRIC_LINK_SUSPECTED = "fabric.link_suspected"
    FABRIC_REPAIR_REPORTED = "fabric.repair_reported"
    FABRIC_LINK_BURNED = "fabric.link_burned"
    FABRIC_MASTER_SEEN = "fabric.master_seen"
    INCIDENT_OPENED = "incident.opened"
    INCIDENT_UPDATED = "incident.updated"
    INCIDENT_RESOLVED = "incident.resolved"
    MESSAGE_QUEUED = "message.queued"
    MESSAGE_INTENDED = "message.intended"
    MESSAGE_SENT = "message.sent"
    MESSAGE_FAILED = "message.failed"
    ALERT_RECEIVED = "alert.received"
    RMA_OPENED = "rma.opened"
    RMA_SHIPPED = "rma.shipped"
    RMA_RECEIVED = "rma.received"
    RMA_DELIVERED = "rma.delivered"
    RMA_CLOSED = "rma.closed"
    TICKET_INTENDED = "ticket.intended"
    TICKET_FILED = "ticket.filed"
    TICKET_ATTACHED = "ticket.attached"
    TICKET_NOTED = "ticket.noted"
    TICKET_FAILED = "ticket.failed"
    TICKET_SEEN = "ticket.seen"
    MAINTENANCE_ORDERED = "maintenance.ordered"
    MAINTENANCE_RUN = "maintenance.run"
    MAINTENANCE_MOVED = "maintenance.moved"
    MAINTENANCE_TURN = "maintenance.turn"


@dataclass(frozen=True, slots=True)
class Payload:
    """Data of one kind of event. Subclasses hold JSON-able values and no secret; `str()` gives a line for operators.

    A payload may gain fields with defaults; a change of meaning raises `version`.
    """

    kind: ClassVar[Kind]
    version: ClassVar[int] = 1
    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        """Make the texts visible lines, also those of a journal that another program wrote: peers report them."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str) and not value.isprintable():
                object.__setattr__(self, field.name, visible_line(value, MAX_TEXT))

    def __str__(self) -> str:
        return self.kind.value


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before the journal has given it a `seq` and a time.

    `subject`: the node id, part serial, id of a run, campaign, job or incident, fingerprint of an alert, name of a
    maintenance plan or worker, or the fabric's GUID, link, serial or fault.
    """

    stream: Stream
    subject: str
    payload: Payload
    evidence: tuple[Digest, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.payload.kind


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal. `at` is UTC; `actor` an operator or `clusterctl`; `run` the id of the run."""

    seq: int
    stream: Stream
    subject: str
    at: datetime
    run: str
    actor: str
    payload: Payload
    evidence: tuple[Digest, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.payload.kind


def node_event(node: str, payload: Payload, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    """Return an event in the stream of one node."""
    return NewEvent(Stream.NODE, node, payload, evidence)
