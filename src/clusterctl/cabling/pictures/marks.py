"""What is wrong with a fabric, link by link: what the picture draws."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clusterctl.cabling.difference import compare
from clusterctl.cabling.explain.explanation import RATE_KINDS
from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.cabling.health.judge import FabricHealth
from clusterctl.cabling.names import named_cables
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.finding import Verdict


class MarkKind(enum.Enum):
    """The worst first. The value is what the legend calls it."""

    MISSING = "missing: planned, not seen"
    MISPLACED = "not planned, but there"
    SLOW = "slower than it should be"
    UNHEALTHY = "bad by its counters"
    SUSPECT = "warning by its counters"

    @property
    def code(self) -> str:
        """A name for style sheets."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Mark:
    """One link and what is wrong with it; `a` < `b`."""

    kind: MarkKind
    a: PortName
    b: PortName


def marks(
    plan: WiringPlan, fabric: Fabric, verification: CablingVerification, health: FabricHealth | None
) -> tuple[Mark, ...]:
    """Return each link at most once for each kind."""
    difference = compare(plan, named_cables(fabric, verification.names))
    found = [
        *(_mark(MarkKind.MISSING, cable.ends) for cable in difference.missing),
        *(_mark(MarkKind.MISPLACED, cable.ends) for cable in difference.extra),
        *(_mark(MarkKind.SLOW, e.ports) for e in verification.explanations if e.kind in RATE_KINDS),
        *(_counted(health) if health is not None else ()),
    ]
    return tuple(dict.fromkeys(found))


def _counted(health: FabricHealth) -> Iterator[Mark]:
    for finding in health.findings:
        if finding.verdict in (Verdict.WARN, Verdict.FAIL):
            kind = MarkKind.UNHEALTHY if finding.verdict is Verdict.FAIL else MarkKind.SUSPECT
            yield from (_mark(kind, pair) for pair in zip(finding.ends[::2], finding.ends[1::2], strict=True))


def _mark(kind: MarkKind, ends: Iterable[PortName]) -> Mark:
    """Return the mark between the two ends. A cable that leads back to its own port has one end only."""
    ordered = sorted(ends)
    return Mark(kind, ordered[0], ordered[-1])
