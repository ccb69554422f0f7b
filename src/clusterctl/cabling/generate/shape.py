"""How many switches a non-blocking rail-optimised fat tree needs, and how its tiers are joined. Pure arithmetic.

A *scalable unit* is one leaf for each rail, and the hosts on them: adapter n of every host of the unit is on the leaf
of rail n. Two tiers: every leaf reaches every spine. Three tiers: units stand in pods of their own spines, and the
spines are dealt out to *planes*; a spine reaches every core switch of its plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError

_FEWEST = 2
"""Switches of an upper tier: one alone would be a single point of failure."""


@dataclass(frozen=True, slots=True)
class FabricSize:
    """`radix` is the number of ports of every switch."""

    hosts: int
    rails: int
    radix: int
    tiers: int


@dataclass(frozen=True, slots=True)
class Shape:
    """`width` counts the parallel links between a leaf and each spine of its pod, `core_width` those between a spine
    and each core of its plane. Without spines (`tiers` 1) or cores the numbers are 0.
    """

    wanted: FabricSize
    unit_hosts: int
    units_per_pod: int
    pods: int
    spines_per_pod: int = 0
    width: int = 0
    planes: int = 0
    cores_per_plane: int = 0
    core_width: int = 0

    @property
    def units(self) -> int:
        return -(-self.wanted.hosts // self.unit_hosts)

    @property
    def leaves(self) -> int:
        return self.units * self.wanted.rails

    @property
    def spines(self) -> int:
        return self.pods * self.spines_per_pod

    @property
    def cores(self) -> int:
        return self.planes * self.cores_per_plane

    @property
    def even(self) -> bool:
        """Whether all pods have as many leaves: OpenSM's ftree routing takes no other tree."""
        return self.units % self.pods == 0

    @property
    def networks(self) -> int:
        """Separate subnets: rails without spines never meet."""
        return 1 if self.spines else self.wanted.rails


def shape_of(wanted: FabricSize) -> Shape:
    """Return the shape. Raise UsageError with the largest number of hosts that fits."""
    _check(wanted)
    largest = largest_hosts(wanted.rails, wanted.radix, wanted.tiers)
    if wanted.hosts > largest:
        tiers = "1 tier" if wanted.tiers == 1 else f"{wanted.tiers} tiers"
        message = f"{tiers} of {wanted.radix}-port switches carry at most {largest} hosts with {wanted.rails} rails"
        raise UsageError(message, where=f"--hosts {wanted.hosts}", remedy=_larger(wanted, largest))
    if wanted.tiers == 1:
        return Shape(wanted, unit_hosts=wanted.hosts, units_per_pod=1, pods=1)
    return _two_tiers(wanted) if wanted.tiers == 2 else _three_tiers(wanted)


def fewest_tiers(hosts: int, rails: int, radix: int) -> int:
    """Return the fewest tiers of one connected network of `hosts` hosts; 3 where even those do not suffice."""
    first = 1 if rails == 1 else 2
    return next((tiers for tiers in range(first, 4) if hosts <= largest_hosts(rails, radix, tiers)), 3)


def largest_hosts(rails: int, radix: int, tiers: int) -> int:
    """Return how many hosts fit; 0 where not even one unit does."""
    half = radix // 2
    if tiers == 1:
        return radix
    if tiers == 2:
        return radix // rails * half
    return radix * (half // rails) * half


def _check(wanted: FabricSize) -> None:
    if wanted.hosts < 1 or wanted.rails < 1:
        raise UsageError("at least one host and one rail", where="--hosts, --rails", remedy="give positive numbers")
    if wanted.radix < 4 or wanted.radix % 2:
        remedy = "give the switch's number of ports, such as 40 or 64"
        raise UsageError(f"{wanted.radix} is no even number from 4 on", where="--radix", remedy=remedy)
    if wanted.tiers not in (1, 2, 3):
        raise UsageError(f"no standard shape has {wanted.tiers} tiers", where="--tiers", remedy="give 1, 2 or 3")


def _larger(wanted: FabricSize, largest: int) -> str:
    for tiers in range(wanted.tiers + 1, 4):
        if wanted.hosts <= largest_hosts(wanted.rails, wanted.radix, tiers):
            return f"take --tiers {tiers}"
    return f"take at most {largest} hosts, or switches of more ports" if largest else "take switches of more ports"


def _two_tiers(wanted: FabricSize) -> Shape:
    units = -(-wanted.hosts // (wanted.radix // 2))
    unit_hosts = -(-wanted.hosts // units)
    spines, width = _spread(units * wanted.rails, unit_hosts, wanted.radix // 2, wanted.radix)
    return Shape(wanted, unit_hosts, units_per_pod=units, pods=1, spines_per_pod=spines, width=width)


def _three_tiers(wanted: FabricSize) -> Shape:
    half = wanted.radix // 2
    units = -(-wanted.hosts // half)
    unit_hosts = -(-wanted.hosts // units)
    fewest = -(-units // (half // wanted.rails))
    even = [pods for pods in range(fewest, min(units, wanted.radix) + 1) if units % pods == 0]
    shapes = [_of_pods(wanted, unit_hosts, -(-units // pods)) for pods in even or (fewest,)]
    return min(shapes, key=lambda shape: (shape.spines + shape.cores, shape.pods))


def _of_pods(wanted: FabricSize, unit_hosts: int, units_per_pod: int) -> Shape:
    half = wanted.radix // 2
    units = -(-wanted.hosts // unit_hosts)
    pods = -(-units // units_per_pod)
    leaves = units_per_pod * wanted.rails
    spines, width = _spread(leaves, unit_hosts, half, half)
    planes, cores, core_width = min(_planes(wanted.radix, pods, spines, leaves * width), key=lambda p: (p[0] * p[1], p))
    return Shape(wanted, unit_hosts, units_per_pod, pods, spines, width, planes, cores, core_width)


def _spread(lower: int, down: int, most_up: int, ports: int) -> tuple[int, int]:
    """Return (upper switches, links of each lower one to each of them): the fewest upper ones that carry it all.

    `lower` switches have `down` links downwards, at least as many upwards, and at most `most_up`; an upper switch has
    `ports` ports for them.
    """
    for upper in range(_FEWEST, most_up + 1):
        width = -(-down // upper)
        if width * upper <= most_up and lower * width <= ports:
            return upper, width
    raise AssertionError(f"{lower} switches with {down} links do not fit: largest_hosts lets too many in")


def _planes(radix: int, pods: int, spines: int, down: int) -> Iterator[tuple[int, int, int]]:
    """Yield (planes, cores in each, links from a spine to each core) that give a spine `down` uplinks or a few more.

    All planes have the same number of spines: routing by destination loads an uneven tree unevenly.
    """
    for core_width in range(1, radix // pods + 1):
        enough = -(-spines // (radix // (pods * core_width)))
        planes = next(count for count in range(enough, spines + 1) if spines % count == 0)
        cores = max(-(-down // core_width), -(-_FEWEST // planes))
        if cores * core_width <= radix // 2:
            yield planes, cores, core_width
