"""Each host plays the playbook itself, with an Ansible of ours: the controller only sends, listens and judges.

A host that cannot (no Python, an old one, no sudo, no room) declines before anything was done on it; who asked decides
what then. Once a task has begun it is never played again in another way.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from clusterctl.edges.ansible.bundle import Bundle
from clusterctl.edges.ansible.session import Message, Session, ssh_argv
from clusterctl.edges.ansible.sessions import Sessions
from clusterctl.edges.ansible.ssh_options import ssh_options
from clusterctl.edges.ansible.supervised import OutOfTimeError
from clusterctl.edges.ansible.transcript import KEPT, HostResult, Transcript
from clusterctl.edges.ansible.workspace import Settings, Workspace
from clusterctl.edges.redaction import Redaction
from clusterctl.ports import Deadline, HostAddress

log = logging.getLogger(__name__)

SSH_FAILED = 255
TRIES = 3
LOCK_SILENCES = 3
"""A play whose controller died ends after one silence; so many of them a host's lock is waited for."""
TEXTS = ("host", "role", "task", "action")


@dataclass(frozen=True, slots=True)
class Declined:
    """Nothing was done on this host, and it cannot play by itself."""

    host: HostAddress
    reason: str


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be played: the playbook's file name, its packed errand, the Ansible to do it with."""

    playbook: str
    errand: bytes
    bundle: Bundle
    settings: Settings
    silence_s: float
    check: bool


class Client(Protocol):
    def __call__(self, host: HostAddress, options: Sequence[str]) -> Sequence[str]: ...


@dataclass(slots=True)
class _Play:
    transcript: Transcript
    tries: int = 1
    started: bool = False


Told = HostResult | Declined


@dataclass(slots=True)
class HostPlays:
    """One run. `run` yields one thing for each host, as it comes. `client` makes the command line that enters one."""

    order: Order
    hosts: Sequence[HostAddress]
    redact: Redaction
    client: Client = ssh_argv
    _plays: dict[str, _Play] = field(init=False)

    def __post_init__(self) -> None:
        self._plays = {host.name: _Play(Transcript([host.name], self.redact)) for host in self.hosts}

    def run(self, work_dir: Path, deadline: Deadline) -> Generator[Told, None, None]:
        """Leaves no client here, and no play on a host, however it ends. Raises as the deadline's check does."""
        order = self.order
        request = {
            "digest": order.bundle.digest,
            "oldest_python": order.bundle.oldest_python,
            "silence_s": order.silence_s,
            "wait_s": LOCK_SILENCES * order.silence_s,
        }
        workspace = Workspace.create(work_dir)
        try:
            timeout = str(order.settings.connect_timeout)
            options = ssh_options(workspace.pin(self.hosts), BatchMode="yes", ConnectTimeout=timeout)
            client = partial(self.client, options=options)
            with Sessions(self.hosts, client, request, order.settings.forks) as sessions:
                try:
                    with closing(sessions.messages(deadline, f"playing {order.playbook} on hosts")) as messages:
                        for session, message in messages:
                            yield from self._hear(sessions, session, message, deadline)
                except OutOfTimeError:
                    names = sessions.names
                else:
                    names = ()
            for name in names:
                yield from self._plays[name].transcript.out_of_time()
        finally:
            workspace.remove()

    def _hear(self, sessions: Sessions, session: Session, message: Message, deadline: Deadline) -> Iterator[Told]:
        play, kind = self._plays[session.host.name], message["event"]
        if kind == "hello":
            deadline.check(f"sending {self.order.playbook} to {session.host.name}")
            sessions.say(session, *self._parcel(session.host, has_bundle=message.get("has_bundle") is True))
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

    def _parcel(self, host: HostAddress, *, has_bundle: bool) -> Sequence[bytes]:
        """The line with sizes, Ansible where the host lacks it, and the errand."""
        order = self.order
        bundle = b"" if has_bundle else order.bundle.content
        job = {
            "name": host.name,
            "host": {"ansible_host": host.address, "ansible_port": host.port},
            "playbook": order.playbook,
            "flags": "--check" if order.check else "",
            "task_timeout": order.settings.task_timeout,
            "gather_timeout": order.settings.gather_timeout,
        }
        sizes = {"bundle": len(bundle), "errand": len(order.errand), "job": job}
        return json.dumps(sizes).encode() + b"\n", bundle, order.errand

    def _task(self, sessions: Sessions, session: Session, message: Message) -> Iterator[Told]:
        play, name = self._plays[session.host.name], session.host.name
        if not _is_sound(message, name):
            sessions.dismiss(session)
            yield from play.transcript.lost("the host said what no play says", unreachable=False)
            return
        play.started = True
        yield from play.transcript.hear(message)

    def _ended(self, host: HostAddress, play: _Play, end: Message) -> Iterator[Told]:
        """Every host is over when its Ansible ends; where none of its tasks began, Ansible could not run there."""
        if not play.transcript.unfinished:
            return
        full = f"no room left in {end['full']}: " if end.get("full") else ""
        said = full + (self.redact(str(end.get("output", "")))[-KEPT:].strip() or "it said nothing")
        if play.started:
            yield from play.transcript.lost(f"Ansible ended on the host: {said}", unreachable=False)
        else:
            yield Declined(host, f"Ansible does not run there: {said}")

    def _closed(self, sessions: Sessions, host: HostAddress, play: _Play, closed: Message) -> Iterator[Told]:
        if not play.transcript.unfinished:
            return
        said = self.redact(str(closed["error"])) or "it gave no reason"
        if closed["status"] == SSH_FAILED and not play.started and play.tries < TRIES:
            play.tries += 1
            sessions.again(host)
        elif closed["status"] == SSH_FAILED:
            yield from play.transcript.lost(f"Failed to connect to the host via ssh: {said}", unreachable=True)
        elif play.started:
            yield from play.transcript.lost(f"the play on the host was ended there: {said}", unreachable=False)
        else:
            yield Declined(host, said.rpartition("\n")[2])


def _is_sound(message: Message, host: str) -> bool:
    """A host may speak of itself alone, and in the supervisor's form."""
    if message["event"] == "playbook_on_stats":
        return all(isinstance(message.get(name), Mapping) for name in ("dark", "failures", "processed"))
    texts: Any = [message.get(name) for name in TEXTS]
    return message.get("host") == host and all(isinstance(text, str) for text in texts) and _has_result(message)


def _has_result(message: Message) -> bool:
    return isinstance(message.get("result"), Mapping) and {"ignored", "seconds"} <= message.keys()
