"""Words that no text and no name of the product uses, because a plain technical word exists for each."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest
import yaml

from tests.paths import ROOT, needs_checkout

pytestmark = needs_checkout
RULES = yaml.safe_load((Path(__file__).parent / "data" / "words.yml").read_text())
PACKAGES = RULES["packages"]
BANNED = re.compile(rf"\b(?:{'|'.join(RULES['banned'])})\b", re.IGNORECASE)
NAMES = frozenset(RULES["names"])
PART = re.compile(r"[A-Z]?[a-z]+")
ALLOWED = {(entry["file"], entry["word"]) for entry in RULES["allowed"]}


def found(text: str) -> list[str]:
    """Return the banned words of all strings and comments of a module."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    texts = [token.string for token in tokens if token.type in {tokenize.STRING, tokenize.COMMENT}]
    return [match.group().lower() for text in texts for match in BANNED.finditer(text)]


def named(text: str) -> list[str]:
    """Return the names of a module that have a banned word as a part."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    return sorted(name for name in names if NAMES & {part.lower() for part in PART.findall(name)})


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_of_the_product_has_a_banned_word(package: str) -> None:
    """Functions, classes, parameters and variables: a name is a noun for a thing, or a verb for an action."""
    modules = sorted((ROOT / package).rglob("*.py"))
    assert modules
    wrong = {str(module.relative_to(ROOT)): names for module in modules if (names := named(module.read_text()))}
    assert wrong == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_no_text_of_the_product_has_a_banned_word(package: str) -> None:
    """Docstrings, comments and messages; the list of exceptions is reviewed data."""
    modules = sorted((ROOT / package).rglob("*.py"))
    assert modules
    wrong = [
        f"{name}: {word}"
        for name, module in ((str(module.relative_to(ROOT)), module) for module in modules)
        for word in found(module.read_text())
        if (name, word) not in ALLOWED
    ]
    assert wrong == []


def test_each_exception_is_used() -> None:
    unused = {(name, word) for name, word in ALLOWED if word not in found((ROOT / name).read_text())}
    assert unused == set()


@pytest.mark.parametrize("name", ["said", "_told", "who_has_it", "TellingNode", "isHeard"])
def test_a_banned_part_of_a_name_is_found(name: str) -> None:
    assert named(f"{name} = 1\n") == [name]


def test_a_word_within_a_longer_one_is_no_part_of_a_name() -> None:
    assert named("whole = whomever = essay = folded = 1\n") == []


@pytest.mark.parametrize("text", ['"""Nobody answers."""\n', "x = f'{y} goes on anew'\n", "# whoever calls\n"])
def test_a_banned_word_is_found(text: str) -> None:
    assert len(found(text)) == 1


def test_an_identifier_is_no_text() -> None:
    assert found("nobody = 1\n") == []
