"""A group whose head brought no answer."""

from __future__ import annotations

from collections.abc import Sequence

from clusterctl_burnin.loads.model import Outcome, Trial, Tried


def not_led(load: str, names: Sequence[str], why: str) -> Tried:
    """`names[0]` led it: nothing is known of anybody."""
    detail = f"{names[0]}, which led the group: {why}"
    return Tried((Trial(load, tuple(names), Outcome.UNMEASURED, {}, detail=detail),), ())
