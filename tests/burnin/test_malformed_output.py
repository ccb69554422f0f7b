"""No output of a probe, however malformed, ends in an error or in a pass of what was not measured."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterctl.fleet.finding import Verdict, worst
from clusterctl_burnin.check import Check
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.roots import link_roots
from tests.burnin.kit import HEALTHY, PROBES, expected, healthy_text, readings, result

EXPECTED = expected()
UNREADABLE = ("N/A", "[Unknown Error]", "ERR!", "GPU is lost", "nan", "-1", "", "9" * 5000)
NUMBERS = ("N/A", "9" * 30, "9" * 5000, "-1", "nan", "inf", "1e999", "", "\u0663", "\u00b2")
BYTES = ("\x00", "\ufffd\ufffd", "\x85", "\u2028", "\x1b[31m", "\r", "\udcff")
WHOLE = (
    "",
    "\n",
    "\x00" * 100,
    "{}",
    "[]",
    "null",
    "0",
    "A" * 300_000,
    "[" * 100_000,
    '{"a":' * 5_000,
    "1e999",
    "<html>",
)
NEEDED = yaml.safe_load((HEALTHY.parent / "needed.yml").read_text())
SILENCE_IS_GOOD = frozenset({("swap_off", "swapon"), ("failed_units", "failed_units")})
"""These tools print nothing where there is nothing to report."""
ONLY_NAMES = frozenset({("kernel_log", "nvidia_smi"), ("nvlink", "nvidia_smi"), ("nvlink_errors", "nvidia_smi")})
"""The check reads only the GPUs' serials there, to name them."""

Mutation = Callable[[str, random.Random], str]


def truncated(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def lines_lost(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    first = chance.randrange(len(lines) or 1)
    return "".join([*lines[:first], *lines[first + chance.choice((1, 1, 2, 9)) :]])


def line_repeated(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines) or 1)
    return "".join([*lines[:at], *lines[at : at + 1] * chance.choice((2, 3, 50)), *lines[at + 1 :]])


def shuffled(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(lines)


def number_replaced(text: str, chance: random.Random) -> str:
    numbers = [*re.finditer(r"\d+(?:\.\d+)?", text)]
    if not numbers:
        return chance.choice(NUMBERS)
    match = chance.choice(numbers)
    return text[: match.start()] + chance.choice(NUMBERS) + text[match.end() :]


def word_replaced(text: str, chance: random.Random) -> str:
    words = [*re.finditer(r"\S+", text)]
    if not words:
        return chance.choice(UNREADABLE)
    match = chance.choice(words)
    return text[: match.start()] + chance.choice(UNREADABLE) + text[match.end() :]


def bytes_added(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(BYTES) + text[at:]


def indented_otherwise(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines) or 1)
    return "".join(
        [*lines[:at], *(" " * chance.randrange(9) + line.lstrip() for line in lines[at : at + 1]), *lines[at + 1 :]]
    )


def another_output(text: str, chance: random.Random) -> str:
    return chance.choice((*WHOLE, text * 40, healthy_text(chance.choice(sorted(PROBES)))))


MUTATIONS: tuple[Mutation, ...] = (
    truncated,
    lines_lost,
    line_repeated,
    shuffled,
    number_replaced,
    word_replaced,
    bytes_added,
    indented_otherwise,
    another_output,
)


def checks_of(probe: str) -> list[Check]:
    return [check for check in CHECKS.values() if probe in {one.name for one in check.probes}]


def seen(probe: str, text: str, rc: int = 0) -> Readings:
    return readings(**{probe: result(probe, text, rc=rc)})


def verdict(check: Check, probe: str, text: str) -> Verdict:
    return worst(finding.verdict for finding in check.findings(seen(probe, text), EXPECTED))


@pytest.mark.parametrize("probe", PROBES)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(
    mutation=st.sampled_from(MUTATIONS),
    twice=st.sampled_from((None, *MUTATIONS)),
    seed=st.integers(0, 2**32),
    rc=st.sampled_from((0, 0, 0, 1, 15)),
)
def test_a_malformed_output_is_a_finding_and_no_error(
    probe: str, mutation: Mutation, twice: Mutation | None, seed: int, rc: int
) -> None:
    """Any damage to any probe: each check that reads it reports with a cause, its figures raise nothing."""
    chance = random.Random(seed)
    text = mutation(healthy_text(probe), chance)
    text = twice(text, chance) if twice else text
    damaged = seen(probe, text, rc)
    for check in checks_of(probe):
        found = check.findings(damaged, EXPECTED)
        assert found
        assert all(finding.check == check.name and finding.cause for finding in found)
        link_roots(found)
    tuple(samples("node001", "two", damaged))


@pytest.mark.parametrize("probe", PROBES)
def test_no_output_at_all_is_never_a_pass(probe: str) -> None:
    """Nothing, blanks, zero bytes, another tool's page: what needs the probe does not pass."""
    for check in checks_of(probe):
        if (check.name, probe) in SILENCE_IS_GOOD | ONLY_NAMES:
            continue
        for text in ("", "\n", " \n\n", "\x00" * 64, "<html><body>502</body></html>\n", "Segmentation fault\n"):
            assert verdict(check, probe, text) not in (Verdict.PASS, Verdict.WARN), (check.name, text)


def needed() -> Iterator[tuple[str, str, str]]:
    for check, probes in NEEDED.items():
        for probe, patterns in probes.items():
            yield from ((check, probe, pattern) for pattern in patterns)


@pytest.mark.parametrize(("name", "probe", "pattern"), needed())
def test_a_pass_rests_on_each_line_that_it_needs(name: str, probe: str, pattern: str) -> None:
    """Each line of the table is there; without it, and with an unreadable value in it, the check does not pass."""
    check, lines = CHECKS[name], healthy_text(probe).splitlines(keepends=True)
    at = [number for number, line in enumerate(lines) if re.search(pattern, line)]
    assert at, f"no line of {probe} matches {pattern}"
    for number in at:
        without = "".join([*lines[:number], *lines[number + 1 :]])
        assert verdict(check, probe, without) is not Verdict.PASS, lines[number]
        head, colon, value = lines[number].partition(" : ")
        if colon and value.strip() and "None" not in value:
            for word in UNREADABLE:
                spoilt = "".join([*lines[:number], f"{head} : {word}\n", *lines[number + 1 :]])
                assert verdict(check, probe, spoilt) is not Verdict.PASS, (lines[number], word)


@pytest.mark.parametrize("name", NEEDED)
def test_an_output_cut_anywhere_before_its_last_needed_line_is_no_pass(name: str) -> None:
    """A truncated answer, at each of 60 places: not the pass of the whole one."""
    check = CHECKS[name]
    for probe, patterns in NEEDED[name].items():
        text = healthy_text(probe)
        last = max(match.start() for pattern in patterns for match in re.finditer(pattern, text, re.MULTILINE))
        for cut in range(0, last + 1, max(1, last // 60)):
            assert verdict(check, probe, text[:cut]) is not Verdict.PASS, (probe, cut)
