"""Events of a node as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from clusterctl.fleet.event import Data, Event, Kind


def event_text(event: Event) -> str:
    """Return the event as one clause; a kind without a text of its own as its name."""
    say = _TEXTS.get(event.kind)
    return say(event.data) if say else event.kind.value


def _report(data: Data) -> str:
    report: Mapping[str, Any] = data["report"]
    tally = Counter(finding["verdict"] for finding in report["findings"])
    return f"{report['step']} reported: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(tally.items()))


def _because(data: Data) -> str:
    """A person's reason, where the act was one's order."""
    return f": {data['reason']}" if data.get("reason") else ""


def _identified(data: Data) -> str:
    inventory = data["inventory"]
    return f"identified: {inventory['manufacturer']} {inventory['model']} {inventory['serial']}, SKU {data['sku']}"


def _waived(data: Data) -> str:
    return f"{data['check']} of {data['subject']}" if data["subject"] else str(data["check"])


def _merged(data: Data) -> str:
    before = f", was {data['old']}" if data["old"] else ""
    moved = f", was {data['from']}" if data["from"] else ""
    return f"MERGED: the machine with serial {data['new']}{before}{moved}: {data['reason']}"


def _place(data: Data) -> str:
    return f"{data['node']}, {data['component']} {data['slot']}"


def _instead(data: Data) -> str:
    return f", instead of {data['other']}" if data["other"] else ""


def _retired(data: Data) -> str:
    into = f" into {data['into']}" if data["into"] else ""
    return f"RETIRED{into}{', drives erased' if data['wiped'] else ''}: {data['reason']}"


_TEXTS: Mapping[Kind, Callable[[Data], str]] = {
    Kind.NODE_DESCRIBED: lambda data: f"the site says: {data['name']}, BMC {data['bmc']}",
    Kind.NODE_IDENTIFIED: _identified,
    Kind.NODE_ADDRESSED: lambda data: f"reached at {data['address']}",
    Kind.HOST_KEY_PINNED: lambda _: "host key pinned",
    Kind.BMC_PASSWORD_CHANGED: lambda data: f"BMC: password {data['number']} of {data['user']} is in use",
    Kind.BMC_PASSWORD_TOLD: lambda data: f"the installer and password {data['number']}: {data['result']}",
    Kind.STEP_STARTED: lambda data: f"{data['step']} started",
    Kind.INSTALL_PROGRESS: lambda data: f"install: {data['event_text']}",
    Kind.REINSTALL_ORDERED: lambda data: f"TO BE INSTALLED ANEW, was {data['was']}: {data['reason']}",
    Kind.REVALIDATION_ORDERED: lambda data: f"to be proven anew from {data['since']} on: {data['reason']}",
    Kind.ACT_INTENDED: lambda data: f"about to {data['act']} on {data['target']}{_because(data)}",
    Kind.ACT_OBSERVED: lambda data: f"{data['act']}: {data['result']}",
    Kind.FIGURES_MEASURED: lambda data: f"{len(data['figures'])} figures kept, to be compared with its fleet's",
    Kind.REPORT_RECORDED: _report,
    Kind.STAGE_ADVANCED: lambda data: f"→ {data['to']}",
    Kind.NODE_HELD: lambda data: f"held at {data['step']}: {data['cause']}",
    Kind.NODE_QUARANTINED: lambda data: f"QUARANTINED at {data['step']}: {data['cause']}",
    Kind.NODE_RELEASED: lambda data: f"released to {data['to']}: {data['reason']}",
    Kind.HOLD_SET: lambda data: f"HELD until {data['until'] or 'released'}: {data['reason']}",
    Kind.HOLD_LIFTED: lambda data: f"hold lifted: {data['reason']}",
    Kind.WAIVER_GRANTED: lambda data: f"{_waived(data)} waived until {data['until']}: {data['reason']}",
    Kind.WAIVER_REVOKED: lambda data: f"{_waived(data)} no longer waived: {data['reason']}",
    Kind.NODE_MERGED: _merged,
    Kind.NODE_RETIRED: _retired,
    Kind.PART_SEEN: lambda data: f"seen in {_place(data)}{_instead(data)}",
    Kind.PART_GONE: lambda data: f"gone from {_place(data)}" + (f", {data['other']} is there" if data["other"] else ""),
    Kind.PART_REPLACED: lambda data: (
        f"{data['component']} {data['slot']}: {data['new'] or 'nothing'} for {data['old']}"
    ),
}
