"""Patterns of slow jobs, over synthetic series of single steps with noise."""

from __future__ import annotations

import random

import pytest

from clusterctl.jobs.patterns import FEWEST, Pattern, classify


def series(steps: int = 600, level: float = 1.0, noise: float = 0.005, seed: int = 1) -> list[float]:
    generator = random.Random(seed)
    return [level * (1 + generator.gauss(0, noise)) for _ in range(steps)]


def found(values: list[float], *, expected: bool = True) -> list[Pattern]:
    return [one.pattern for one in classify(values, against_expected=expected)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("level", "pattern"),
    [
        (1.0, Pattern.HEALTHY),
        (0.05, Pattern.STEADY_LOWEST),
        (0.30, Pattern.STEADY_LOW),
        (0.70, Pattern.STEADY_REDUCED),
    ],
)
def test_steady_levels(level: float, pattern: Pattern, seed: int) -> None:
    assert found(series(level=level, seed=seed)) == [pattern]


@pytest.mark.parametrize("seed", range(5))
def test_checkpoints_are_no_alarm(seed: int) -> None:
    """Dips to a tenth each 50 steps, one step or several long."""
    values = series(seed=seed)
    for at in range(20, 600, 50):
        values[at] *= 0.1
    assert found(values) == [Pattern.PERIODIC_DIPS]
    assert not classify(values, against_expected=True)[0].meaning.alarm


@pytest.mark.parametrize("seed", range(5))
def test_random_dips_are_foreign_load(seed: int) -> None:
    values, generator = series(seed=seed), random.Random(seed)
    at = 0
    while (at := at + generator.randrange(15, 120)) < 600:
        values[at] *= 0.1
    assert found(values)[0] is Pattern.RANDOM_DIPS


@pytest.mark.parametrize("seed", range(5))
def test_a_sudden_drop_has_its_step(seed: int) -> None:
    """To 70 % at step 400: a throttled GPU; the checkpoints of the job do not hide it."""
    values = series(steps=400, seed=seed) + series(steps=200, level=0.7, seed=seed)
    for at in range(20, 600, 50):
        values[at] *= 0.1
    first, *others = classify(values, against_expected=True)
    assert first.pattern is Pattern.SUDDEN_DROP
    assert first.begins == pytest.approx(400, abs=15)
    assert [one.pattern for one in others] == [Pattern.PERIODIC_DIPS]


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_decay(seed: int) -> None:
    """A fifth slower over 600 steps."""
    values = [value * (1 - 0.2 * at / 600) for at, value in enumerate(series(seed=seed))]
    assert found(values) == [Pattern.SLOW_DECAY]


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_the_upper_links(seed: int) -> None:
    generator = random.Random(seed)
    assert found([generator.uniform(0.9, 1.0) for _ in range(600)]) == [Pattern.NOISY]


def test_without_an_expectation_a_level_is_not_judged() -> None:
    """A job that is slow all the time looks healthy by itself: it is not reported as slow, and needs a reference."""
    assert found(series(level=0.3), expected=False) == [Pattern.HEALTHY]


def test_few_steps_are_not_judged() -> None:
    assert found(series(steps=FEWEST - 1)) == [Pattern.TOO_FEW]


def test_values_of_zero_do_no_harm() -> None:
    assert found([0.0] * 100) == [Pattern.STEADY_LOWEST]
