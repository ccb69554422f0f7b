"""The terms in which a failure is attributed: layer, certainty, role of a message, and how long it lasts."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Layer(enum.Enum):
    """What is to blame. SCHEDULER: an order such as a time limit or a cancellation, so nothing is broken."""

    HARDWARE = "hardware"
    FABRIC = "fabric"
    STORAGE = "storage"
    SYSTEM_SOFTWARE = "system software"
    FRAMEWORK = "framework"
    APPLICATION = "application"
    DATA = "data"
    SCHEDULER = "scheduler"
    UNKNOWN = "unknown"


class Certainty(enum.Enum):
    """How sure a statement is.

    PROVEN   the evidence names the part or the program, and what failed in it
    LIKELY   the evidence has this cause in most cases, and nothing contradicts it
    UNKNOWN  the evidence has several causes; more evidence is needed
    """

    PROVEN = "proven"
    LIKELY = "likely"
    UNKNOWN = "unknown"

    @property
    def rank(self) -> int:
        """0 for PROVEN, the surest."""
        return _RANKS[self]


_RANKS = {certainty: rank for rank, certainty in enumerate(Certainty)}


class Role(enum.Enum):
    """What a message is within a failure.

    CAUSE        it may be the first error
    CONSEQUENCE  another error, here or on another host, came before it
    CONTEXT      it neither ends a job nor explains its end by itself
    """

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    CONTEXT = "context"


class Persistence(enum.Enum):
    """TRANSIENT: a restart is enough. PERSISTENT: it comes back until something is repaired or changed."""

    TRANSIENT = "transient"
    PERSISTENT = "persistent"
    UNKNOWN = "unknown"


class Failure(enum.Enum):
    """How a job failed. ENDED: it was ended by an order, or it did not fail."""

    CRASH = "crash"
    HANG = "hang"
    SLOW = "slow"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Blame:
    """What one message blames, and how surely."""

    layer: Layer
    certainty: Certainty
    role: Role
    persistence: Persistence = Persistence.UNKNOWN
