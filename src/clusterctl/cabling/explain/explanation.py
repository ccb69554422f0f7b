"""Explanations: one for each cause, with what a technician shall do about it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusterctl.cabling.actions import Action, is_physical
from clusterctl.fleet.fabric.wiring import PortName


class Kind(enum.Enum):
    """What is wrong with the cabling."""

    MISSING_LINK = "missing_link"
    EXTRA_LINK = "extra_link"
    SWAPPED = "swapped"
    WRONG_RAIL = "wrong_rail"
    MOVED = "moved"
    DOWN_WIDTH = "down_width"
    DOWN_SPEED = "down_speed"
    ABSENT_DEVICE = "absent_device"
    ISLAND = "island"
    UNKNOWN_DEVICE = "unknown_device"
    MISNAMED = "misnamed"
    EXCHANGED = "exchanged"
    DUPLICATE_NAME = "duplicate_name"
    NO_RULE = "no_rule"


RATE_KINDS = frozenset({Kind.DOWN_WIDTH, Kind.DOWN_SPEED})
"""The cable is where it belongs, but the link is slow."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """`cause` is one sentence, `action` one line to a technician; `nodes` are the hosts that it keeps back.

    `ports` are all ports involved, `devices` the devices that are the cause as a whole, `rack` where the work is (empty
    where the plan does not tell), `links` how many links it explains, `steps` what `action` says, as data; `tie` says
    that something else, which `action` names too, would explain or mend it as well.
    """

    kind: Kind
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
        """How many physical actions it takes: plugs moved, cables put in or taken out, absent groups brought back."""
        return sum(map(is_physical, self.steps))

    @property
    def subjects(self) -> tuple[str, ...]:
        """What it is about, by name: the devices where they are the cause, else the ports."""
        return self.devices or tuple(map(str, self.ports))
