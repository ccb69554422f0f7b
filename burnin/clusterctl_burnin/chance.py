"""What a count in a short time shows of a rate."""

from __future__ import annotations

import math

SURE = 0.001
"""A limit is called exceeded where chance alone would show so many events in fewer than one of a thousand cases."""
MANY = 300
"""From so many expected events on, Poisson's distribution is taken for a normal one."""


def exceeds(count: int, seconds: float, per_second: float) -> bool:
    """Return whether `count` events in `seconds` prove a higher rate than `per_second`.

    The tail of the Poisson distribution: events that come singly and by chance, as bit errors do.
    """
    mean = per_second * seconds
    if count <= mean:
        return False
    if mean > MANY:
        return math.erfc((count - 0.5 - mean) / math.sqrt(2 * mean)) / 2 < SURE
    term, below = math.exp(-mean), 0.0
    for number in range(count):
        below += term
        if 1.0 - below < SURE:
            return True
        term *= mean / (number + 1)
    return False
