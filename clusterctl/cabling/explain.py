"""Explanations: one for each cause, with what a technician shall do about it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusterctl.fleet.wiring import PortName


class Kind(enum.Enum):
    """What is wrong with the cabling."""

    MISSING_LINK = "missing_link"
    EXTRA_LINK = "extra_link"
    SWAPPED = "swapped"
    WRONG_RAIL = "wrong_rail"
    MOVED = "moved"
    SLOW_LINK = "slow_link"
    ABSENT_DEVICE = "absent_device"
    ISLAND = "island"
    UNKNOWN_DEVICE = "unknown_device"
    MISNAMED = "misnamed"
    DUPLICATE_NAME = "duplicate_name"


@dataclass(frozen=True, slots=True)
class Explanation:
    """`cause` is one sentence, `action` one line to a technician; `nodes` are the hosts that it keeps back.

    `ports` are all ports involved, `rack` where the work is (empty where the plan does not tell), `plug_moves` how many
    plugs change place, `tie` whether the work at the other ends of the cables would do as well.
    """

    kind: Kind
    cause: str
    action: str
    nodes: tuple[str, ...] = ()
    ports: tuple[PortName, ...] = ()
    rack: str = ""
    plug_moves: int = 0
    tie: bool = False
