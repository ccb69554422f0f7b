"""Drift as findings of a report, and the fleet's in one look: who runs something else than most of their kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.drift import Aspect, Drift, Stand, in_words, not_right
from clusterctl.fleet.finding import Finding, Verdict, passed, worst
from clusterctl.fleet.finding_code import Code

CHECKS: Mapping[Aspect, str] = {Aspect.BIOS: "bios_baseline", Aspect.FIRMWARE: "firmware_baseline"}
_VERDICTS: Mapping[Stand, Verdict] = {
    Stand.RIGHT: Verdict.PASS,
    Stand.WAITING: Verdict.WARN,
    Stand.WRONG: Verdict.WARN,
    Stand.UNKNOWN: Verdict.INCONCLUSIVE,
}
_REMEDY = "clusterctl settings check shows all of it; settings apply mends what it can"
_UNKNOWN = "look in the evidence for what could not be read, or correct the baseline where it names what is not there"


@dataclass(frozen=True, slots=True)
class Split:
    """Machines of one SKU that do not all run the same of one component, or have not the same of one attribute."""

    sku: str
    what: str
    most: str
    count: int
    others: tuple[tuple[str, str], ...]
    """(node, what it has)."""

    def __str__(self) -> str:
        total = self.count + len(self.others)
        named = ", ".join(f"{node} {has}" for node, has in self.others)
        return f"{self.sku}: {self.what}: {self.count} of {total} have {self.most}; others: {named}"


def verdict(drifts: Iterable[Drift]) -> Verdict:
    """The worst of them; of nothing INCONCLUSIVE."""
    return worst(_VERDICTS[one.stand] for one in drifts)


def findings(drifts: Sequence[Drift]) -> Iterator[Finding]:
    """One for each aspect that the baseline names."""
    for aspect, check in CHECKS.items():
        if mine := [one for one in drifts if one.aspect is aspect]:
            yield _finding(check, mine)


def splits(rows: Iterable[tuple[str, str, Sequence[Drift]]]) -> tuple[Split, ...]:
    """(node, SKU, its drift) of many → where they differ among themselves; what nobody told is left out."""
    found: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for node, sku, drifts in rows:
        for one in drifts:
            if one.found:
                found[sku, one.what][node] = one.found
    return tuple(_split(sku, what, has) for (sku, what), has in found.items() if len(set(has.values())) > 1)


def _split(sku: str, what: str, has: Mapping[str, str]) -> Split:
    """Of two that are equally many, the one that sorts first: the same answer each time."""
    counts = Counter(has.values())
    most = min(counts, key=lambda value: (-counts[value], value))
    return Split(sku, what, most, counts[most], tuple((node, own) for node, own in has.items() if own != most))


def _finding(check: str, drifts: Sequence[Drift]) -> Finding:
    bad = not_right(drifts)
    if not bad:
        return passed(check, f"{len(drifts)} as the baseline has them")
    judged = verdict(drifts)
    return Finding(
        check=check,
        verdict=judged,
        code=Code.SETTINGS_UNKNOWN if judged is Verdict.INCONCLUSIVE else Code.SETTINGS_DRIFT,
        cause="; ".join(map(in_words, bad)),
        measured=", ".join(f"{one.what} {one.found or 'not told'}" for one in bad),
        expected=", ".join(f"{one.what} {one.wants}".strip() for one in bad),
        remedy=_UNKNOWN if judged is Verdict.INCONCLUSIVE else _REMEDY,
        deterministic=judged is not Verdict.INCONCLUSIVE,
    )
