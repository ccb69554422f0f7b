"""What Alertmanager posts to a webhook, version 4.

Source: https://prometheus.io/docs/alerting/latest/configuration/#webhook_config (fields and their types).
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
MAX_ALERTS = 2000
LIMITS = JsonLimits(size=4 << 20, values=200_000, depth=8, text=1 << 16)
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


def parse_alerts(content: bytes) -> tuple[PostedAlert, ...]:
    """Return the alerts of a post. Raise `ParseError` for what is no such post."""
    document = read_json(content, LIMITS, where="alerts")
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise ParseError(f"is no post of Alertmanager, version {VERSION}", where="alerts")
    alerts, key = document.get("alerts"), document.get("groupKey")
    if not isinstance(alerts, list) or not isinstance(key, str):
        raise ParseError("has no alerts, or no groupKey", where="alerts")
    if len(alerts) > MAX_ALERTS:
        raise ParseError(f"has more than {MAX_ALERTS} alerts", where="alerts")
    group = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:_GROUP_DIGITS]
    return tuple(_alert(alert, group, f"alerts[{number}]") for number, alert in enumerate(alerts))


def _alert(alert: Any, group: str, where: str) -> PostedAlert:
    if not isinstance(alert, dict):
        raise ParseError("is no alert", where=where)
    status, fingerprint = alert.get("status"), alert.get("fingerprint")
    labels = _texts(alert.get("labels"), where)
    name = labels.get("alertname", "")
    if status not in (_FIRING, _RESOLVED) or not name:
        raise ParseError("has no status or no alertname", where=where)
    if not isinstance(fingerprint, str) or not fingerprint.isalnum() or len(fingerprint) > _NAME:
        raise ParseError("has no fingerprint", where=where)
    return PostedAlert(
        fingerprint=fingerprint,
        group=group,
        firing=status == _FIRING,
        name=visible_line(name, _NAME),
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
