"""The model of a site: repeatable by its seed, and its limits hold time back as they do on a site."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.site_simulation import Assumed, Outcome, Plan, simulated

SMALL = Plan(nodes=160, pods=4, controllers=2, installs=64, technicians=4, weeks=2)


def hours(found: Outcome) -> tuple[float, float]:
    assert found.half is not None
    assert found.most is not None
    return found.half, found.most


def test_the_same_seed_gives_the_same_answer() -> None:
    """And another seed another one."""
    assert simulated(SMALL) == simulated(SMALL)
    assert simulated(SMALL) != simulated(replace(SMALL, seed=2))


def test_no_machine_is_gold_sooner_than_its_steps_take() -> None:
    """Two self-tests, the write, the play and the loads at their shortest; nothing waits where all is plentiful."""
    ample = replace(SMALL, installs=9999, configure=9999, discover=9999, canary=False, technicians=9999)
    found, assumed = simulated(ample), Assumed()
    shortest = 0.8 * (2 * assumed.post + assumed.write_os + assumed.configure + assumed.burnin)
    assert hours(found)[0] * 3600 > shortest
    waits = {use.name: use.wait for use in found.uses}
    assert waits["installs at once"] == waits["configure at once"] == waits["technicians"] == 0


def test_what_is_scarce_is_named_and_costs_time() -> None:
    """Two installs at once hold everything up; so do plays one after the other."""
    plenty = simulated(SMALL)
    installs, plays = simulated(replace(SMALL, installs=2)), simulated(replace(SMALL, configure=1))
    assert (installs.bottleneck, plays.bottleneck) == ("installs at once", "configure at once")
    assert min(hours(installs)[1], hours(plays)[1]) > hours(plenty)[1]


def test_without_technicians_in_time_what_does_not_boot_stays_so() -> None:
    """A tenth does not boot: one technician is not enough for 99 % in two weeks, and spares raise the share of gold."""
    many = replace(SMALL, nodes=1600, technicians=1, assumed=Assumed(repair=4 * 3600.0))
    found, spared = simulated(many), simulated(replace(many, spares=160))
    assert found.all is None
    assert found.gold_share < spared.gold_share <= 1
    assert all(0 <= use.share <= 1 for use in (*found.uses, *spared.uses))
