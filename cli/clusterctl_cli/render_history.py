"""A node's events as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.event import Event
from clusterctl_cli.text import columns, terminal_width


def history_text(events: Iterable[Event]) -> str:
    """Return a node's events, oldest first, one per line."""
    rows = [
        (str(event.seq), event.at.strftime("%Y-%m-%d %H:%M:%S"), event.run, event.actor, str(event.payload))
        for event in events
    ]
    return columns(("SEQ", "WHEN (UTC)", "RUN", "ACTOR", "WHAT"), rows, width=terminal_width())
