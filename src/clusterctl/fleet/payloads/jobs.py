"""Jobs of the scheduler: payloads of the stream `job`, of which the subject is the job's id."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.blame import Certainty, Failure, Layer, Persistence
from clusterctl.fleet.event import Kind, Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAttributed(Payload):
    """The failure of one attempt of a job was attributed.

    rule       of the attribution (`broken_part`); `error`: rule of the line that it rests on (`xid_79`), or empty
    at         time of the first error; None where it has none
    hosts      the suspects; `ranks`: theirs, where known
    iteration  step at which it failed, where that is part of the evidence
    """

    kind: ClassVar = Kind.JOB_ATTRIBUTED
    failure: Failure
    layer: Layer
    certainty: Certainty
    persistence: Persistence
    rule: str
    error: str
    cause: str
    action: str
    at: datetime | None = None
    hosts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    iteration: int | None = None

    def __str__(self) -> str:
        suspects = f" ({', '.join(self.hosts[:3])})" if self.hosts else ""
        return f"{self.failure.value}, {self.layer.value}, {self.certainty.value}: {self.cause}{suspects}"


PAYLOADS: tuple[type[Payload], ...] = (JobAttributed,)
