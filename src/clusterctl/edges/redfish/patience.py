"""Waiting for a BMC without being held by it.

BMCs hang, and answer a byte at a time. `requests` knows only a time-out per byte, and nothing of cancelling; so the TLS
socket itself waits in slices and looks at the deadline and the cancel token between them.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Any, cast

from clusterctl.fleet.errors import EdgeError, UnreachableError
from clusterctl.ports import Deadline

SLICE_SECONDS = 0.25
REQUEST_SECONDS = 60.0
MAX_ANSWER_BYTES = 64 * 2**20


class NoAnswerError(UnreachableError):
    """The request went out and no answer came: whether it took effect is not known."""


@dataclass(slots=True)
class Watch:
    """The request that a socket waits for: until when, and how much it may send."""

    deadline: Deadline
    until: float = 0.0
    doing: str = ""
    received: int = 0

    def begin(self, deadline: Deadline, doing: str, seconds: float = REQUEST_SECONDS) -> None:
        self.deadline, self.doing, self.received = deadline, doing, 0
        self.until = min(deadline.at, time.monotonic() + seconds)

    def check(self) -> None:
        """Raise when the run was cancelled, the time is over, or the answer grows without end."""
        if self.deadline.cancelled.is_set():
            self.deadline.check(self.doing)
        if time.monotonic() >= self.until:
            remedy = "reset the BMC, which takes connections and does not answer"
            raise NoAnswerError(f"no answer in time while {self.doing}", remedy=remedy)
        if self.received > MAX_ANSWER_BYTES:
            raise EdgeError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes while {self.doing}")


class WatchedContext(ssl.SSLContext):
    """A client context whose sockets look at `watch` while they wait."""

    watch: Watch


class _PatientSocket(ssl.SSLSocket):
    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        watch = cast("WatchedContext", self.context).watch
        while True:
            watch.check()
            try:
                count = super().recv_into(buffer, nbytes, flags)
            except TimeoutError:
                continue
            watch.received += count
            return count


def watched(watch: Watch) -> WatchedContext:
    """A client context whose sockets look at `watch`; whom it believes is still to be said."""
    made = WatchedContext(ssl.PROTOCOL_TLS_CLIENT)
    made.watch = watch
    made.sslsocket_class = _PatientSocket
    return made
