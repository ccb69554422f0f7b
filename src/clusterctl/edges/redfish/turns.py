"""Machines of one group (a rack, a feed) wait for each other when they are switched on, whoever asks for it."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from clusterctl.fleet.stagger import Stagger
from clusterctl.ports import Deadline

_SLICE_SECONDS = 0.25
_DOING = "waiting until the machine may be switched on: others of its rack or PDU are coming on"


@dataclass(slots=True)
class _Group:
    going: int = 0
    ended: list[float] = field(default_factory=list)


class Turns:
    """`group_of` names the group of a BMC by its host. Thread-safe; one for a whole run."""

    def __init__(self, stagger: Stagger, group_of: Callable[[str], str]) -> None:
        self._stagger = stagger
        self._group_of = group_of
        self._groups: defaultdict[str, _Group] = defaultdict(_Group)
        self._lock = threading.Lock()

    def turn(self, host: str) -> Callable[[Deadline], AbstractContextManager[None]]:
        """For `PowerSwitch`: a context that begins when it is this machine's turn, and ends when it was seen on."""
        return lambda deadline: self._held(self._group_of(host), deadline)

    @contextmanager
    def _held(self, name: str, deadline: Deadline) -> Iterator[None]:
        while (wait := self._take(name)) > 0:
            deadline.sleep(wait, _DOING)
        try:
            yield
        finally:
            with self._lock:
                group = self._groups[name]
                group.going -= 1
                group.ended.append(time.monotonic())

    def _take(self, name: str) -> float:
        """0 where it is its turn, which is taken; else the seconds after which to ask again."""
        with self._lock:
            group, now = self._groups[name], time.monotonic()
            group.ended = [at for at in group.ended if now < at + self._stagger.seconds]
            wait = self._stagger.wait(group.going, group.ended, now)
            if wait is not None and wait <= 0:
                group.going += 1
                return 0.0
            return _SLICE_SECONDS if wait is None else wait
