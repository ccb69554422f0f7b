"""The return of a part to its vendor: payloads of the stream `part`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.event import Kind, Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class RmaOpened(Payload):
    """The vendor has accepted the return. `part`: as operators name it, in the node `node`; `due`: its replacement."""

    kind: ClassVar = Kind.RMA_OPENED
    case: str
    reason: str
    part: str = ""
    node: str = ""
    due: datetime | None = None

    def __str__(self) -> str:
        return f"RMA opened, case {self.case}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RmaShipped(Payload):
    """The part is on its way to the vendor. `due`: of its replacement; None: as before."""

    kind: ClassVar = Kind.RMA_SHIPPED
    tracking: str = ""
    due: datetime | None = None

    def __str__(self) -> str:
        return f"RMA: sent to the vendor{f', {self.tracking}' if self.tracking else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RmaReceived(Payload):
    """The replacement has arrived. `new`: its serial, which may be the part's own after a repair."""

    kind: ClassVar = Kind.RMA_RECEIVED
    new: str

    def __str__(self) -> str:
        return f"RMA: replacement received, serial {self.new}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RmaDelivered(Payload):
    """In the stream of the new part: it has come in the place of part `old`. `withdrawn`: it has not, its serial was
    recorded by mistake.
    """

    kind: ClassVar = Kind.RMA_DELIVERED
    old: str
    case: str
    withdrawn: bool = False

    def __str__(self) -> str:
        no = "not " if self.withdrawn else ""
        return f"{no}delivered by RMA case {self.case}, for {self.old}{': corrected' if no else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RmaClosed(Payload):
    kind: ClassVar = Kind.RMA_CLOSED
    reason: str

    def __str__(self) -> str:
        return f"RMA closed: {self.reason}"


PAYLOADS: tuple[type[Payload], ...] = (RmaOpened, RmaShipped, RmaReceived, RmaDelivered, RmaClosed)
