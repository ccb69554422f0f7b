"""Rolling changes: payloads of the stream `maintenance`. The subject is the plan's name."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from clusterctl.fleet.event import Kind, Payload


class PlanStage(enum.Enum):
    """Where a plan stands.

    RUNNING  nodes are changed, or a killed run left it so
    PAUSED   an operator paused it; HALTED: too many nodes failed
    STOPPED  an operator ended it for good
    DONE     each node had its turn
    """

    RUNNING = "running"
    PAUSED = "paused"
    HALTED = "halted"
    STOPPED = "stopped"
    DONE = "done"


class Turn(enum.Enum):
    """Where a node stands within a plan.

    WAITING   not begun, or given back before its change
    DRAINING  no new job begins on it, and its jobs may still run
    CHANGING  its change has begun
    DONE      changed, gold and given back
    FAILED    its change, a check or its burn-in failed; SKIPPED: it was not touched
    """

    WAITING = "waiting"
    DRAINING = "draining"
    CHANGING = "changing"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceOrdered(Payload):
    """A plan begins, or its roll back.

    plan    the plan as JSON
    waves   the nodes by name, in their order
    skipped nodes that the plan names and that have no turn, with the reason
    back    the change is taken back
    """

    kind: ClassVar = Kind.MAINTENANCE_ORDERED
    plan: Mapping[str, Any]
    waves: tuple[tuple[str, ...], ...]
    skipped: Mapping[str, str]
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRun(Payload):
    """A run works on the plan from here on: the event names it."""

    kind: ClassVar = Kind.MAINTENANCE_RUN


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceMoved(Payload):
    """The plan stands at another stage. Failures before a move to RUNNING no longer count."""

    kind: ClassVar = Kind.MAINTENANCE_MOVED
    to: PlanStage
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceTurn(Payload):
    """A node of the plan stands elsewhere. DRAINING and CHANGING are written before anything is done."""

    kind: ClassVar = Kind.MAINTENANCE_TURN
    node: str
    to: Turn
    text: str = ""


PAYLOADS: tuple[type[Payload], ...] = (MaintenanceOrdered, MaintenanceRun, MaintenanceMoved, MaintenanceTurn)
