"""One BMC may answer at several addresses; logins there count together, for its lock-out does so too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from clusterctl.fleet.bmc.observation import Greeting
from clusterctl.fleet.errors import AuthenticationError


@dataclass(slots=True)
class _Bmc:
    lock: threading.Lock = field(default_factory=threading.Lock)
    rejected_at: str = ""


class Twins:
    """Thread-safe. A BMC is known by what it tells strangers: its UUID, else the machine's serial, else its address."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bmcs: dict[str, _Bmc] = {}

    @contextmanager
    def turn(self, host: str, greeting: Greeting) -> Iterator[None]:
        """One login at a time for each BMC; `AuthenticationError` where it has rejected one already, at any address."""
        key = greeting.uuid or greeting.serial or host
        with self._lock:
            bmc = self._bmcs.setdefault(key, _Bmc())
        with bmc.lock:
            if bmc.rejected_at:
                message = f"the same BMC has rejected our login at {bmc.rejected_at}: not tried again in this run"
                raise AuthenticationError(message, remedy="correct the credentials, then sweep again")
            try:
                yield
            except AuthenticationError:
                bmc.rejected_at = host
                raise
