"""How long MAAS may leave a machine in each passing state."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.formats.maas.machines import NodeStatus


@dataclass(frozen=True, slots=True)
class StateLimits:
    """Seconds. MAAS's own limits (`node_timeout`, 30 minutes by default; 5 for releasing) end most of these states
    before; what outlives these is stuck: MAAS lost the job, or its limit was raised for machines with a long POST.
    """

    commissioning: float = 2700
    testing: float = 2700
    deploying: float = 3600
    releasing: float = 900
    erasing: float = 86400

    def of(self, status: NodeStatus) -> tuple[str, float] | None:
        """The limit's name in the site file, and the limit; None for a state that rests."""
        name = NAMES.get(status)
        return None if name is None else (name, getattr(self, name))


NAMES = {
    NodeStatus.COMMISSIONING: "commissioning",
    NodeStatus.TESTING: "testing",
    NodeStatus.DEPLOYING: "deploying",
    NodeStatus.RELEASING: "releasing",
    NodeStatus.EXITING_RESCUE_MODE: "releasing",
    NodeStatus.DISK_ERASING: "erasing",
}
