"""Gold as a feature of Slurm's nodes, so that jobs can ask for it: `--constraint=gold`.

Features that scontrol sets may be gone after Slurm's controller restarts, unless slurm.conf names them too: whoever
publishes looks at what is there, and says it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from clusterctl.ports import Deadline


class Featured(Protocol):
    """What keeps nodes' features."""

    def features(self, deadline: Deadline) -> Mapping[str, tuple[str, ...]]: ...
    def set_features(self, node: str, features: Collection[str], deadline: Deadline) -> None: ...


def publish_feature(
    slurm: Featured, feature: str, nodes: Collection[str], gold: Collection[str], deadline: Deadline
) -> tuple[str, ...]:
    """Give `feature` to the gold ones of `nodes`, take it from the others, leave all other features as they are; the
    gold nodes that the scheduler does not know.
    """
    there = slurm.features(deadline)
    for name in sorted(set(nodes) & there.keys()):
        had = there[name]
        if (feature in had) is not (name in gold):
            kept = [one for one in had if one != feature]
            slurm.set_features(name, [*kept, feature] if name in gold else kept, deadline)
    return tuple(sorted(set(gold) - there.keys()))
