"""A wiring plan: which port shall be cabled to which, by the names that people use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.node import Location


@dataclass(frozen=True, slots=True, order=True)
class PortName:
    """`leaf-p1-r1` port `12`, or `node007` port `mlx5_0`."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device} port {self.port}" if self.port.isdigit() else f"{self.device} {self.port}"


@dataclass(frozen=True, slots=True)
class PlannedCable:
    """`cage` is the label beside the switch's port (the source's, where both ends are switches); `line` where the plan
    says so (1-based, for messages).
    """

    source: PortName
    destination: PortName
    cage: str = ""
    serial: str = ""
    length_m: float | None = None
    line: int = 0

    @property
    def ends(self) -> frozenset[PortName]:
        return frozenset((self.source, self.destination))

    @property
    def labelled(self) -> PortName:
        """The port that `cage` is about."""
        return self.source if self.source.port.isdigit() else self.destination


@dataclass(frozen=True, slots=True)
class WiringPlan:
    """Every cable that shall be. No port carries two cables, no cable is listed twice.

    `hosts` are the devices that are servers (all others are switches); `locations` where devices stand, if told.
    """

    cables: tuple[PlannedCable, ...]
    hosts: frozenset[str]
    locations: Mapping[str, Location] = field(default_factory=dict)
