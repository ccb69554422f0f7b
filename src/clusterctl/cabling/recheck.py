"""After the work: which findings are gone, which are left, which are new."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from clusterctl.cabling.actions import Ends, carry_out
from clusterctl.cabling.explain import Explanation
from clusterctl.cabling.verify import Verification


@dataclass(frozen=True, slots=True)
class Recheck:
    """`mended` were found before and are not any more, `left` are as before, `new` were not there; `undone` are cables
    that the work before should have left as they now are not.
    """

    mended: tuple[Explanation, ...]
    left: tuple[Explanation, ...]
    new: tuple[Explanation, ...]
    undone: tuple[Ends, ...]


def recheck(before: Verification, after: Verification) -> Recheck:
    """Both against the same plan. A finding is the same where its kind and what it is about are."""
    known = Counter(map(_key, before.explanations))
    now = Counter(map(_key, after.explanations))
    expected = carry_out((step for e in before.explanations for step in e.steps), before.cables)
    return Recheck(
        mended=tuple(e for e in before.explanations if _key(e) not in now),
        left=tuple(e for e in after.explanations if _key(e) in known),
        new=tuple(e for e in after.explanations if _key(e) not in known),
        undone=tuple(sorted(expected - after.cables, key=sorted)),
    )


def _key(explanation: Explanation) -> tuple[object, ...]:
    return explanation.kind, explanation.subjects, explanation.ports
