"""Copies of one recording, each with identities of its own.

A copy's identities are the recorded ones counted on: copy `n` adds `n × stride` to each. So MACs that follow each other
still do, and a GUID that is made of a MAC still is; the stride is chosen so that no two copies have one in common.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.emulators.redfish.replay.identities import Identity

_ALONE = 10
"""A shorter identity counts only where no letter or digit is next to it."""
_HEAD = 5
_TRIES = 2000
_LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class Marked:
    """A text in pieces: literal ones, and between them the number of an identity."""

    literals: tuple[str, ...]
    numbers: tuple[int, ...] = ()

    def text(self, identities: Sequence[str]) -> str:
        """The text with these in the places of the recorded identities."""
        pieces = [self.literals[0]]
        for number, literal in zip(self.numbers, self.literals[1:], strict=True):
            pieces += (identities[number], literal)
        return "".join(pieces)


class Marker:
    """Finds identities in text."""

    def __init__(self, identities: Sequence[Identity]) -> None:
        self._numbers = {identity.text: number for number, identity in enumerate(identities)}
        self._heads = frozenset(text[:_HEAD] for text in self._numbers)
        longest_first = sorted(self._numbers, key=lambda text: (-len(text), text))
        self._pattern = re.compile("|".join(map(_pattern, longest_first)) or r"(?!)")

    def mark(self, text: str) -> Marked:
        if not any(head in text for head in self._heads):
            return Marked((text,))  # most texts; searching for a few fixed strings is much quicker than the pattern
        literals, numbers, end = [], [], 0
        for match in self._pattern.finditer(text):
            literals.append(text[end : match.start()])
            numbers.append(self._numbers[match[0]])
            end = match.end()
        return Marked((*literals, text[end:]), tuple(numbers))


def choose_stride(identities: Sequence[Identity], copies: int, seed: int) -> int:
    """Return the distance between copies; 1 where nothing has to differ. Raises `UsageError` where none works."""
    frames: dict[str, tuple[int, set[int]]] = {}
    for identity in identities:
        frames.setdefault(identity.frame, (identity.size, set()))[1].add(identity.value)
    highest = min((size for size, _ in frames.values()), default=_LARGEST) // copies
    random = Random(seed)  # noqa: S311 — made-up numbers, not secrets
    for _ in range(_TRIES if highest > 1 else 0):
        stride = random.randrange(1, min(highest, _LARGEST))
        if all(_distinct(values, size, stride * (copies - 1), stride) for size, values in frames.values()):
            return stride
    raise UsageError(f"{copies} copies cannot all have serials of their own", remedy="serve fewer copies at a time")


def _distinct(values: set[int], size: int, reach: int, stride: int) -> bool:
    """True where no two values are a whole number of strides apart, within reach and around the end."""
    steps = range(0, reach + 1, stride)
    gaps = (high - low for low, high in combinations(sorted(values), 2))
    return all(gap not in steps and size - gap not in steps for gap in gaps)


def _pattern(text: str) -> str:
    escaped = re.escape(text)
    return rf"(?<![0-9A-Za-z]){escaped}(?![0-9A-Za-z])" if len(text) < _ALONE else escaped
