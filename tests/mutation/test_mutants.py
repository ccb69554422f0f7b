"""The mutants are changes that a test can notice, and a survivor is reported as one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mutation.campaign import Outcome
from tests.mutation.mutants import mutants
from tests.mutation.targets import TARGETS, Target
from tests.paths import ROOT, needs_checkout

SOURCE = '''
from dataclasses import replace

LIMIT = 5
KNOWN = {"a", "b"}


def judge(value: int, strict: bool = True) -> str:
    """Text stays."""
    if value > LIMIT and strict:
        raise ValueError(f"{value + 1} is too much")
    check(value)
    return "text"


def moved(state):
    return replace(state, stage=1, cause="")
'''


def test_each_kind_of_change_is_made_once() -> None:
    found = [mutant.name for mutant in mutants(SOURCE, "judge.py")]
    assert found == [
        "module: 5 → 6",
        "module: {'a', 'b'} → {'b'}",
        "module: {'a', 'b'} → {'a'}",
        "judge: True → False",
        "judge: if value > LIMIT and strict → if True",
        "judge: if value > LIMIT and strict → if False",
        "judge: value > LIMIT and strict → value > LIMIT or strict",
        "judge: value > LIMIT → value >= LIMIT",
        "judge: value > LIMIT → value <= LIMIT",
        "judge: raise ValueError(f'{value + 1} is too much') → pass",
        "judge: check(value) → pass",
        "moved: replace(state, stage=1, cause='') → replace(state, cause='')",
        "moved: replace(state, stage=1, cause='') → replace(state, stage=1)",
        "moved: 1 → 2",
    ]


def test_a_mutant_is_the_module_with_this_change_alone() -> None:
    """The tree is whole again after each: the last mutant has no change of an earlier one."""
    *_, last = mutants("A = 1\nB = 2\n", "two.py")
    values: dict[str, int] = {}
    exec(last.code, values)
    assert (values["A"], values["B"]) == (1, 3)


@pytest.mark.parametrize(("survive", "not_run", "missed"), [(5, 0, False), (6, 0, True), (6, 40, False), (0, 0, False)])
def test_the_share_is_missed_only_where_it_cannot_be_reached(survive: int, not_run: int, missed: bool) -> None:
    (some,) = (mutant for mutant in mutants("A = 1\n", "one.py"))
    outcome = Outcome(Target("one.py", ()), 100 - survive, 0, [some] * survive, not_run)
    assert outcome.missed is missed


def test_an_equivalent_that_is_no_mutant_any_more_is_an_error() -> None:
    assert Outcome(Target("one.py", ()), killed=100, unused=("judge: 5 → 6",)).failed


@pytest.mark.parametrize("held", [True, False])
def test_a_share_that_was_never_reached_is_reported_and_fails_nothing(held: bool) -> None:
    """Once it is held, less is a failure."""
    (some,) = (mutant for mutant in mutants("A = 1\n", "one.py"))
    outcome = Outcome(Target("one.py", (), held=held), killed=1, survivors=[some])
    assert (outcome.missed, outcome.failed) == (True, held)
    assert outcome.row == "one.py: 1 of 2 killed (50.0%), 0 equivalent, 0 not run; 95% not reached"


@needs_checkout
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.path)
def test_modules_and_tests_exist(target: Target) -> None:
    """Every equivalent names a mutant of today's module, and has its reason."""
    path = ROOT / target.path
    assert target.tests
    assert [test for test in target.tests if not (ROOT / test.partition("::")[0]).exists()] == []
    assert set(target.equivalent) <= {mutant.name for mutant in mutants(path.read_text(), str(path))}
    assert all(target.equivalent.values())


@needs_checkout
def test_a_survivor_is_found_and_reported() -> None:
    """A run of a real module, with tests that hold nothing of it: each mutant survives. They lie in two folders, one of
    them with a conftest of its own.
    """
    elsewhere = "tests/peers/test_headers.py::test_honest_headers"
    test = f"tests/mutation/test_mutants.py::{test_an_equivalent_that_is_no_mutant_any_more_is_an_error.__name__}"
    program = f"""
import sys
from tests.mutation.campaign import campaign
from tests.mutation.targets import Target
outcome = campaign(Target("src/clusterctl/fleet/natural_order.py", ({test!r}, {elsewhere!r})), 1e9, print)
sys.exit(not (outcome.survivors and outcome.missed and not outcome.killed))
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "survives, line" in ran.stdout
