"""Forwarding tables of an InfiniBand fabric: through which port each switch sends what is meant for a LID."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.node import Guid

NO_ROUTE = 255
"""Out port of a LID that a switch drops (InfiniBand Architecture 1.3 volume 1, LinearForwardingTable)."""


@dataclass(frozen=True, slots=True)
class ForwardingTables:
    """`tables`: node GUID of a switch → one byte per LID, its out port (0 is the switch itself, 255 none); all are
    equally long. `lids`: LID → GUID of the port that it addresses, for LIDs whose owner the dump names; a switch's
    port 0 has its node GUID.
    """

    tables: Mapping[Guid, bytes]
    lids: Mapping[int, Guid]


@dataclass(frozen=True, slots=True)
class RoutingOutcome:
    """What a subnet manager's log says of the last time that it routed.

    `engine`: who made the tables that are configured now (`ftree`, `minhop`, `ar_ftree`); `complaints`: what the log
    says against the engines that were tried before it, oldest first, without time stamps.
    """

    engine: str
    complaints: tuple[str, ...] = ()

    @property
    def adaptive(self) -> bool:
        """True where switches choose among ports by themselves: UFM's engines of that kind begin with `ar_`."""
        return self.engine.startswith("ar_")
