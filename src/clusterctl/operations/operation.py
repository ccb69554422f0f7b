"""What all operations share: previews, approval by digest, events, results and cancellation."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Self

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import CancelledError, ClusterctlError, ConflictError
from clusterctl.operations.serial import to_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error as data: its class's `kind`, what failed, where, and what to do. None of them holds a secret."""

    kind: str
    message: str
    where: str = ""
    remedy: str = ""

    @classmethod
    def of(cls, error: ClusterctlError) -> Failure:
        return cls(kind=error.kind, message=error.message, where=error.where, remedy=error.remedy)

    def __str__(self) -> str:
        head = f"{self.where}: {self.message}" if self.where else self.message
        return f"{head} — {self.remedy}" if self.remedy else head


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the operation is going to do to one node, in one clause."""

    node: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What an operation would do, computed without a change.

    operation  its name, such as `power`
    question   what an operator approves, as one question
    effects    per node
    skipped    nodes that are left alone, with the reason
    warnings   what the operator must know before approval
    request    SHA-256 over what was asked for, by `of`, the reason included; empty where the effects show all of it
    """

    operation: str
    question: str
    effects: tuple[Effect, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    request: str = ""

    def of(self, request: Any) -> Self:
        """Return the same preview, bound to its request: an approval then holds for no other reason, part or serial.

        Fields that are left out of `repr` are left out here: they hold secrets.
        """
        shown = {one.name for one in fields(request) if one.repr}
        data = {name: value for name, value in to_data(request).items() if name in shown}
        return replace(self, request=hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest())

    @property
    def digest(self) -> str:
        """SHA-256 over all of it: an approval names the preview that it approves."""
        return hashlib.sha256(json.dumps(to_data(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of progress; `failure` where it is one. `node` is empty where it concerns no single node."""

    text: str
    node: str = ""
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one node. `values`: the operation's own figures, JSON values only."""

    node: str
    text: str = ""
    failure: Failure | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an operation did, node by node.

    cancelled  it was asked to stop before its end
    skipped    nodes that were left alone, with the reason
    stopped    why it stopped by itself before its end; empty where it did not
    """

    operation: str
    outcomes: tuple[Outcome, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""
    cancelled: bool = False

    @property
    def exit_code(self) -> int:
        """0: all fine; 1: some node failed or was left alone; 130: cancelled."""
        if self.cancelled:
            return CancelledError.exit_code
        return 1 if self.stopped or self.skipped or any(outcome.failure for outcome in self.outcomes) else 0


def current_time() -> datetime:
    """Return the current time in UTC."""
    return CLOCK.now()


def ignore(_event: object) -> None:
    """Discard an event."""


def lossy(receiver: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a receiver of events that loses those which it cannot write."""

    def receive(event: Any) -> None:
        with suppress(OSError):
            receiver(event)

    return receive


@dataclass(frozen=True, slots=True)
class Control:
    """How a run is controlled from outside.

    approved    digest of the preview that was approved; None: any preview is approved
    on_event    receives `Event`s and the operation's own events, from any thread; a terminal that is gone, or a full
                disk under its output, ends no run
    cancelled   set it to stop the run; what is done stays done
    hands_back  set where that is no operator's wish: this process stops, and another one goes on with the run
    """

    approved: str | None = None
    on_event: Callable[[Any], None] = ignore
    cancelled: threading.Event = field(default_factory=threading.Event)
    hands_back: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        object.__setattr__(self, "on_event", lossy(self.on_event))

    def waiting(self, text: str) -> None:
        """Report what the run waits for."""
        self.on_event(Event(text=text))

    def require(self, preview: Preview) -> None:
        """Raise `ConflictError` where `preview` is not the approved one."""
        if self.approved is not None and self.approved != preview.digest:
            raise ConflictError(
                "the preview has changed since it was approved: nothing was done",
                where=preview.operation,
                remedy="read the new preview, then approve it",
            )
