"""The host transport: each host runs the playbook itself, with an Ansible that the controller sends.

A host that cannot do that (no Python, an old one, no sudo, no room) declines before anything has changed on it; the
caller decides what follows. After a task has begun, the playbook is never run again over the other transport.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from clusterctl.edges.ansible.host_transport.bundle import Bundle
from clusterctl.edges.ansible.host_transport.sessions import Message, PlaySession, Sessions, ssh_argv
from clusterctl.edges.ansible.transcript import KEPT, HostResult, Transcript
from clusterctl.edges.ansible.workspace import OutOfTimeError, RunSettings, Workspace, ssh_options
from clusterctl.edges.redaction import Redaction
from clusterctl.ports import Deadline, HostAddress
from clusterctl.ports.isolation import peer_error

log = logging.getLogger(__name__)

SSH_FAILED = 255
TRIES = 3
LOCK_SILENCES = 3
"""How many silences a host waits for its lock. A play without its controller ends after one silence."""
TEXTS = ("host", "role", "task", "action")


@dataclass(frozen=True, slots=True)
class Declined:
    """A host that cannot run the playbook itself. Nothing has changed on it."""

    host: HostAddress
    reason: str


@dataclass(frozen=True, slots=True)
class PlayRequest:
    """The playbook's file name, its packed payload, and the Ansible that runs it."""

    playbook: str
    payload: bytes
    bundle: Bundle
    settings: RunSettings


class Client(Protocol):
    def __call__(self, host: HostAddress, options: Sequence[str]) -> Sequence[str]: ...


@dataclass(slots=True)
class _Play:
    transcript: Transcript
    tries: int = 1
    started: bool = False


Answer = HostResult | Declined


@dataclass(slots=True)
class HostPlays:
    """One run. `run` yields one answer for each host, as it arrives. `client` makes the SSH command of a host."""

    request: PlayRequest
    hosts: Sequence[HostAddress]
    redact: Redaction
    client: Client = ssh_argv
    _plays: dict[str, _Play] = field(init=False)

    def __post_init__(self) -> None:
        self._plays = {host.name: _Play(Transcript([host.name], self.redact)) for host in self.hosts}

    def run(self, deadline: Deadline) -> Generator[Answer, None, None]:
        """Yield one answer for each host. Raises as the deadline's check does.

        However it ends, no client is left on the controller, and no play on a host.
        """
        settings, bundle = self.request.settings, self.request.bundle
        greeting = {
            "digest": bundle.digest,
            "oldest_python": bundle.oldest_python,
            "silence_s": settings.silence_s,
            "wait_s": LOCK_SILENCES * settings.silence_s,
        }
        workspace = Workspace.create(settings.work_dir)
        try:
            timeout = str(settings.limits.connect_timeout)
            options = ssh_options(workspace.pin(self.hosts), BatchMode="yes", ConnectTimeout=timeout)
            client = partial(self.client, options=options)
            with Sessions(self.hosts, client, greeting, settings.limits.forks) as sessions:
                try:
                    with closing(sessions.messages(deadline, f"running {self.request.playbook} on hosts")) as messages:
                        for session, message in messages:
                            yield from self._handle(sessions, session, message, deadline)
                except OutOfTimeError:
                    names = sessions.names
                else:
                    names = ()
            for name in names:
                yield from self._plays[name].transcript.out_of_time()
        finally:
            workspace.remove()

    def _handle(
        self, sessions: Sessions, session: PlaySession, message: Message, deadline: Deadline
    ) -> Iterator[Answer]:
        """Yield the answers that one host's message decides; one that cannot be processed ends that host's play."""
        try:
            yield from self._take(sessions, session, message, deadline)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            why = peer_error(error, session.host.name).message
            if session.host.name in sessions.names:
                sessions.dismiss(session)
            yield from self._plays[session.host.name].transcript.lost(why, unreachable=False)

    def _take(self, sessions: Sessions, session: PlaySession, message: Message, deadline: Deadline) -> Iterator[Answer]:
        play, kind = self._plays[session.host.name], message["event"]
        if kind == "hello":
            deadline.check(f"sending {self.request.playbook} to {session.host.name}")
            sessions.send(session, *self._request_for(session.host, has_bundle=message.get("has_bundle") is True))
        elif kind == "waiting":
            log.info("%s: waits until an earlier play there has ended", session.host.name)
        elif kind == "busy":
            sessions.dismiss(session)
            yield from play.transcript.lost(f"another play still runs there ({message.get('pid')})", unreachable=False)
        elif kind == "declined":
            sessions.dismiss(session)
            yield Declined(session.host, self.redact(str(message.get("reason")))[:KEPT])
        elif kind == "end":
            sessions.dismiss(session)
            yield from self._ended(session.host, play, message)
        elif kind == "closed":
            yield from self._closed(sessions, session.host, play, message)
        else:
            yield from self._task(sessions, session, message)

    def _request_for(self, host: HostAddress, *, has_bundle: bool) -> Sequence[bytes]:
        """Return the line with the sizes, Ansible if the host lacks it, and the payload."""
        request, limits = self.request, self.request.settings.limits
        bundle = b"" if has_bundle else request.bundle.content
        job = {
            "name": host.name,
            "host": {"ansible_host": host.address, "ansible_port": host.port},
            "playbook": request.playbook,
            "flags": "--check" if request.settings.check else "",
            "task_timeout": limits.task_timeout,
            "gather_timeout": limits.gather_timeout,
        }
        sizes = {"bundle": len(bundle), "payload": len(request.payload), "job": job}
        return json.dumps(sizes).encode() + b"\n", bundle, request.payload

    def _task(self, sessions: Sessions, session: PlaySession, message: Message) -> Iterator[Answer]:
        play, name = self._plays[session.host.name], session.host.name
        if not _is_valid(message, name):
            sessions.dismiss(session)
            yield from play.transcript.lost("the host sent a message that no play sends", unreachable=False)
            return
        play.started = True
        yield from play.transcript.add(message)

    def _ended(self, host: HostAddress, play: _Play, end: Message) -> Iterator[Answer]:
        """Finish a play that has ended on the host. If no task began, Ansible cannot run there."""
        if not play.transcript.unfinished:
            return
        full = f"no room left in {end['full']}: " if end.get("full") else ""
        printed = full + (self.redact(str(end.get("output", "")))[-KEPT:].strip() or "no output")
        if play.started:
            yield from play.transcript.lost(f"Ansible ended on the host: {printed}", unreachable=False)
        else:
            yield Declined(host, f"Ansible does not run there: {printed}")

    def _closed(self, sessions: Sessions, host: HostAddress, play: _Play, closed: Message) -> Iterator[Answer]:
        if not play.transcript.unfinished:
            return
        reason = self.redact(str(closed["error"])) or "no reason given"
        if closed["status"] == SSH_FAILED and not play.started and play.tries < TRIES:
            play.tries += 1
            sessions.retry(host)
        elif closed["status"] == SSH_FAILED:
            yield from play.transcript.lost(f"Failed to connect to the host via ssh: {reason}", unreachable=True)
        elif play.started:
            yield from play.transcript.lost(f"the play was ended on the host: {reason}", unreachable=False)
        else:
            yield Declined(host, reason.rpartition("\n")[2])


def _is_valid(message: Message, host: str) -> bool:
    """Return whether the message has the supervisor's form, and is about this host."""
    if message["event"] == "playbook_on_stats":
        return all(isinstance(message.get(name), Mapping) for name in ("dark", "failures", "processed"))
    texts: Any = [message.get(name) for name in TEXTS]
    return message.get("host") == host and all(isinstance(text, str) for text in texts) and _has_result(message)


def _has_result(message: Message) -> bool:
    return isinstance(message.get("result"), Mapping) and {"ignored", "seconds"} <= message.keys()
