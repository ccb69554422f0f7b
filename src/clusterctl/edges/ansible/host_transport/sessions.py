"""SSH sessions of many hosts: one thread reads and writes them all, a second one sends signs of life."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from clusterctl.edges import processes
from clusterctl.edges.ansible.host_transport.programs import bootstrap
from clusterctl.edges.ansible.workspace import BEATS, require_time, tool_path
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.peer_json import read_json
from clusterctl.ports import Deadline, HostAddress

SOURCE = Path(bootstrap.__file__).read_bytes()
_READ = f"""\
import os
s = b""
while len(s) < {len(SOURCE)}:
    c = os.read(0, {len(SOURCE)} - len(s))
    s += c or os._exit(1)
exec(s)"""
_PYTHON = shlex.join(["/usr/bin/python3", "-I", "-c", _READ])
COMMAND = f'if [ "$(id -u)" = 0 ]; then exec {_PYTHON}; else exec sudo -n -H {_PYTHON}; fi'
"""Runs as root, in the environment of sudo; the program comes over stdin, and is in no log."""

LINE_BYTES = 1 << 20
ERROR_BYTES = 4096
_CHUNK = 1 << 16

Message = Mapping[str, Any]


class ProtocolError(Exception):
    """A host sent no valid message."""


def ssh_argv(host: HostAddress, options: Sequence[str]) -> list[str]:
    """Return the command of the client that starts `bootstrap.py` on the host."""
    identity = ("-i", host.key_file, "-p", str(host.port), "-l", host.user, "-T")
    return ["ssh", *options, *identity, "--", host.address, COMMAND]


class PlaySession:
    """One running SSH client. With `beats`, the host expects signs of life."""

    def __init__(self, host: HostAddress, argv: Sequence[str], request: Mapping[str, Any]) -> None:
        self.host = host
        self.beats = False
        self._unsent = memoryview(SOURCE + json.dumps(dict(request)).encode() + b"\n")
        self._unread = b""
        self._error = b""
        variables = {"PATH": tool_path(), "HOME": "/nonexistent", "LANG": "C.UTF-8"}
        self._process = processes.start(argv, variables, missing="install openssh-client", errors=True)
        for descriptor in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(descriptor, False)

    @property
    def stdin(self) -> int:
        return self._process.stdin.fileno() if self._process.stdin else -1

    @property
    def stdout(self) -> int:
        return self._process.stdout.fileno() if self._process.stdout else -1

    @property
    def stderr(self) -> int:
        return self._process.stderr.fileno() if self._process.stderr else -1

    @property
    def has_more_to_send(self) -> bool:
        """Return whether `flush` has more to write."""
        return bool(self._unsent)

    def send(self, *parts: bytes) -> None:
        """Queue these bytes for `flush`."""
        self._unsent = memoryview(b"".join((self._unsent, *parts)))

    def flush(self) -> None:
        """Write as much as the pipe takes. The end of the client is noticed at the end of its output."""
        try:
            self._unsent = self._unsent[os.write(self.stdin, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = memoryview(b"")

    def beat(self) -> None:
        """Send a sign of life; a full pipe already holds enough of them."""
        if self.beats and not self._unsent:
            with contextlib.suppress(OSError):
                os.write(self.stdin, b"\n")

    def receive(self) -> Iterator[Message]:
        """Yield the messages that have arrived. Raises `EOFError` when the client has ended, and `ProtocolError`."""
        try:
            chunk = os.read(self.stdout, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            raise EOFError
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        if len(self._unread) > LINE_BYTES:
            raise ProtocolError(f"a line of more than {LINE_BYTES >> 20} MiB")
        for line in lines:
            yield _message(line)

    def receive_errors(self) -> bool:
        """Keep the end of the error output; return whether more may come."""
        try:
            chunk = os.read(self.stderr, _CHUNK)
        except BlockingIOError:
            return True
        self._error = (self._error + chunk)[-ERROR_BYTES:]
        return bool(chunk)

    def hang_up(self) -> None:
        """Close stdin: that ends the play on the host, and then the client."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self, timeout_s: float = 0.0) -> tuple[int, str]:
        """Wait for the client, then kill it; return its exit status and its error output."""
        processes.end(self._process, timeout_s)
        self.receive_errors()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        return self._process.returncode, self._error.decode("utf-8", "replace").strip()


def _message(line: bytes) -> Message:
    try:
        message = read_json(line)
    except ParseError as error:
        raise ProtocolError(line[:200].decode("utf-8", "replace")) from error
    if not isinstance(message, dict) or not isinstance(message.get("event"), str):
        raise ProtocolError(line[:200].decode("utf-8", "replace"))
    return message


POLL_SECONDS = 0.2
CLOSING_SECONDS = 5.0
"""When the context ends, the plays on all hosts together have this time to end."""


class Sessions:
    """A context; leaving it ends every client, and what runs on the hosts. At most `at_once` run at the same time."""

    def __init__(
        self,
        hosts: Sequence[HostAddress],
        client: Callable[[HostAddress], Sequence[str]],
        request: Mapping[str, Any],
        at_once: int,
    ) -> None:
        self._waiting = deque(hosts)
        self._client = client
        self._request = request
        self._at_once = at_once
        self._live: dict[str, PlaySession] = {}
        self._selector = selectors.DefaultSelector()
        self._over = threading.Event()
        self._heartbeat = threading.Thread(target=self._beat, args=(request["silence_s"] / BEATS,), daemon=True)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._heartbeat.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._heartbeat.join()
        for session in self._live.values():
            session.hang_up()
        until = time.monotonic() + CLOSING_SECONDS
        for session in self._live.values():
            session.end(max(0.0, until - time.monotonic()))
        self._selector.close()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the hosts that are not done: the running ones, then the waiting ones."""
        return (*self._live, *(host.name for host in self._waiting))

    def messages(self, deadline: Deadline, doing: str) -> Generator[tuple[PlaySession, Message], None, None]:
        """Yield messages of hosts until all have ended; the last message of a lost host is `closed`.

        This class adds `closed`: `status` of the client, and `error`, its error output or the invalid message. Raises
        `OutOfTimeError`, `CancelledError` and what the deadline's fence raises.
        """
        while self._waiting or self._live:
            require_time(deadline, doing)
            while self._waiting and len(self._live) < self._at_once:
                self._start(self._waiting.popleft())
            for key, _ in self._selector.select(min(POLL_SECONDS, deadline.remaining)):
                session, act = key.data
                if session.host.name in self._live:
                    yield from self._listen(session, act)

    def send(self, session: PlaySession, *parts: bytes) -> None:
        """Send these bytes, and from now on signs of life."""
        session.send(*parts)
        self._watch_for_writing(session)
        session.beats = True

    def retry(self, host: HostAddress) -> None:
        """Connect to the host once more, after the waiting ones."""
        self._waiting.append(host)

    def dismiss(self, session: PlaySession) -> tuple[int, str]:
        """End the session; return the exit status and the error output of its client."""
        with self._lock:
            del self._live[session.host.name]
        for descriptor in (session.stdin, session.stdout, session.stderr):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(descriptor)
        return session.end(CLOSING_SECONDS)

    def _start(self, host: HostAddress) -> None:
        session = PlaySession(host, self._client(host), self._request)
        with self._lock:
            self._live[host.name] = session
        self._selector.register(session.stdout, selectors.EVENT_READ, (session, self._receive))
        self._selector.register(session.stderr, selectors.EVENT_READ, (session, self._receive_errors))
        self._watch_for_writing(session)

    def _watch_for_writing(self, session: PlaySession) -> None:
        self._selector.register(session.stdin, selectors.EVENT_WRITE, (session, self._write))

    def _listen(
        self, session: PlaySession, act: Callable[[PlaySession], Iterator[Message]]
    ) -> Iterator[tuple[PlaySession, Message]]:
        invalid = ""
        try:
            for message in act(session):
                yield session, message
                if session.host.name not in self._live:
                    return
        except EOFError:
            pass
        except ProtocolError as error:
            invalid = f"the host sent no valid message: {error}"
        else:
            return
        code, reason = self.dismiss(session)
        yield session, {"event": "closed", "status": code, "error": invalid or reason}

    def _receive(self, session: PlaySession) -> Iterator[Message]:
        return session.receive()

    def _receive_errors(self, session: PlaySession) -> Iterator[Message]:
        if not session.receive_errors():
            self._selector.unregister(session.stderr)
        return iter(())

    def _write(self, session: PlaySession) -> Iterator[Message]:
        session.flush()
        if not session.has_more_to_send:
            self._selector.unregister(session.stdin)
        return iter(())

    def _beat(self, every_s: float) -> None:
        while not self._over.wait(every_s):
            with self._lock:  # an ended session has no descriptors
                for session in self._live.values():
                    session.beat()
