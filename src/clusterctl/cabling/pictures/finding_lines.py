"""What is wrong with a fabric as lines of a list: cables against the plan, links by their counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.cabling.health.findings import HealthFinding
from clusterctl.cabling.health.judge import FabricHealth
from clusterctl.fleet.finding import Verdict

_VERDICTS = {
    FaultKind.NAMES_DIFFER: Verdict.WARN,
    FaultKind.NAMES_UNPROVEN: Verdict.INCONCLUSIVE,
    FaultKind.NO_RULE: Verdict.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class FindingLine:
    """A finding of either kind, as a page lists it."""

    rack: str
    verdict: str
    kind: str
    cause: str
    action: str
    links: int


def lines_by_rack(
    verification: CablingVerification, health: FabricHealth | None
) -> list[tuple[str, list[FindingLine]]]:
    """Return the findings by rack; those without one come last."""
    lines = sorted(_lines(verification, health), key=lambda line: (not line.rack, line.rack))
    return [(rack, list(found)) for rack, found in groupby(lines, key=lambda line: line.rack)]


def _lines(verification: CablingVerification, health: FabricHealth | None) -> Iterator[FindingLine]:
    yield from map(_cabling, verification.explanations)
    if health is not None:
        yield from map(_health, health.findings)


def _cabling(found: CablingExplanation) -> FindingLine:
    kind = found.kind.value.replace("_", " ")
    verdict = _VERDICTS.get(found.kind, Verdict.FAIL)
    return FindingLine(found.rack, verdict.name, kind, found.cause, found.action, found.links)


def _health(found: HealthFinding) -> FindingLine:
    kind = found.kind.value.replace("_", " ")
    return FindingLine(found.rack, found.verdict.name, kind, found.cause, found.action, found.links)
