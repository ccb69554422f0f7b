"""Partitions of many hosts in which two hosts meet at most once: the parallel classes of an affine plane.

Host (x, y) is in group (y − r·x) mod q of class r, q a prime: two hosts of different columns x meet in just one class
(https://en.wikipedia.org/wiki/Affine_plane_(incidence_geometry)); hosts of one column meet in a class of their own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from clusterctl.cabling.burn.pair_rounds import circle
from clusterctl_burnin.hunting.model import Group


def screening_groups(hosts: Sequence[str], number: int, least: int, most: int, size: int = 0) -> tuple[Group, ...]:
    """Class `number` (from 0; they repeat) of a partition of `hosts`, `size` in a group within `least` and `most`.

    With a size of 0, about √N. Empty for fewer hosts than `least`. Groups of two are rounds of a tournament; of an odd
    number, one waits.
    """
    if len(hosts) < max(2, least):
        return ()
    if most == 2:
        rounds = len(hosts) - 1 + len(hosts) % 2
        pairs = next(itertools.islice(circle(hosts), number % rounds, None))
        return tuple(sorted(tuple(sorted(pair)) for pair in pairs))
    size = min(max(size or math.isqrt(len(hosts) - 1) + 1, least), most)
    order = next_prime(max(-(-len(hosts) // size), size))
    labels: dict[int, list[str]] = {}
    slope = number % (order + 1)
    for index, host in enumerate(hosts):
        column, row = divmod(index, order)
        label = column if slope == order else (row - slope * column) % order
        labels.setdefault(label, []).append(host)
    return joined([labels[label] for label in sorted(labels)], least, size)


def joined(parts: Sequence[Sequence[str]], least: int, size: int) -> tuple[Group, ...]:
    """Neighbouring parts put together while they stay within `size`; what is left below `least` joins the smallest.

    A part larger than `size` is cut.
    """
    cut = [part[at : at + size] for part in parts for at in range(0, len(part), size)]
    groups: list[list[str]] = []
    for part in cut:
        if groups and (len(groups[-1]) < least or len(groups[-1]) + len(part) <= size):
            groups[-1] += part
        else:
            groups.append(list(part))
    if len(groups) > 1 and len(groups[-1]) < least:
        rest = groups.pop()
        min(groups, key=len).extend(rest)
    return tuple(tuple(sorted(group)) for group in groups if len(group) >= least)


def paired(parts: Sequence[Sequence[str]]) -> tuple[Group, ...]:
    """Parts of two stay as they are, those who are left over are paired; of an odd number one waits."""
    cut = [tuple(part[at : at + 2]) for part in parts for at in range(0, len(part), 2)]
    left = [name for part in cut if len(part) == 1 for name in part]
    whole = [part for part in cut if len(part) == 2]
    return tuple(tuple(sorted(pair)) for pair in (*whole, *zip(left[::2], left[1::2], strict=False)))


def next_prime(number: int) -> int:
    """The smallest prime that is not below `number`."""
    candidate = max(2, number)
    while any(candidate % divisor == 0 for divisor in range(2, math.isqrt(candidate) + 1)):
        candidate += 1
    return candidate
