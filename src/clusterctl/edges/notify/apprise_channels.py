"""Channels by apprise (https://appriseit.com), which knows the services. A channel's URL is a secret, and so are its
parts: tokens stand in its path.
"""

from __future__ import annotations

import logging
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import StringIO
from typing import Any
from urllib.parse import unquote

import apprise
from apprise.logger import LOGGER_NAME, LogCapture

from clusterctl.edges.redaction import KNOWN
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
        service = self._service(channel)
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
            raise EdgeError(f"the message was not taken: {_reason(reason)}", where=channel, remedy=remedy)

    def _service(self, channel: str) -> Any:
        where = self.site.where("notify", "channels", channel, "url")
        if channel not in self.settings.channels:
            names = ", ".join(self.settings.channels)
            raise UsageError(f"there is no channel {channel!r}", where="notify", remedy=f"the channels are {names}")
        url = resolve(self.settings.channels[channel].url, self.site.folder, where)
        KNOWN.add(_secret_parts(url))
        with _captured():
            service = apprise.Apprise.instantiate(url, asset=_asset(), suppress_exceptions=True)
        if service is None:
            remedy = "write it as https://appriseit.com/services/ has it, such as mailtos://… or slack://…"
            raise UsageError("the URL names no service that apprise knows", where=where, remedy=remedy)
        if not service.verify_certificate:
            remedy = "take verify=no out; add the service's authority to the controller's certificates"
            raise UsageError("the URL turns the check of TLS certificates off", where=where, remedy=remedy)
        return service


def _captured() -> AbstractContextManager[StringIO]:
    """Return what takes apprise's warnings for the time; its log goes nowhere else."""
    logging.getLogger(LOGGER_NAME).propagate = False
    captured: AbstractContextManager[StringIO] = LogCapture(level=logging.WARNING, fmt="%(message)s")  # type: ignore[no-untyped-call]
    return captured


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


def _reason(log: str) -> str:
    """Return apprise's first line about the failure, without secrets."""
    return visible_line(KNOWN(next(filter(None, log.splitlines()), "apprise gives no reason")), _REASON)
