"""Alerts that Alertmanager posts: each change of one goes into the journal, and from there into an incident."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.incidents.incident import Severity
from clusterctl.fleet.payloads.incidents import AlertReceived
from clusterctl.formats.alertmanager import PostedAlert, parse_alerts
from clusterctl.operations import notify
from clusterctl.operations.context import SiteContext

CRITICAL = frozenset({"critical", "page", "emergency"})
"""Values of the label `severity` that stand for a critical incident."""
_PLACES = ("rack", "instance", "job")
"""Labels that name the place of an alert without a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedAlerts:
    """`changed`: of the posted alerts, those whose state the journal did not have."""

    posted: int
    changed: int


def receive(context: SiteContext, content: bytes) -> ReceivedAlerts:
    """Write what has changed in the posted alerts, bring the incidents up to date and send messages.

    Alertmanager posts an alert again and again: what the journal has already is not written again. Raise `ParseError`
    for content that is no post of Alertmanager.
    """
    alerts = parse_alerts(content)
    last = {
        event.subject: event.payload
        for event in context.journal.latest(Stream.ALERT, Kind.ALERT_RECEIVED)
        if isinstance(event.payload, AlertReceived)
    }
    names = {node.name for node in context.site.nodes}
    found = {alert.fingerprint: _payload(alert, names) for alert in alerts}
    new = [
        NewEvent(Stream.ALERT, fingerprint, payload)
        for fingerprint, payload in found.items()
        if _is_new(payload, last.get(fingerprint))
    ]
    if new:
        context.journal.append(new)
        notify.after_run(context)
    return ReceivedAlerts(posted=len(alerts), changed=len(new))


def _is_new(now: AlertReceived, before: AlertReceived | None) -> bool:
    """Return whether an alert has begun to fire or is resolved; its summary may change each minute."""
    if before is None:
        return now.firing
    return (now.firing, now.severity) != (before.firing, before.severity)


def _payload(alert: PostedAlert, nodes: set[str]) -> AlertReceived:
    node = alert.labels.get("node", "")
    node = node if node in nodes else ""
    place = node or next((alert.labels[label] for label in _PLACES if alert.labels.get(label)), "")
    return AlertReceived(
        firing=alert.firing,
        name=alert.name,
        group=alert.group,
        severity=Severity.CRITICAL if alert.labels.get("severity") in CRITICAL else Severity.WARNING,
        starts_at=alert.starts_at,
        place=place,
        node=node,
        summary=alert.annotations.get("summary", alert.name),
        remedy=alert.annotations.get("runbook") or alert.annotations.get("runbook_url", ""),
    )
