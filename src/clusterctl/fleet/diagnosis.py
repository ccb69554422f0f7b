"""What `clusterctl doctor` finds of the controller: one diagnosis a check, each with its remedy."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Health(enum.Enum):
    """`NOT_MEASURED` is reported and never counts as healthy; only `BROKEN` stops work."""

    OK = "ok"
    WARN = "warn"
    BROKEN = "broken"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """`found` is what was seen, `remedy` one sentence in the imperative, empty where nothing is to be done."""

    name: str
    health: Health
    found: str
    remedy: str = ""


def ok(name: str, found: str) -> Diagnosis:
    return Diagnosis(name, Health.OK, found)


def warn(name: str, found: str, remedy: str) -> Diagnosis:
    return Diagnosis(name, Health.WARN, found, remedy)


def broken(name: str, found: str, remedy: str) -> Diagnosis:
    return Diagnosis(name, Health.BROKEN, found, remedy)


def not_measured(name: str, why: str, remedy: str = "") -> Diagnosis:
    return Diagnosis(name, Health.NOT_MEASURED, why, remedy)


def enumerated(names: list[str], most: int = 3) -> str:
    """Return `a, b, c and 5 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
