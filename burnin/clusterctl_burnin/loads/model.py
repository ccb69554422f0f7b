"""The words that loads share: members, rounds, commands, trials."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.finding import Digest, Evidence
from clusterctl_burnin.probe import Readings

Answer = Readings | str
"""A member's answer; as text the reason, where there is none."""


@dataclass(frozen=True, slots=True)
class Participant:
    """A node that takes part: its management address, and its InfiniBand devices (`mlx5_0`) in the order of rails.

    gpus       for each device the GPU nearest to it, by the driver's number; None where it is not known
    gids       for each device in Ethernet mode the index of its RoCE v2 GID; None where it is not known
    interface  the network interface that has the management address; empty where it is not known
    """

    name: str
    address: str
    devices: tuple[str, ...]
    gpus: tuple[int | None, ...] = ()
    interface: str = ""
    gids: tuple[int | None, ...] = ()


class ProcessRole(enum.Enum):
    """A server waits for its client and may be started first; all of a round may start at once all the same."""

    SERVER = "server"
    CLIENT = "client"
    HEAD = "head"


@dataclass(frozen=True, slots=True)
class Command:
    """What one member runs: `argv` over SSH, `stdin` sent to it. Its stdout is read by `probe.parse_readings`."""

    role: ProcessRole
    argv: tuple[str, ...]
    stdin: bytes


@dataclass(frozen=True, slots=True)
class Round:
    """Members that work together once, and what each of them runs (a member without a command only serves).

    `timeout`: seconds that a session of it may take at most.
    """

    load: str
    members: tuple[Participant, ...]
    commands: Mapping[str, Command]
    timeout: float


Wave = tuple[Round, ...]
"""Rounds that run at the same time: no member is in two of them."""


class TrialOutcome(enum.Enum):
    """How a trial ended. UNMEASURED: it could not be started, or its answer was not understood."""

    PASSED = "passed"
    SLOW = "slow"
    FAILED = "failed"
    HUNG = "hung"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of one round. `lane` is the device of each member on the rail measured (by member's name), or
    empty for a load over all of them; `value` in the load's unit. `remedy`: what to do about it, where the trial itself
    knows. `missing`: members that the trial itself names, since the others waited for them.
    """

    load: str
    members: tuple[str, ...]
    outcome: TrialOutcome
    lane: Mapping[str, str]
    rail: int | None = None
    value: float | None = None
    detail: str = ""
    evidence: tuple[Digest, ...] = ()
    remedy: str = ""
    missing: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome is TrialOutcome.PASSED


@dataclass(frozen=True, slots=True)
class Tried:
    """The trials of a round, and the raw evidence that they name by digest."""

    trials: tuple[Trial, ...]
    evidence: tuple[Evidence, ...]
