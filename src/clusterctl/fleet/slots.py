"""Which slot of a numbered series is empty."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"\d+")


def absent_slots(present: Sequence[str], expected: int) -> tuple[str, ...]:
    """What is missing from a series like `Video.Slot.1-1 … Video.Slot.8-1`, of which `expected` exist.

    The series is taken to have no holes by design, and to begin at 0 or 1 (`GPU_0`, `GPU1`) or, higher up, at a 1
    (`Video.Slot.21-1`). Where that leaves two candidates they stand in one string: `GPU0 or GPU8`. Empty where the
    slots are not one series, or where it cannot be told.
    """
    series = _series(present)
    missing = expected - len(set(present))
    if series is None or missing <= 0:
        return ()
    pieces, numbers = series
    low, high = min(numbers), max(numbers)
    gaps = [(number,) for number in range(low, high) if number not in numbers]
    beyond = missing - len(gaps)
    ends = _ends(low, high, beyond, expected) if beyond else []
    if beyond < 0 or ends is None:
        return ()
    return tuple(" or ".join(_name(pieces, number) for number in choice) for choice in (*gaps, *ends))


def _ends(low: int, high: int, count: int, expected: int) -> list[tuple[int, ...]] | None:
    """The numbers beyond the known ones, each with its alternatives; None where that cannot be told."""
    above: list[tuple[int, ...]] = [(high + step,) for step in range(1, count + 1)]
    below: list[tuple[int, ...]] = [(low - step,) for step in range(count, 0, -1)]
    if low == 0 or (low > 10 and low % 10 == 1):
        return above
    if high == expected or (low > 10 and (low - count) % 10 == 1):
        return below
    return [(low - 1, high + 1)] if count == 1 else None


def _name(pieces: Sequence[str | None], number: int) -> str:
    return "".join(str(number) if piece is None else piece for piece in pieces)


def _series(slots: Sequence[str]) -> tuple[list[str | None], set[int]] | None:
    """The slots' common text with None where the number stands, and the numbers; None where they are no series.

    The number may stand in several places (`PCIe Slot 3 (3)`).
    """
    split = [_NUMBER.split(slot) for slot in slots]
    found = [_NUMBER.findall(slot) for slot in slots]
    if len(slots) < 2 or any(texts != split[0] for texts in split):
        return None
    varying = [at for at in range(len(found[0])) if len({digits[at] for digits in found}) > 1]
    numbers = [{int(digits[at]) for at in varying} for digits in found]
    if not varying or any(len(values) != 1 for values in numbers):
        return None
    pieces: list[str | None] = [split[0][0]]
    for at, text in enumerate(split[0][1:]):
        pieces += [None if at in varying else found[0][at], text]
    return pieces, set.union(*numbers)
