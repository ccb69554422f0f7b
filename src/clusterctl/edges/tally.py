"""How many requests this process has made to each kind of peer: `-v` prints it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum


class Asked(StrEnum):
    """What one request is made to, in the plural."""

    BMC = "requests to BMCs"
    MAAS = "requests to MAAS"
    NETBOX = "requests to NetBox"
    UFM = "requests to UFM"
    HOST = "commands on hosts"
    PROGRAM = "programs on this machine"


_counts: Counter[Asked] = Counter()
_lock = threading.Lock()


def count(asked: Asked) -> None:
    """Count one request, whatever its outcome."""
    with _lock:
        _counts[asked] += 1


def counts() -> Mapping[Asked, int]:
    """Return how many requests were made since the process began; a kind without a request is not in it."""
    with _lock:
        return dict(_counts)
