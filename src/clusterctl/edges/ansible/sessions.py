"""Many hosts at once, each over one SSH session, by one thread; and a second one that gives signs of life."""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, Self

from clusterctl.edges.ansible.session import Message, NonsenseError, Session
from clusterctl.edges.ansible.supervised import BEATS, OutOfTimeError
from clusterctl.fleet.errors import UnreachableError
from clusterctl.ports import Deadline, HostAddress

POLL_SECONDS = 0.2
CLOSING_SECONDS = 5.0
"""So long a host has, all together, to say that its play has ended when we leave."""


class Sessions:
    """A context; leaving it ends every client, and with it what runs on the hosts. `at_once` bounds their number."""

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
        self._live: dict[str, Session] = {}
        self._selector = selectors.DefaultSelector()
        self._over = threading.Event()
        self._heart = threading.Thread(target=self._beat, args=(request["silence_s"] / BEATS,), daemon=True)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._heart.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._heart.join()
        for session in self._live.values():
            session.hang_up()
        until = time.monotonic() + CLOSING_SECONDS
        for session in self._live.values():
            session.end(max(0.0, until - time.monotonic()))
        self._selector.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts that are not over: those that run, then those that wait."""
        return (*self._live, *(host.name for host in self._waiting))

    def messages(self, deadline: Deadline, doing: str) -> Generator[tuple[Session, Message], None, None]:
        """What hosts say, as it comes, until all have ended; each one's last message is `closed`.

        `closed` is ours: `status` of the client, `error` (what it complained of, or what was not understood). Raises
        `OutOfTimeError`, `CancelledError` and whatever the deadline's fence raises.
        """
        while self._waiting or self._live:
            _check(deadline, doing)
            while self._waiting and len(self._live) < self._at_once:
                self._start(self._waiting.popleft())
            for key, _ in self._selector.select(min(POLL_SECONDS, deadline.remaining)):
                session, act = key.data
                if session.host.name in self._live:
                    yield from self._listen(session, act)

    def say(self, session: Session, *parts: bytes) -> None:
        """Send these; from then on the host hears that we live."""
        session.send(*parts)
        self._watch_for_writing(session)
        session.beats = True

    def again(self, host: HostAddress) -> None:
        """Enter it once more, after those that wait."""
        self._waiting.append(host)

    def dismiss(self, session: Session) -> tuple[int, str]:
        """The host is over; its client's exit status, and what it complained of."""
        with self._lock:
            del self._live[session.host.name]
        for descriptor in (session.stdin, session.stdout, session.stderr):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(descriptor)
        return session.end(CLOSING_SECONDS)

    def _start(self, host: HostAddress) -> None:
        session = Session(host, self._client(host), self._request)
        with self._lock:
            self._live[host.name] = session
        self._selector.register(session.stdout, selectors.EVENT_READ, (session, self._hear))
        self._selector.register(session.stderr, selectors.EVENT_READ, (session, self._hear_errors))
        self._watch_for_writing(session)

    def _watch_for_writing(self, session: Session) -> None:
        self._selector.register(session.stdin, selectors.EVENT_WRITE, (session, self._write))

    def _listen(
        self, session: Session, act: Callable[[Session], Iterator[Message]]
    ) -> Iterator[tuple[Session, Message]]:
        trouble = ""
        try:
            for message in act(session):
                yield session, message
                if session.host.name not in self._live:
                    return
        except EOFError:
            pass
        except NonsenseError as error:
            trouble = f"the host said what is no message: {error}"
        else:
            return
        code, said = self.dismiss(session)
        yield session, {"event": "closed", "status": code, "error": trouble or said}

    def _hear(self, session: Session) -> Iterator[Message]:
        return session.hear()

    def _hear_errors(self, session: Session) -> Iterator[Message]:
        if not session.hear_errors():
            self._selector.unregister(session.stderr)
        return iter(())

    def _write(self, session: Session) -> Iterator[Message]:
        session.flush()
        if not session.has_more_to_send:
            self._selector.unregister(session.stdin)
        return iter(())

    def _beat(self, every_s: float) -> None:
        while not self._over.wait(every_s):
            with self._lock:  # what is not live any more has no descriptors of its own
                for session in self._live.values():
                    session.beat()


def _check(deadline: Deadline, doing: str) -> None:
    try:
        deadline.check(doing)
    except UnreachableError as error:
        raise OutOfTimeError(error.message) from error
