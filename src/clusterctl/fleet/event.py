"""Events: all that was ever intended, observed or decided. `seq` is their order, never time."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clusterctl.fleet.finding import Digest

Data = Mapping[str, Any]
"""JSON-able values only; no secret ever."""


class Kind(enum.StrEnum):
    """What happened. A kind's data may grow; a change of meaning raises its version in `VERSIONS`."""

    NODE_DESCRIBED = "node.described"
    NODE_IDENTIFIED = "node.identified"
    NODE_ADDRESSED = "node.addressed"
    HOST_KEY_PINNED = "node.host_key_pinned"
    BMC_PASSWORD_CHANGED = "bmc.password_changed"  # noqa: S105 — no password
    BMC_PASSWORD_TOLD = "bmc.password_told"  # noqa: S105 — likewise
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
    HOLD_SET = "hold.set"
    HOLD_LIFTED = "hold.lifted"
    WAIVER_GRANTED = "waiver.granted"
    WAIVER_REVOKED = "waiver.revoked"
    NODE_MERGED = "node.merged"
    NODE_RETIRED = "node.retired"
    PART_SEEN = "part.seen"
    PART_GONE = "part.gone"
    PART_REPLACED = "part.replaced"
    RUN_STARTED = "run.started"
    RUN_FINISHED = "run.finished"
    NIGHT_STARTED = "night.started"
    NIGHT_ENDED = "night.ended"
    WAVES_STOPPED = "run.waves_stopped"
    CAMPAIGN_STARTED = "campaign.started"
    CAMPAIGN_ASKED = "campaign.asked"
    CAMPAIGN_TOLD = "campaign.told"
    CAMPAIGN_DROPPED = "campaign.dropped"
    CAMPAIGN_ENDED = "campaign.ended"
    FABRIC_DEVICE_SEEN = "fabric.device_seen"
    FABRIC_LINK_SEEN = "fabric.link_seen"
    FABRIC_TRANSCEIVER_SEEN = "fabric.transceiver_seen"
    FABRIC_FAULT_SEEN = "fabric.fault_seen"


VERSIONS: Mapping[Kind, int] = dict.fromkeys(Kind, 1)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event before the journal has given it a `seq` and a time.

    `stream` is `node`, `part`, `fabric`, `campaign` or `run`; `subject` the node id, part serial, run or campaign id,
    or the fabric's GUID, link, serial or fault in it.
    """

    stream: str
    subject: str
    kind: Kind
    data: Data = field(default_factory=dict)
    evidence: tuple[Digest, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal. `at` is UTC; `actor` a person or `clusterctl`; `run` the id of the run."""

    seq: int
    stream: str
    subject: str
    kind: Kind
    version: int
    at: datetime
    run: str
    actor: str
    data: Data
    evidence: tuple[Digest, ...] = ()
