"""Which values of a play's variables are secret: those whose names say so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clusterctl.edges.redaction import Redaction

SECRET_NAME = re.compile(r"pass(word|phrase|wd)|secret|token|credential|private|api_?key", re.IGNORECASE)


def redaction(variables: Mapping[str, Any], secrets: Mapping[str, str]) -> Redaction:
    """Of all values of `secrets`, and of those in `variables` whose names, or whose parents' names, say it."""
    return Redaction([*secrets.values(), *_secrets(variables, secret=False)])


def _secrets(value: Any, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(inner, secret=secret or bool(SECRET_NAME.search(str(name))))
    elif isinstance(value, str | int | float):
        if secret:
            yield str(value)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _secrets(inner, secret=secret)
