"""A BMC's sessions (DSP0266, "Redfish session login authentication"): few of them, and idle ones expire."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.lab.faces.redfish.profile import Problem, RefusedError
from clusterctl.lab.faces.redfish.view import SessionView


@dataclass(slots=True)
class _Session:
    view: SessionView
    token: str
    used: float


class Sessions:
    """`timeout` is in seconds of idleness; `clock` any monotonic seconds."""

    def __init__(self, limit: int, timeout: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._timeout = timeout
        self._clock = clock
        self._open: dict[str, _Session] = {}
        self._last_id = 0

    def create(self, user: str, client: str) -> tuple[SessionView, str]:
        """A new session and its token; refused when all slots are taken."""
        self._expire()
        if len(self._open) >= self._limit:
            raise RefusedError(Problem.TOO_MANY_SESSIONS)
        self._last_id += 1
        view = SessionView(str(self._last_id), user, client)
        token = secrets.token_hex(16)
        self._open[view.id] = _Session(view, token, self._clock())
        return view, token

    def authenticate(self, token: str) -> bool:
        """True for the token of an open session, which thereby stays open."""
        self._expire()
        for session in self._open.values():
            if secrets.compare_digest(session.token.encode(), token.encode()):
                session.used = self._clock()
                return True
        return False

    def delete(self, session_id: str) -> None:
        del self._open[session_id]

    def views(self) -> tuple[SessionView, ...]:
        self._expire()
        return tuple(session.view for session in self._open.values())

    def _expire(self) -> None:
        oldest = self._clock() - self._timeout
        self._open = {key: session for key, session in self._open.items() if session.used > oldest}
