"""Asking a busy BMC again."""

from __future__ import annotations

from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential

from clusterctl.edges.redfish.failures import DroppedError
from clusterctl.edges.redfish.library import Body, Library, Method, Reply
from clusterctl.edges.redfish.pace import Pace
from clusterctl.ports import Deadline

BUSY = frozenset({429, 502, 503, 504})
"""Statuses that say: later. Nothing was done."""


class Asker:
    """Sends reads and log-ins, again while the BMC is busy; a read also where it dropped the connection."""

    def __init__(self, library: Library, pace: Pace) -> None:
        self._library = library
        self._pace = pace

    def ask(
        self, method: Method, path: str, deadline: Deadline, *, body: Body | None = None, keep: bool = False
    ) -> Reply:
        """The last try's answer, or its error."""
        reply: Reply = self._retrying(method, path, deadline)(
            self._library.send, method, path, deadline, body=body, keep=keep and method == "GET"
        )
        return reply

    def _retrying(self, method: Method, path: str, deadline: Deadline) -> Retrying:
        again = retry_if_result(lambda reply: reply.status in BUSY or reply.status == 406)
        dropped = retry_if_exception_type(DroppedError)
        return Retrying(
            stop=stop_after_attempt(self._pace.attempts),
            wait=lambda state: asked_pause(state, self._pace),
            sleep=lambda seconds: deadline.sleep(seconds, f"waiting for a busy BMC to answer {method} {path}"),
            retry=again | dropped if method == "GET" else again,
            retry_error_callback=_last,
        )


def asked_pause(state: RetryCallState, pace: Pace) -> float:
    """What the BMC asks for in `Retry-After`, else longer from try to try."""
    reply = None if state.outcome is None or state.outcome.failed else state.outcome.result()
    told = retry_after(reply, pace.busy_max) if reply is not None else None
    return wait_random_exponential(multiplier=pace.busy, max=pace.busy_max)(state) if told is None else told


def retry_after(reply: Reply, most: float) -> float | None:
    """The seconds of `Retry-After`, no more than `most`; None where it gives none (RFC 9110 §10.2.3)."""
    told = reply.headers.get("retry-after", "")
    return min(float(told), most) if told.isdecimal() and told.isascii() and len(told) < 10 else None


def _last(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome else None
