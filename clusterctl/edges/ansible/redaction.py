"""Takes secret values out of whatever is kept: the values of variables whose names say that they are secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SECRET_NAME = re.compile(r"pass(word|phrase|wd)|secret|token|credential|private|api_?key", re.IGNORECASE)
SHORTEST = 4  # a shorter value would blank out half of every text
MASK = "(secret)"


class Redaction:
    """Replaces every known secret value, longest first; multi-line values also line by line."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        found: set[str] = set()
        for value in _secrets(variables, secret=False):
            found.update(part for part in (value, *value.splitlines()) if len(part) >= SHORTEST)
        self._values = sorted(found, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, MASK)
        return text


def _secrets(value: Any, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(inner, secret=secret or bool(SECRET_NAME.search(str(name))))
    elif isinstance(value, str):
        if secret:
            yield value
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _secrets(inner, secret=secret)
