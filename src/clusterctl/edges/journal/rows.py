"""Rows of the event table, as events; what a newer program wrote is refused."""

from __future__ import annotations

import json
from datetime import datetime

from sqlalchemy.engine import RowMapping

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import VERSIONS, Event, Kind
from clusterctl.fleet.finding import Digest

_KINDS = {kind.value: kind for kind in Kind}


def event_of(row: RowMapping) -> Event:
    kind = _kind(row)
    return Event(
        seq=row["seq"],
        stream=row["stream"],
        subject=row["subject"],
        kind=kind,
        version=row["version"],
        at=datetime.fromisoformat(row["at"]),
        run=row["run"],
        actor=row["actor"],
        data=json.loads(row["data"]),
        evidence=tuple(Digest(d) for d in json.loads(row["evidence"])),
    )


def _kind(row: RowMapping) -> Kind:
    """The event's kind, unless a newer program wrote it."""
    kind = _KINDS.get(row["kind"])
    if kind is not None and row["version"] <= VERSIONS[kind]:
        return kind
    raise UsageError(
        f"the journal holds an event {row['kind']} version {row['version']} that this clusterctl does not know",
        where=f"event {row['seq']}",
        remedy="use the newer clusterctl that wrote it",
    )
