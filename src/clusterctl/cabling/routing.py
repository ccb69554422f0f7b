"""Whether the tables are those of a fat tree, or what a routing engine fell back to without a word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median_high

from clusterctl.cabling.routes import NOWHERE, Routes
from clusterctl.fleet.forwarding import RoutingOutcome

_SLACK = 2
"""Flows on the fullest link under the best shift, over what the leaves' uplinks force, that a fat tree's tables never
pass: measured 1 on 512 hosts and 2 on 511 with ftree, 9 on 511 with 20 cables cut and minhop.
"""


@dataclass(frozen=True, slots=True)
class Routing:
    """`engine` is empty where no log tells. `worst`: flows on the fullest link under the best shift; `forced`: how many
    of them too few uplinks explain. `complaint` is empty where the tables are balanced.
    """

    engine: str
    worst: int
    forced: int
    complaint: str
    adaptive: bool = False


def judge_routing(routes: Routes, worst: int, log: RoutingOutcome | None) -> Routing:
    """`worst`: `Stages.crowd`."""
    forced = _forced(routes)
    engine = log.engine if log else ""
    unbalanced = worst > _SLACK * forced
    return Routing(engine, worst, forced, _complaint(log, worst, unbalanced), bool(log and log.adaptive))


def _complaint(log: RoutingOutcome | None, worst: int, unbalanced: bool) -> str:
    load = f"the best shift puts {worst} flow{'s' * (worst != 1)} on one link"
    if log and log.complaints and "ftree" not in log.engine:
        why = "; ".join(log.complaints)
        return f"the subnet manager fell back to {log.engine}: {why}. {load.capitalize()}"
    if not unbalanced:
        return ""
    whose = f"though {log.engine} made the tables" if log else "as after a silent fall-back from ftree to minhop"
    return f"{load}, {whose}: these tables do not spread traffic as a fat tree's do"


def _forced(routes: Routes) -> int:
    """Hosts' ports per uplink of the usual leaf, rounded up; 1 where no leaf has uplinks."""
    hosts = Counter(end.leaf for end in routes.endpoints)
    uplinks = Counter(
        tail for tail, head in zip(routes.tails, routes.heads, strict=True) if tail in hosts and head != NOWHERE
    )
    return median_high(-(-hosts[leaf] // uplinks[leaf]) for leaf in uplinks) if uplinks else 1
