"""A node's events in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from clusterctl.cli.render import columns
from clusterctl.fleet.event import Data, Event, Kind


def history_text(events: Iterable[Event]) -> str:
    """A node's events, oldest first, one a line."""
    rows = [
        (str(event.seq), event.at.strftime("%Y-%m-%d %H:%M:%S"), event.run, event.actor, words(event))
        for event in events
    ]
    return columns(("SEQ", "WHEN (UTC)", "RUN", "ACTOR", "WHAT"), rows)


def event_json(event: Event) -> dict[str, Any]:
    """One event of `node --json`."""
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "run": event.run,
        "actor": event.actor,
        "kind": event.kind.value,
        "data": event.data,
        "evidence": list(event.evidence),
    }


def words(event: Event) -> str:
    """The event as a person would say it; a kind without words of its own gives its name."""
    say = _WORDS.get(event.kind)
    return say(event.data) if say else event.kind.value


def _report(data: Data) -> str:
    report: Mapping[str, Any] = data["report"]
    tally = Counter(finding["verdict"] for finding in report["findings"])
    return f"{report['step']} reported: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(tally.items()))


def _identified(data: Data) -> str:
    inventory = data["inventory"]
    return f"identified: {inventory['manufacturer']} {inventory['model']} {inventory['serial']}, SKU {data['sku']}"


_WORDS: Mapping[Kind, Callable[[Data], str]] = {
    Kind.NODE_DESCRIBED: lambda data: f"the site says: {data['name']}, BMC {data['bmc']}",
    Kind.NODE_IDENTIFIED: _identified,
    Kind.NODE_ADDRESSED: lambda data: f"reached at {data['address']}",
    Kind.HOST_KEY_PINNED: lambda _: "host key pinned",
    Kind.STEP_STARTED: lambda data: f"{data['step']} started",
    Kind.ACT_INTENDED: lambda data: f"about to {data['act']} on {data['target']}",
    Kind.ACT_OBSERVED: lambda data: f"{data['act']}: {data['result']}",
    Kind.REPORT_RECORDED: _report,
    Kind.STAGE_ADVANCED: lambda data: f"→ {data['to']}",
    Kind.NODE_HELD: lambda data: f"held at {data['step']}: {data['cause']}",
    Kind.NODE_QUARANTINED: lambda data: f"QUARANTINED at {data['step']}: {data['cause']}",
    Kind.NODE_RELEASED: lambda data: f"released to {data['to']}: {data['reason']}",
}
