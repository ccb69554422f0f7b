"""Wide rounds: large groups dealt so that each two hosts are in one group equally often.

The groups of a pass are the lines of an affine plane of order q: points are blocks of hosts, each round has one class
of q parallel lines, and two points are on one line in just one of the q + 1 rounds. For 511 hosts in groups of 64 these
are nine rounds. A host meets 63 others in a round, so that eight do not suffice.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterctl_burnin.hunting.deal import mixed
from clusterctl_burnin.hunting.model import Group, Rules

MOST_ROUNDS = 40
"""The most wide rounds of a hunt: with more than 2,048 hosts in groups of 64 some pairs are in none together."""

_POLYNOMIALS = {2: 0b111, 3: 0b1011, 4: 0b10011, 5: 0b100101, 6: 0b1000011, 7: 0b10000011}
"""Irreducible polynomials over GF(2) by degree, which make the fields of 4 to 128 elements."""
_ORDERS = tuple(sorted({1, *(n for n in range(2, 128) if all(n % d for d in range(2, n))), 4, 8, 16, 32, 64, 128}))


@dataclass(frozen=True, slots=True)
class Plane:
    """The rounds of one pass over `hosts`; each group has `widest` hosts at most."""

    hosts: tuple[str, ...]
    order: int

    @property
    def rounds(self) -> int:
        """Return how many rounds a pass has: one where all hosts are one group."""
        return 1 if self.order == 1 else self.order + 1

    def groups(self, number: int) -> list[Group]:
        """Return the groups of wide round `number` (from 0); each pass deals the hosts to other blocks."""
        passed, chosen = divmod(number, self.rounds)
        lines: dict[int, list[str]] = defaultdict(list)
        line = _lines(self.order, chosen)
        for index, name in enumerate(mixed(self.hosts, passed)):
            point = index % self.order**2
            lines[line(point // self.order, point % self.order)].append(name)
        return [tuple(sorted(lines[key])) for key in sorted(lines)]


def plane(hosts: Sequence[str], widest: int) -> Plane | None:
    """Return the plane of the fewest rounds whose groups have `widest` hosts at most; None where there is none."""
    fitting = (order for order in _ORDERS if order * math.ceil(len(hosts) / order**2) <= widest)
    order = next(fitting, None)
    return None if order is None or not hosts else Plane(tuple(hosts), order)


def wide_rounds(hosts: Sequence[str], rules: Rules) -> int:
    """Return how many wide rounds the rules want for these hosts: none where large groups are not larger."""
    found = plane(hosts, rules.widest) if rules.widest > rules.most and len(hosts) >= 2 * rules.most else None
    return min(MOST_ROUNDS, rules.meetings * found.rounds) if found else 0


def _lines(order: int, chosen: int) -> Callable[[int, int], int]:
    """Return which line of the class `chosen` a point is on: y = slope x + line, and x = line for the last class."""
    if order in (chosen, 1):
        return lambda x, _: x
    if order in (1 << degree for degree in _POLYNOMIALS):
        table = _products(order)
        return lambda x, y: y ^ table[chosen][x]
    return lambda x, y: (y - chosen * x) % order


@functools.cache
def _products(order: int) -> tuple[tuple[int, ...], ...]:
    """Return the products of the elements of a field of 2^n elements."""
    return tuple(tuple(_product(one, other, order) for other in range(order)) for one in range(order))


def _product(one: int, other: int, order: int) -> int:
    product, polynomial = 0, _POLYNOMIALS[order.bit_length() - 1]
    while other:
        if other & 1:
            product ^= one
        one <<= 1
        if one & order:
            one ^= polynomial
        other >>= 1
    return product
