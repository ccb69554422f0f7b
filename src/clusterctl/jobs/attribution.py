"""What a failed job's failure is attributed to, and the candidates among which that is chosen."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.blame import Certainty, Failure, Layer, Persistence
from clusterctl.jobs.evidence import Observation, Source


class JobAction(enum.Enum):
    """What to do next with the job.

    RESTART          start again from the last checkpoint, on any healthy hosts
    RESTART_WITHOUT  start again without the suspects; drain and check them
    WAIT             repair what all hosts share (storage, a switch), then start again
    STOP             do not start again before the user has changed something
    NOTHING          the job was ended by an order
    INVESTIGATE      the evidence does not suffice: collect what is missing
    """

    RESTART = "restart"
    RESTART_WITHOUT = "restart without the suspects"
    WAIT = "wait for the repair"
    STOP = "stop and ask the user"
    NOTHING = "nothing"
    INVESTIGATE = "investigate"


_OF_SCHEDULER = frozenset({"lost_node", "silent_daemon"})
"""Rules whose candidates rest on the scheduler and the BMC where they rest on no line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A host, and its part or rank where the evidence names one."""

    host: str
    part: str = ""
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A cause that the evidence may have, by one rule.

    rule      name of the rule of attribution (`docs/reference/attribution.md`)
    error     name of the rule of the line that it rests on; empty where it rests on none
    because   the evidence, one clause each
    """

    rule: str
    failure: Failure
    layer: Layer
    certainty: Certainty
    cause: str
    action: JobAction
    remedy: str
    error: str = ""
    persistence: Persistence = Persistence.UNKNOWN
    suspects: tuple[Suspect, ...] = ()
    at: datetime | None = None
    because: tuple[str, ...] = ()
    first: Observation | None = None
    iteration: int | None = None

    @property
    def from_host(self) -> bool:
        """Return True where it rests on what the job's user cannot write: the kernel's log, a BMC, the scheduler."""
        if self.first is not None:
            return self.first.source is not Source.JOB
        return self.rule in _OF_SCHEDULER


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The chosen cause; `others`: what else the evidence may have, the surest first.

    consequences  how many lines of each kind follow from it
    unmeasured    what could not be read: none of it is taken for healthy
    """

    job: str
    cause: Candidate
    others: tuple[Candidate, ...] = ()
    consequences: Mapping[str, int] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()
