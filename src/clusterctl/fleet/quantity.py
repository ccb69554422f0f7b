"""Figures of findings: a measured quantity, and the bound that it is held against. Both format themselves."""

from __future__ import annotations

import sys
from dataclasses import dataclass

_DIGITS = 4
"""Significant digits of a figure that is not a whole number."""


def figure(value: float) -> str:
    """Return a figure as text: whole numbers in full, others with 4 significant digits or no decimals.

    A value that is no number, or is beyond floating point, is shown as such.
    """
    if abs(value) > sys.float_info.max or value != value:  # noqa: PLR0124 — NaN alone differs from itself
        return "no number" if value != value else "beyond any number"  # noqa: PLR0124
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.0f}" if abs(value) >= 10**_DIGITS else f"{value:.{_DIGITS}g}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measured value and its unit; the unit is empty for a plain count."""

    value: float
    unit: str = ""

    def __str__(self) -> str:
        return _with_unit(figure(self.value), self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The range that a quantity must lie in. `low` or `high` is set, or both; equal for an exact value."""

    low: float | None = None
    high: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        return _with_unit(self.range, self.unit)

    @property
    def range(self) -> str:
        """The bound without its unit: `at least 380`, `at most 85`, `8`, `-5 to 3`."""
        if self.low is None or self.high is None:
            return f"at most {figure(self.high)}" if self.high is not None else f"at least {figure(self.low or 0.0)}"
        return figure(self.low) if self.low == self.high else f"{figure(self.low)} to {figure(self.high)}"


def at_least(value: float, unit: str = "") -> Bound:
    """Return the bound that `value` and everything above it meets."""
    return Bound(low=value, unit=unit)


def at_most(value: float, unit: str = "") -> Bound:
    """Return the bound that `value` and everything below it meets."""
    return Bound(high=value, unit=unit)


def exactly(value: float, unit: str = "") -> Bound:
    """Return the bound that only `value` meets."""
    return Bound(low=value, high=value, unit=unit)


def between(low: float, high: float, unit: str = "") -> Bound:
    """Return the bound that `low`, `high` and everything between them meets."""
    return Bound(low=low, high=high, unit=unit)


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}" if unit else text
