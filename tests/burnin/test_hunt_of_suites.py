"""The shipped suite finds what is bad in simulated fleets: a small, seeded version of `benchmarks.hunt`."""

from __future__ import annotations

import pytest

from benchmarks.hunt import WORLDS, fleets, hunted

CASES = [
    ("nothing", 3),
    ("burst", 2),
    ("host-3", 3),
    ("host-1-all_reduce", 4),
    ("host-3-all_reduce", 6),
    ("leaf", 4),
    ("leaf-rail", 4),
    ("uplink", 4),
    ("pair", 3),
]


@pytest.mark.parametrize(("world", "trials"), CASES)
def test_what_is_bad_is_named_as_what_it_is_and_nothing_else(world: str, trials: int) -> None:
    """One miss at most in all hunts of a world, no host accused falsely, nothing called settled that is not."""
    results = [hunted("bootstrap", fleet) for fleet in fleets(WORLDS[world], 48, range(trials), seed=1)]
    assert not any(result.accused for result in results)
    assert sum(not result.named for result in results) <= 1
    assert not any(result.settled and not result.named for result in results)


def test_three_hosts_of_five_hundred() -> None:
    """That fail 70 % of their runs."""
    for fleet in fleets(WORLDS["host-3"], 511, range(1), seed=1):
        result = hunted("bootstrap", fleet)
        assert (result.named, result.accused) == (True, False)
