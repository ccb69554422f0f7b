"""Messages about incidents: the outbox in the journal is sent, each message at least once.

An intent is written before a message is sent and a result after it. A process that was killed in between sends the
message again; it carries the id of the same incident. One process sends at a time: it renews its claim, and writes
under it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.incidents.incident import Delivery, IncidentFacts, IncidentState, Phase, retry_after
from clusterctl.fleet.incidents.message import IncidentMessage, message
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.incidents import MessageFailed, MessageIntended, MessageSent
from clusterctl.operations import incidents
from clusterctl.operations.context import SiteContext
from clusterctl.operations.incidents import IncidentUpdate
from clusterctl.ports import Claim, Deadline
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer
from clusterctl.ports.notify import Notifier
from clusterctl.site.notify import NotifySettings
from clusterctl.steps.executor.lease import sole_claim

log = logging.getLogger(__name__)

CLAIM = NodeId("notify")
AFTER_A_RUN_S = 30.0
"""Seconds that a run spends on incidents and messages at its end, waits included; the next run or the timer goes on."""
TIMER_S = 600.0
TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """One attempt. `failure` is empty where the channel took the message."""

    incident: str
    channel: str
    title: str
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """What was sent. `pending`: messages that wait for an attempt; `given_up`: those of open incidents without one."""

    incidents: IncidentUpdate
    messages: tuple[SentMessage, ...] = ()
    pending: int = 0
    given_up: int = 0

    @property
    def exit_code(self) -> int:
        """1 where a message was not taken."""
        return 1 if any(one.failure for one in self.messages) else 0


def run(
    context: SiteContext, notifier: Notifier | None = None, seconds: float = TIMER_S, timer: Timer = SYSTEM_TIMER
) -> SendResult:
    """Bring the incidents up to date and send what is due. Raise `UsageError` where another process sends.

    notifier  the site's channels by default
    seconds   after which no more messages are begun; the wait for another process that derives incidents is a part
    """
    deadline = Deadline.after(seconds, timer=timer)
    changed = incidents.update(context, deadline.within(incidents.PATIENCE_S))
    settings = context.site.settings.notify
    if settings is None:
        return SendResult(incidents=changed)
    found = tuple(_send(context, notifier or site_channels(context), settings, deadline))
    deliveries = [one for state in context.journal.incidents(unfinished=True) for one in state.deliveries.values()]
    return SendResult(
        incidents=changed,
        messages=found,
        pending=sum(one.pending for one in deliveries),
        given_up=sum(one.given_up for one in deliveries),
    )


def send_test(context: SiteContext, channel: str = "", notifier: Notifier | None = None) -> tuple[SentMessage, ...]:
    """Send a test message to one channel, or to all. The journal is not changed. Raise `UsageError` where the site has
    no such channel.
    """
    settings = _settings(context)
    if channel and channel not in settings.channels:
        names = ", ".join(settings.channels)
        raise UsageError(f"there is no channel {channel!r}", where="CHANNEL", remedy=f"the channels are {names}")
    name = context.site.settings.name
    sample = IncidentMessage(
        incident=TEST,
        title=f"[{name}] test of clusterctl",
        body=f"This is a test message of the site {name}. Nothing is wrong.",
        phase=Phase.OPENED,  # a pager shows nothing of a message that closes an alert
    )
    send = notifier or site_channels(context)
    return tuple(_attempt(send, one, sample) for one in ([channel] if channel else settings.channels))


def after_run(context: SiteContext) -> None:
    """Bring the incidents up to date at the end of a run, and send what is due. Whatever fails is logged: the outcome
    of the run is what it is.
    """
    try:
        found = run(context, seconds=AFTER_A_RUN_S)
    except ClusterctlError as error:
        log.warning("incidents: %s", error)
    except Exception:  # no fault of messages changes the outcome of a run
        log.exception("incidents: unexpected error")
    else:
        for one in found.messages:
            log.info("message about %s to %s: %s", one.incident, one.channel, one.failure or "sent")


def site_channels(context: SiteContext) -> Notifier:
    """Return the channels of the site. Raise `UsageError` where it has none."""
    from clusterctl.operations.channels import site_notifier

    return site_notifier(context.site, _settings(context))


def _settings(context: SiteContext) -> NotifySettings:
    if context.site.settings.notify is None:
        remedy = "add notify: {channels: …, routes: …} (docs/how-to/notifications.md)"
        raise UsageError("the site has no channels", where=context.site.where("notify"), remedy=remedy)
    return context.site.settings.notify


def _send(
    context: SiteContext, notifier: Notifier, settings: NotifySettings, deadline: Deadline
) -> Iterator[SentMessage]:
    lost = threading.Event()
    with sole_claim(context.journal, CLAIM, context.run, lost.set) as claim:
        for listed in context.journal.incidents(unfinished=True):
            state = incidents.current(context, listed.id)  # what was listed may be minutes old
            for channel, delivery in state.deliveries.items():
                if deadline.remaining <= 0 or lost.is_set():
                    return
                if state.facts is not None and delivery.due(CLOCK.now()):
                    outbox = _Outbox(context, notifier, settings, claim, state, state.facts)
                    yield outbox.send(channel, delivery)


@dataclass(frozen=True, slots=True)
class _Outbox:
    """The messages about one incident."""

    context: SiteContext
    notifier: Notifier
    settings: NotifySettings
    claim: Claim
    state: IncidentState
    facts: IncidentFacts

    def send(self, channel: str, delivery: Delivery) -> SentMessage:
        """Send the newest message to a channel: intent, message, result."""
        revision = self.state.revision
        text = message(self.state, self.facts, self.context.site.settings.name)
        self._write(MessageIntended(channel=channel, revision=revision))
        sent = _attempt(self.notifier, channel, text)
        if not sent.failure:
            self._write(MessageSent(channel=channel, revision=revision))
            return sent
        attempts = delivery.attempts + 1
        last = attempts >= self.settings.attempts or channel not in self.settings.channels
        retry_at = None if last else CLOCK.now() + retry_after(attempts)
        self._write(MessageFailed(channel=channel, revision=revision, reason=sent.failure, retry_at=retry_at))
        return sent

    def _write(self, payload: Payload) -> None:
        self.context.journal.append([NewEvent(Stream.INCIDENT, self.state.id, payload)], claim=self.claim)


def _attempt(notifier: Notifier, channel: str, text: IncidentMessage) -> SentMessage:
    failure = ""
    try:
        notifier.send(channel, text)
    except ClusterctlError as error:
        failure = str(error)
    return SentMessage(incident=text.incident, channel=channel, title=text.title, failure=failure)
