"""Limits: attempts to sign in per key and time, and event streams per user and in total. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address

MOST_KEYS = 10_000
"""Keys that are remembered; the one with the fewest attempts is dropped first: others' names cannot free a name."""
IPV6_PREFIX = 64
"""One subscriber has at least this much of an IPv6 address (RFC 6177)."""


@dataclass
class RateLimit:
    """At most `attempts` of one key within `seconds`."""

    attempts: int
    seconds: float
    clock: Callable[[], float] = time.monotonic
    most_keys: int = MOST_KEYS
    _taken: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, key: str) -> float:
        """Count an attempt and return 0.0; where there were too many, return the seconds until the next is allowed."""
        now = self.clock()
        with self._lock:
            times = self._taken.setdefault(key, deque())
            self._taken.move_to_end(key)
            while times and now - times[0] >= self.seconds:
                times.popleft()
            if len(times) >= self.attempts:
                return self.seconds - (now - times[0])
            times.append(now)
            if len(self._taken) > self.most_keys:
                self._drop(now)
            return 0.0

    def _drop(self, now: float) -> None:
        """Drop the keys whose time is over; where there are none, the oldest one of those with the fewest attempts."""
        kept = len(self._taken)
        while self._taken:
            times = next(iter(self._taken.values()))
            if times and now - times[-1] < self.seconds:
                break
            self._taken.popitem(last=False)
        if len(self._taken) == kept:
            del self._taken[min(self._taken, key=lambda key: len(self._taken[key]))]

    def give_back(self, key: str) -> None:
        """Forget the last attempt of a key: it was right."""
        with self._lock:
            times = self._taken.get(key)
            if times:
                times.pop()


def address_key(address: str) -> str:
    """Return the key of a client's address: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> IPV6_PREFIX << IPV6_PREFIX)}/{IPV6_PREFIX}"
    return str(found)


@dataclass
class StreamLimit:
    """Event streams that are open at the same time: each holds a connection for hours."""

    per_user: int = 10
    total: int = 150
    _open: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, user: str) -> bool:
        """Count a stream of the user; return False where there are too many. `give_back` ends it."""
        with self._lock:
            if self._open[user] >= self.per_user or self._open.total() >= self.total:
                return False
            self._open[user] += 1
            return True

    def give_back(self, user: str) -> None:
        with self._lock:
            self._open[user] -= 1
            if self._open[user] <= 0:
                del self._open[user]

    @contextmanager
    def held(self, user: str) -> Iterator[None]:
        """Give back, at the end, a stream that was taken."""
        try:
            yield
        finally:
            self.give_back(user)
