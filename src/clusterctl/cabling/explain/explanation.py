"""Explanations: one for each cause, with the repair for the technician."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.cabling.actions import Action, is_physical
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.finding_code import Code


class FaultKind(enum.Enum):
    """Kinds of cabling faults."""

    MISSING_LINK = "missing_link"
    EXTRA_LINK = "extra_link"
    SWAPPED = "swapped"
    WRONG_RAIL = "wrong_rail"
    MOVED = "moved"
    WRONG_CABLE = "wrong_cable"
    DOWN_WIDTH = "down_width"
    DOWN_SPEED = "down_speed"
    ABSENT_DEVICE = "absent_device"
    ISLAND = "island"
    UNKNOWN_DEVICE = "unknown_device"
    MISNAMED = "misnamed"
    EXCHANGED = "exchanged"
    DUPLICATE_NAME = "duplicate_name"
    NAMES_DIFFER = "names_differ"
    NAMES_UNPROVEN = "names_unproven"
    NO_RULE = "no_rule"


RATE_KINDS = frozenset({FaultKind.DOWN_WIDTH, FaultKind.DOWN_SPEED})
"""Kinds where the cable is right, but the link is slow."""


@dataclass(frozen=True, slots=True)
class CablingExplanation:
    """`cause` is one sentence, `action` one line for the technician.

    nodes    hosts that it holds back
    ports    all ports involved
    devices  devices that are the cause as a whole
    rack     place of the work; empty where the plan has none
    links    number of links that it explains
    steps    `action` as data
    tie      whether an alternative, which `action` names too, explains or repairs it as well
    """

    kind: FaultKind
    cause: str
    action: str
    nodes: tuple[str, ...] = ()
    ports: tuple[PortName, ...] = ()
    devices: tuple[str, ...] = ()
    rack: str = ""
    links: int = 1
    steps: tuple[Action, ...] = ()
    tie: bool = False

    @property
    def moves(self) -> int:
        """Number of physical actions: moved plugs, added or removed cables, restored groups."""
        return sum(map(is_physical, self.steps))

    @property
    def code(self) -> Code:
        return Code[f"CABLING_{self.kind.name}"]

    @property
    def fault(self) -> str:
        """The identity of what it explains: the same in the findings of all nodes that it keeps back."""
        return "\n".join((self.kind.value, *self.subjects))

    @property
    def subjects(self) -> tuple[str, ...]:
        """Names of the devices where they are the cause, else of the ports."""
        return self.devices or tuple(map(str, self.ports))


def chassis_of(explanations: Iterable[CablingExplanation]) -> int:
    """Return the number of devices to visit for all physical actions."""
    steps = (step for explanation in explanations for step in explanation.steps)
    return len({device for step in steps for device in step.visited})
