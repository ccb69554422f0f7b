"""What Alertmanager posts to a webhook, version 4.

Source: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config (fields and their types). The number of
alerts in a post has no limit of its own: Alertmanager repeats a post that is refused, and its alerts reach no operator.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.formats.times import in_utc

VERSION = "4"
LARGEST = 4 << 20
"""Bytes of a post: thousands of alerts."""
LIMITS = JsonLimits(size=LARGEST, values=800_000, depth=32, text=LARGEST)
UNNAMED = "alert without a name"
"""Name of an alert without the label `alertname`, which Alertmanager takes."""
_TEXT = 500
_NAME = 120
_GROUP_DIGITS = 16
_FIRING, _RESOLVED = "firing", "resolved"


@dataclass(frozen=True, slots=True)
class PostedAlert:
    """An alert. `group`: a digest of the key of the group that Alertmanager posts it with."""

    fingerprint: str
    group: str
    firing: bool
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPost:
    """A post. `unread`: why alerts of it could not be read; `truncated`: alerts that Alertmanager has left out."""

    alerts: tuple[PostedAlert, ...]
    unread: tuple[str, ...] = ()
    truncated: int = 0


def parse_alerts(content: bytes) -> AlertPost:
    """Return the alerts of a post; one that cannot be read takes no other with it. Raise `ParseError` for what is no
    such post, and for one of which no alert can be read.
    """
    document = read_json(content, LIMITS, where="alerts")
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ParseError(f"is no post of Alertmanager, version {VERSION}", where="alerts")
    alerts, key = document.get("alerts"), document.get("groupKey")
    if not isinstance(alerts, list) or not isinstance(key, str):
        raise ParseError("has no alerts, or no groupKey", where="alerts")
    group = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:_GROUP_DIGITS]
    read: list[PostedAlert] = []
    unread: list[ParseError] = []
    for number, alert in enumerate(alerts):
        try:
            read.append(_alert(alert, group, f"alerts[{number}]"))
        except ParseError as error:
            unread.append(error)
    if unread and not read:
        raise unread[0]
    left_out = document.get("truncatedAlerts")
    truncated = left_out if isinstance(left_out, int) and left_out > 0 else 0
    return AlertPost(alerts=tuple(read), unread=tuple(map(str, unread)), truncated=truncated)


def _alert(alert: Any, group: str, where: str) -> PostedAlert:
    if not isinstance(alert, dict):
        raise ParseError("is no alert", where=where)
    status, fingerprint = alert.get("status"), alert.get("fingerprint")
    labels = _texts(alert.get("labels"), where)
    if status not in (_FIRING, _RESOLVED):
        raise ParseError("has no status", where=where)
    if not isinstance(fingerprint, str) or not fingerprint.isalnum() or len(fingerprint) > _NAME:
        raise ParseError("has no fingerprint", where=where)
    return PostedAlert(
        fingerprint=fingerprint,
        group=group,
        firing=status == _FIRING,
        name=visible_line(labels.get("alertname", ""), _NAME) or UNNAMED,
        labels=labels,
        annotations=_texts(alert.get("annotations"), where),
        starts_at=_time(alert.get("startsAt"), where),
    )


def _texts(found: Any, where: str) -> dict[str, str]:
    """Return labels or annotations, each a bounded line."""
    if not isinstance(found, dict):
        raise ParseError("has no labels, or no annotations", where=where)
    return {
        visible_line(key, _NAME): visible_line(value, _TEXT) for key, value in found.items() if isinstance(value, str)
    }


def _time(found: Any, where: str) -> datetime:
    """Return a time of RFC 3339 in UTC; Go writes nine digits of a second, of which six are kept."""
    try:
        at = datetime.fromisoformat(found)
        utc = in_utc(at)
    except (TypeError, ValueError):
        raise ParseError("has no startsAt", where=where) from None
    if at.tzinfo is None:
        raise ParseError("has a startsAt without a time zone", where=where)
    return utc
