"""Adversarial strings for a regular expression, made from its own parts, and the processor time that it takes for them."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from re import _constants as ops
from re import _parser as parser
from typing import Any

LENGTH = 4000
METHODS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split", "subn")
_OF_CATEGORY = {ops.CATEGORY_DIGIT: "0", ops.CATEGORY_SPACE: " ", ops.CATEGORY_WORD: "a"}


def used(roots: tuple[str, ...]) -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Yield each compiled pattern of text at a module's top level with the methods that its module calls on it."""
    for root in roots:
        package = importlib.import_module(root)
        for info in pkgutil.walk_packages(package.__path__, f"{root}."):
            if ".migrations." in info.name or ".node.programs." in info.name:
                continue
            module = importlib.import_module(info.name)
            named = {name: one for name, one in vars(module).items() if isinstance(one, re.Pattern)}
            if not named or not module.__file__:
                continue
            calls = _calls(module.__file__)
            for name, pattern in named.items():
                if isinstance(pattern.pattern, str):
                    yield from ((f"{info.name}.{name}", pattern, method) for method in sorted(calls.get(name, set())))


def _calls(file: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with open(file, encoding="utf-8") as source:  # noqa: PTH123 — a module's own file
        tree = ast.parse(source.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def seconds(pattern: re.Pattern[str], method: str, text: str) -> float:
    """Return the processor time of one call."""
    call = getattr(pattern, method)
    began = time.thread_time()
    if method in ("sub", "subn"):
        call("", text)
    elif method == "finditer":
        for _ in call(text):
            pass
    else:
        call(text)
    return time.thread_time() - began


def attacks(pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield what comes before each repetition, then one of its letters or words again and again, then no match."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    letters = sorted(set(_letters(tree)) | set(" \na0"))
    words = [*letters, *_words(tree)[:8], _sample(tree)]
    words += [a + b for a in letters[:6] for b in letters[:6] if a != b]
    for word in dict.fromkeys(filter(None, words)):
        body = (word * (LENGTH // len(word) + 1))[:LENGTH]
        for prefix in _prefixes(tree)[:8]:
            yield f"{prefix}{body}\x00"


def _letters(tree: Any) -> Iterator[str]:
    for op, value in tree:
        if op in (ops.LITERAL, ops.NOT_LITERAL):
            yield chr(value)
        elif op is ops.ANY:
            yield "x"
        elif op is ops.IN:
            yield from filter(None, (_member(one) for one in value))
        else:
            for inner in _inner(op, value):
                yield from _letters(inner)


def _member(one: tuple[Any, Any]) -> str:
    op, value = one
    if op is ops.LITERAL:
        return chr(value)
    if op is ops.RANGE:
        return chr(value[0])
    return _OF_CATEGORY.get(value, "x") if op is ops.CATEGORY else ""


def _inner(op: Any, value: Any) -> tuple[Any, ...]:
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return (value[2],)
    if op is ops.SUBPATTERN:
        return (value[3],)
    if op is ops.ATOMIC_GROUP:
        return (value,)
    if op is ops.BRANCH:
        return tuple(value[1])
    return (value[1],) if op in (ops.ASSERT, ops.ASSERT_NOT) else ()


def _words(tree: Any) -> list[str]:
    found, word = [], ""
    for op, value in tree:
        if op is ops.LITERAL:
            word += chr(value)
            continue
        found += [word] if word else []
        word = ""
        for inner in _inner(op, value):
            found += _words(inner)
    return found + ([word] if word else [])


def _sample(tree: Any) -> str:
    """Return a text that matches, in most cases."""
    text = ""
    for op, value in tree:
        if op in (ops.LITERAL, ops.NOT_LITERAL):
            text += chr(value) if op is ops.LITERAL else "x"
        elif op is ops.ANY:
            text += "x"
        elif op is ops.IN:
            text += _member(value[0]) or "x"
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            text += _sample(value[2]) * max(value[0], 1)
        elif op not in (ops.ASSERT, ops.ASSERT_NOT):
            text += "".join(_sample(inner) for inner in _inner(op, value)[:1])
    return text


def _prefixes(tree: Any) -> list[str]:
    """Return what leads to each repetition at the outermost level."""
    found = [""]
    for number, (op, _) in enumerate(tree):
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.SUBPATTERN):
            found.append(_sample(list(tree)[:number]))
            found.append(_sample(list(tree)[: number + 1]))
    return list(dict.fromkeys(found))
