"""Each parser raises only the errors that it documents, whatever it is given. An hour of it: tests/soak/test_fuzz.py."""

from __future__ import annotations

import pkgutil
import random
import re
from itertools import islice

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterctl import formats
from tests.fuzz.mutation import mutated
from tests.fuzz.targets import (
    CORPUS,
    FOREIGN,
    NOT_FOREIGN,
    WITHOUT_TARGETS,
    Target,
    doubtful,
    functions,
    short_name,
    targets,
)

TARGETS = targets()
DIGITS = re.compile(r"[0-9]+")
WRONG_NUMBERS = {"long": "9" * 5000, "superscript": "²", "of another script": "٣"}
"""Digits in `str.isdigit` or in `\\d`, which `int` refuses, or which no tool prints."""
PARSERS = ("parse_", "read_", "decode_")
NUMBERS = 40
"""Numbers of each seed that are replaced, one at a time."""
EACH = 10
"""Variants of each seed that are tried here."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_seeds_and_variants(target: Target) -> None:
    """The seeds, among them all inputs that once broke a parser, and the same few variants in each run."""
    chance = random.Random(target.name)
    for text in target.seeds:
        target.run(text)
        for _ in range(EACH):
            target.run(mutated(text, target.seeds, chance))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("wrong", WRONG_NUMBERS.values(), ids=WRONG_NUMBERS)
def test_numbers_that_are_none(target: Target, wrong: str) -> None:
    """Python reads at most 4,300 digits, and not every digit of Unicode: that is the parser's documented error, too."""
    for text in target.seeds:
        for number in islice(DIGITS.finditer(text), NUMBERS):
            target.run(f"{text[: number.start()]}{wrong}{text[number.end() :]}")


BULK = {
    "deep lists": "[" * 150_000,
    "deep objects": '{"a":' * 50_000,
    "one long cell": "9" * 150_000,
    "one quotation": '"' + "a" * 150_000,
    "quotation marks": '"' * 150_000,
    "commas": "," * 150_000,
    "lines": "\n" * 150_000,
}
"""Texts that are beyond a limit of Python's own readers: levels of JSON, bytes in a cell of CSV, digits of a number."""


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_bulk(target: Target) -> None:
    """A peer that sends much of one kind is the parser's documented error, or nothing."""
    for text in BULK.values():
        target.run(text)


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(target=st.sampled_from(TARGETS), text=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")))
def test_any_text(target: Target, text: str) -> None:
    """Any parser, any text."""
    target.run(text)


def test_the_corpus_is_of_parsers() -> None:
    """Each folder of the corpus has its parser: none is left after a parser was renamed."""
    assert {folder.name for folder in CORPUS.iterdir()} <= {target.name for target in TARGETS}
    assert len(TARGETS) > 250


def test_each_target_has_seeds() -> None:
    """Variants of nothing reach little of a parser: each has inputs, its own or those of the parsers that it serves."""
    assert [target.name for target in TARGETS if not any(target.seeds)] == []


def test_each_parser_understands_a_seed_of_its_own() -> None:
    """An input that is refused in its first line leaves all behind it untried: one input of each is read to its end."""
    parsers = [target for target in TARGETS if target.name.rpartition(".")[2].startswith(PARSERS)]
    assert len(parsers) > 150
    assert [target.name for target in parsers if not ((CORPUS / target.name).is_dir() and target.accepted)] == []


def test_no_parser_is_missed() -> None:
    """Whatever its parameters are called: a function that may take a foreign text is a target, or has its reason."""
    assert list(doubtful()) == []
    found = {short_name(module, name) for module, name, _ in functions()}
    assert set(NOT_FOREIGN) | set(FOREIGN) <= found


def test_each_module_of_the_formats_has_a_target() -> None:
    """Or its reason; a reason that no longer holds goes."""
    modules = {
        info.name.removeprefix("clusterctl.formats.")
        for info in pkgutil.walk_packages(formats.__path__, "clusterctl.formats.")
        if not info.ispkg
    }
    reached = {target.name.rpartition(".")[0] for target in TARGETS}
    assert modules - reached == set(WITHOUT_TARGETS)
