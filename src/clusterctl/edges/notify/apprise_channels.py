"""Channels by apprise (https://appriseit.com), which knows the services. A channel's URL is a secret, and so are its
parts: tokens stand in its path.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from io import StringIO
from typing import Any
from urllib.parse import unquote

import apprise
from apprise.logger import LOGGER_NAME, LogCapture

from clusterctl.edges.redaction import KNOWN, MASK
from clusterctl.edges.site import Site
from clusterctl.edges.site.secrets import resolve
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.incidents.incident import Phase
from clusterctl.fleet.incidents.message import IncidentMessage
from clusterctl.fleet.peer_text import visible_line
from clusterctl.site.notify import NotifySettings

APP = "clusterctl"
_TOKEN = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z]).{8,}|.{16,}")
"""Parts of a URL that may be secrets: tokens of services stand in any of its parts. Words are none."""
_REASON = 300
_PART = re.compile(r"[/:@?&=#,+]+")


@dataclass(frozen=True, slots=True)
class AppriseChannels:
    """Meets `ports.Notifier` for the channels of a site."""

    site: Site
    settings: NotifySettings

    def send(self, channel: str, message: IncidentMessage) -> None:
        url = self._url(channel)
        service = self._service(channel, url)
        name_incident(service, message.incident)
        kind = _kind(message)
        outbox = apprise.Apprise(asset=_asset())
        outbox.add(service)
        with _captured() as log:
            sent = outbox.notify(
                title=message.title, body=message.body, notify_type=kind, body_format=apprise.NotifyFormat.TEXT
            )
            reason = log.getvalue()
        if not sent:
            remedy = f"check the service and the channel's URL: clusterctl notify test {channel}"
            raise EdgeError(f"the message was not taken: {_reason(reason, url)}", where=channel, remedy=remedy)

    def _where(self, channel: str) -> str:
        return self.site.where("notify", "channels", channel, "url")

    def _url(self, channel: str) -> str:
        if channel not in self.settings.channels:
            names = ", ".join(self.settings.channels)
            raise UsageError(f"there is no channel {channel!r}", where="notify", remedy=f"the channels are {names}")
        url = resolve(self.settings.channels[channel].url, self.site.folder, self._where(channel))
        KNOWN.add(_secret_parts(url))
        return url

    def _service(self, channel: str, url: str) -> Any:
        where = self._where(channel)
        with _captured():
            service = apprise.Apprise.instantiate(url, asset=_asset(), suppress_exceptions=True)
        if service is None:
            remedy = "write it as https://appriseit.com/services/ has it, such as mailtos://… or slack://…"
            raise UsageError("the URL names no service that apprise knows", where=where, remedy=remedy)
        if not service.verify_certificate:
            remedy = "take verify=no out; add the service's authority to the controller's certificates"
            raise UsageError("the URL turns the check of TLS certificates off", where=where, remedy=remedy)
        return service


def name_incident(service: Any, incident: str) -> None:
    """Let a pager know which of its alerts a message is about: a repeat updates the alert, and the last message closes
    it. What the channel's URL sets stays. Chats and mail have no such key.
    """
    for name in _KEYS:
        if getattr(service, name, "") is None:
            setattr(service, name, incident)
    if getattr(service, "entity_id", None) == f"{service.app_id}/{getattr(service, 'routing_key', '')}":  # Splunk's own
        service.entity_id = incident
    action = service.template_args.get("action", {})
    if _MAP in action.get("values", ()) and service.action == action.get("default"):
        service.action = _MAP


_KEYS = ("dedup", "alias", "external_id", "thirdparty")
"""Keys of alerts, as apprise's services have them: PagerDuty, FireHydrant, GoAlert, ilert, incident.io, OpsiMate and
Squadcast; Opsgenie and Jira Service Management; SIGNL4; PagerTree.
"""
_MAP = "map"
"""The action of a pager's service that closes an alert with the message that all is well."""


_IN_USE: ContextVar[bool] = ContextVar("whether a channel's URL is in use", default=False)
"""Apprise sends in threads of its own, each with a copy of the caller's context."""


class _Unlogged(logging.Filter):
    """Drops what is logged while a channel's URL is in use: libraries log its path, whatever it holds."""

    def filter(self, record: logging.LogRecord) -> bool:
        del record
        return not _IN_USE.get()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Drop what libraries log in this context meanwhile."""
        for name, logger in list(logging.root.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger) and name.partition(".")[0] in _LIBRARIES:
                logger.addFilter(self)
        before = _IN_USE.set(True)
        try:
            yield
        finally:
            _IN_USE.reset(before)


_LIBRARIES = frozenset({"urllib3", "requests", "requests_oauthlib", "oauthlib", "markdown", "asyncio"})
_UNLOGGED = _Unlogged()


@contextmanager
def _captured() -> Iterator[StringIO]:
    """Take apprise's warnings for the time; its log goes nowhere else, and that of its libraries nowhere at all."""
    logging.getLogger(LOGGER_NAME).propagate = False
    with _UNLOGGED.active(), LogCapture(level=logging.WARNING, fmt="%(message)s") as captured:  # type: ignore[no-untyped-call]
        yield captured


def _secret_parts(url: str) -> set[str]:
    """Return the password of a URL, and the parts of it that may be tokens."""
    parts = {part for text in (url, unquote(url)) for part in _PART.split(text) if _TOKEN.fullmatch(part)}
    login = url.partition("://")[2].rpartition("@")[0]
    return parts | {part for part in (login.partition(":")[2], unquote(login.partition(":")[2])) if part}


def _asset() -> apprise.AppriseAsset:
    """Return apprise's settings: no redirect takes a message elsewhere, no text is anything but text."""
    return apprise.AppriseAsset(
        app_id=APP,
        app_desc=APP,
        app_url="",
        http_redirects=False,
        interpret_emojis=False,
        interpret_escapes=False,
        secure_logging=True,
        async_mode=False,
        plugin_paths=[],
    )


def _kind(message: IncidentMessage) -> Any:
    if message.phase is Phase.RESOLVED:
        return apprise.NotifyType.SUCCESS
    return apprise.NotifyType.FAILURE if message.urgent else apprise.NotifyType.WARNING


def _reason(log: str, url: str) -> str:
    """Return apprise's first line about the failure, without any part of the URL, however short."""
    line = KNOWN(next(filter(None, log.splitlines()), "apprise gives no reason"))
    parts = {part for text in (url, unquote(url)) for part in _PART.split(text.partition("://")[2]) if part}
    for part in sorted(parts, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(part)}(?!\w)", MASK, line)
    return visible_line(line, _REASON)
