"""Channels to people: chats, mail, pagers."""

from __future__ import annotations

from typing import Protocol

from clusterctl.fleet.incidents.message import IncidentMessage


class Notifier(Protocol):
    """Sends messages to one channel of the site."""

    def send(self, channel: str, message: IncidentMessage) -> None:
        """Send a message. Raise `EdgeError` where the channel did not take it, and `UsageError` where the site's
        channel cannot be used at all. A message may arrive twice: it carries the id of its incident.
        """
        ...
