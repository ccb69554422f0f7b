"""Events from plain values, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from clusterctl.fleet.codec import payload_from_json, payload_to_data
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import PATH, Stage


def new_event(
    stream: str, subject: str, kind: Kind, data: Mapping[str, Any] | None = None, evidence: tuple[Digest, ...] = ()
) -> NewEvent:
    """Return an event whose payload is `data`, as JSON has it."""
    payload = payload_from_json(0, kind.value, 1, json.dumps(data or {}))
    return NewEvent(Stream(stream), subject, payload, evidence)


def written(new: NewEvent, seq: int, at: datetime, actor: str = "clusterctl", run: str = "r") -> Event:
    """Return the event as the journal would have it."""
    return Event(seq, new.stream, new.subject, at, run, actor, new.payload, new.evidence)


def data_of(event: Event | NewEvent) -> dict[str, Any]:
    """Return the payload of an event as JSON has it."""
    return payload_to_data(event.payload)


def advances(node: str, to: str | Stage, since: Stage = Stage.SEEN) -> list[NewEvent]:
    """Return the events that lead a node from one stage to another on the path to gold, a step at a time."""
    path = PATH[PATH.index(since) + 1 : PATH.index(Stage(to)) + 1]
    return [new_event("node", node, Kind.STAGE_ADVANCED, {"to": stage.value, "verdict": "pass"}) for stage in path]
