"""A BMC's sessions (DSP0266, "Redfish session login authentication"): few of them, and idle ones expire."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.view import SessionView


@dataclass(slots=True)
class _Session:
    view: SessionView
    token: str
    used: float
    requests: int = 0


class Sessions:
    """`timeout` is in seconds of idleness, `limit` how many may be open; `clock` any monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[str, _Session] = {}
        self._last_id = 0

    def create(self, user: str, client: str, limit: int, timeout: float) -> tuple[SessionView, str]:
        """A new session and its token; refused when all slots are taken."""
        self._expire(timeout)
        if len(self._open) >= limit:
            raise RefusedError(Problem.TOO_MANY_SESSIONS)
        self._last_id += 1
        view = SessionView(str(self._last_id), user, client)
        token = secrets.token_hex(16)
        self._open[view.id] = _Session(view, token, self._clock())
        return view, token

    def authenticate(self, token: str, timeout: float, requests: int | None = None) -> bool:
        """True for the token of an open session, which thereby stays open, but for no more than so many requests."""
        self._expire(timeout)
        for session in self._open.values():
            if secrets.compare_digest(session.token.encode(), token.encode()):
                session.used = self._clock()
                session.requests += 1
                if requests is not None and session.requests > requests:
                    del self._open[session.view.id]
                    return False
                return True
        return False

    def delete(self, session_id: str) -> None:
        del self._open[session_id]

    def clear(self) -> None:
        """End all sessions."""
        self._open.clear()

    def views(self, timeout: float) -> tuple[SessionView, ...]:
        self._expire(timeout)
        return tuple(session.view for session in self._open.values())

    def _expire(self, timeout: float) -> None:
        oldest = self._clock() - timeout
        self._open = {key: session for key, session in self._open.items() if session.used > oldest}
