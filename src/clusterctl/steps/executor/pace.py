"""Fewer reboots at once while the subnet manager is busy, or does not answer.

Its activity is the count that SMInfo carries (InfiniBand Architecture Specification, 14.2.5.13). OpenSM counts there
the management packets that it has sent: a light sweep asks each switch once, in ten seconds; a heavy one, after links
have come up, asks each port and writes the tables of all switches.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.ports import Deadline, MasterActivity, MasterReader

SLOWER = 4
"""So many times fewer hosts reboot at once meanwhile; one always may."""
LOOK_S = 2.0
"""Seconds between two readings: a rate over less is of single packets."""
ANSWER_S = 2.0
"""Seconds that a reading may take: who asks for a permit waits for it."""
SILENT_S = 30.0
"""Seconds without a further question after one that had no answer."""


@dataclass(slots=True)
class SubnetManagerPace:
    """Callable with the cap on reboots; returns how many may reboot at present. Thread-safe.

    busy       packets in a second above which it is busy
    on_change  receives what has changed, as text
    """

    master: MasterReader
    busy: float
    on_change: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _last: MasterActivity | None = field(default=None, init=False)
    _asked: float = field(default=float("-inf"), init=False)
    _pause: float = field(default=LOOK_S, init=False)
    _reason: str | None = field(default=None, init=False)
    _reported: bool = field(default=False, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __call__(self, at_most: int) -> int:
        """Until two readings have been made, the smaller number. While another thread reads, what was known before."""
        if self._lock.acquire(blocking=False):
            try:
                if self.now() - self._asked >= self._pause:
                    self._look()
            finally:
                self._lock.release()
        return at_most if self._reason == "" else max(1, at_most // SLOWER)

    def _look(self) -> None:
        try:
            seen = self.master.activity(Deadline.after(ANSWER_S))
        except ClusterctlError as error:
            self._become(f"the subnet manager cannot be asked: {error.message}")
            self._last = None
            self._pause = SILENT_S
        else:
            if self._last is not None and self._last.guid == seen.guid and seen.packets >= self._last.packets:
                rate = (seen.packets - self._last.packets) / max(self.now() - self._asked, LOOK_S)
                busy = f"the subnet manager sends {rate:.0f} packets a second (fabric.sm_busy: {self.busy:g})"
                self._become(busy if rate > self.busy else "")
            else:  # another master, or one that began to count again: it restarted, or passed 2^32
                self._become(None)
            self._last = seen
            self._pause = LOOK_S
        self._asked = self.now()

    def _become(self, reason: str | None) -> None:
        """Keep why it is slow now: empty where it is not, None until a rate is known."""
        if reason is not None and bool(reason) is not self._reported:
            self.on_change(f"fewer hosts reboot at once: {reason}" if reason else "the subnet manager is idle again")
            self._reported = bool(reason)
        self._reason = reason
