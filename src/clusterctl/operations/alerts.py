"""Alerts that Alertmanager posts: each change of one goes into the journal, and from there into an incident."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.incidents.incident import Severity
from clusterctl.fleet.incidents.signals import POST_TOO_LARGE
from clusterctl.fleet.payloads.incidents import AlertReceived
from clusterctl.formats.alertmanager import PostedAlert, parse_alerts
from clusterctl.operations import notify
from clusterctl.operations.context import SiteContext

log = logging.getLogger(__name__)

CRITICAL = frozenset({"critical", "page", "emergency"})
"""Values of the label `severity` that stand for a critical incident."""
_PLACES = ("rack", "instance", "job")
"""Labels that name the place of an alert without a node."""
AGAIN = timedelta(hours=1)
"""An alert that is posted again and has not changed is written again after this time: so it is known to last."""
_AT_ONCE = 1000
"""Events of one transaction."""
_SHOWN = 5
TOO_LARGE_REMEDY = "set max_alerts: 2000 for Alertmanager's webhook, or group its alerts by more labels (group_by)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedAlerts:
    """`changed`: of the posted alerts, those whose state the journal did not have; `unread`: alerts in the post that
    could not be read; `truncated`: alerts that Alertmanager has left out of it.
    """

    posted: int
    changed: int
    unread: int = 0
    truncated: int = 0


def receive(context: SiteContext, content: bytes) -> ReceivedAlerts:
    """Write what has changed in the posted alerts, bring the incidents up to date and send messages.

    Alertmanager posts an alert again and again: what the journal has already is written again after `AGAIN` only. Raise
    `ParseError` for content that is no post of Alertmanager.
    """
    post = parse_alerts(content)
    for reason in post.unread[:_SHOWN]:
        log.warning("an alert could not be read: %s", reason)
    if post.unread or post.truncated:
        log.warning("%d alerts of a post could not be read, %d were left out", len(post.unread), post.truncated)
    names = {node.name for node in context.site.nodes}
    changed = _record(context, {alert.fingerprint: _payload(alert, names) for alert in post.alerts})
    return ReceivedAlerts(posted=len(post.alerts), changed=changed, unread=len(post.unread), truncated=post.truncated)


def refuse(context: SiteContext, reason: str) -> None:
    """Record that a post is too large to be taken, as an alert of its own: its alerts would reach no operator."""
    log.warning("a post of Alertmanager is refused: it %s; %s", reason, TOO_LARGE_REMEDY)
    payload = AlertReceived(
        firing=True,
        name=POST_TOO_LARGE,
        group=POST_TOO_LARGE,
        severity=Severity.CRITICAL,
        starts_at=CLOCK.now(),
        place="alertmanager",
        summary=f"a post of Alertmanager {reason}: none of its alerts was taken",
        remedy=TOO_LARGE_REMEDY,
    )
    _record(context, {POST_TOO_LARGE: payload})


def _record(context: SiteContext, found: Mapping[str, AlertReceived]) -> int:
    """Write the alerts, by fingerprint, that have changed; return how many."""
    last = {event.subject: event for event in context.journal.latest(Stream.ALERT, Kind.ALERT_RECEIVED)}
    changed = {name for name, payload in found.items() if _is_new(payload, _before(last.get(name)))}
    again = {name for name in found if name in last and CLOCK.now() - last[name].at >= AGAIN and found[name].firing}
    new = (NewEvent(Stream.ALERT, name, payload) for name, payload in found.items() if name in changed | again)
    while batch := list(itertools.islice(new, _AT_ONCE)):
        context.journal.append(batch)
    if changed or again:
        notify.after_run(context)
    return len(changed)


def _before(event: Event | None) -> AlertReceived | None:
    return event.payload if event is not None and isinstance(event.payload, AlertReceived) else None


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
        renewed=True,
    )
