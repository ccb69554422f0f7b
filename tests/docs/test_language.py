"""Words that no text and no name of the project uses, because a plain technical word exists for each."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.paths import ROOT, needs_checkout

pytestmark = needs_checkout
RULES = yaml.safe_load((Path(__file__).parent / "data" / "words.yml").read_text())
FOLDERS = RULES["folders"]
BANNED = re.compile(rf"\b(?:{'|'.join(RULES['banned'])})\b", re.IGNORECASE)
NAMES = frozenset(RULES["names"])
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
MAYBE = re.compile(
    rf"(?:(?<![A-Za-z])(?:{'|'.join(NAMES)})|{'|'.join(word.title() for word in NAMES)})(?![a-z])"
    rf"|(?<![A-Za-z])(?:{'|'.join(word.upper() for word in NAMES)})(?![A-Za-z])"
)
"""Finds all that `PART` splits off, and more: what it does not find needs no tokens."""
ALLOWED = {(entry["file"], entry["word"]) for entry in RULES["allowed"]}


def tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the strings, comments and names of a module."""
    kinds = {tokenize.STRING, tokenize.COMMENT, tokenize.NAME}
    return [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in kinds]


def prose(text: str) -> list[str]:
    """Return the banned words of a text."""
    return [match.group().lower() for match in BANNED.finditer(text)]


def found(text: str) -> list[str]:
    """Return the banned words of all strings and comments of a module."""
    if not BANNED.search(text):
        return []
    return [word for token in tokens(text) if token.type != tokenize.NAME for word in prose(token.string)]


def named(text: str) -> list[str]:
    """Return the names of a module that have a banned word as a part."""
    if not MAYBE.search(text):
        return []
    names = {token.string for token in tokens(text) if token.type == tokenize.NAME}
    return sorted(name for name in names if NAMES & {part.lower() for part in PART.findall(name)})


@cache
def checked(path: Path) -> tuple[list[str], list[str]]:
    """Return the banned words of a file's text, and its banned names; a file that is no module has no names."""
    text = path.read_text()
    return (found(text), named(text)) if path.suffix == ".py" else (prose(text), [])


def files(folder: str) -> list[Path]:
    """Return the modules of a folder, and the other texts that the rules name for it."""
    root = ROOT / folder
    if root.is_file():
        return [root]
    suffixes = {".py", *RULES["texts"].get(folder, ())}
    paths = (path for path in root.rglob("*") if path.suffix in suffixes)
    return sorted(path for path in paths if not any(path.is_relative_to(ROOT / out) for out in RULES["recorded"]))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_name_has_a_banned_word(folder: str) -> None:
    """Functions, classes, parameters and variables: a name is a noun for a thing, or a verb for an action."""
    assert files(folder)
    wrong = {str(path.relative_to(ROOT)): names for path in files(folder) if (names := checked(path)[1])}
    assert wrong == {}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_text_has_a_banned_word(folder: str) -> None:
    """Docstrings, comments, messages and pages; the list of exceptions is reviewed data."""
    wrong = [
        f"{name}: {word}"
        for name, path in ((str(path.relative_to(ROOT)), path) for path in files(folder))
        for word in checked(path)[0]
        if (name, word) not in ALLOWED
    ]
    assert wrong == []


def test_each_exception_is_used() -> None:
    unused = {(name, word) for name, word in ALLOWED if word not in checked(ROOT / name)[0]}
    assert unused == set()


@pytest.mark.parametrize("name", ["said", "_told", "who_has_it", "TellingNode", "isHeard", "NOT_TOLD"])
def test_a_banned_part_of_a_name_is_found(name: str) -> None:
    assert named(f"{name} = 1\n") == [name]


def test_a_word_within_a_longer_one_is_no_part_of_a_name() -> None:
    assert named("whole = whomever = essay = folded = 1\n") == []


@pytest.mark.parametrize("text", ['"""Nobody answers."""\n', "x = f'{y} goes on anew'\n", "# whoever calls\n"])
def test_a_banned_word_is_found(text: str) -> None:
    assert len(found(text)) == 1


def test_an_identifier_is_no_text() -> None:
    assert found("nobody = 1\n") == []
