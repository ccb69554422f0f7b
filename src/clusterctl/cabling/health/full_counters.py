"""Bad links whose error counters are full: a counter at its maximum grows no more, and proves no link healthy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.health.counters import Doubt
from clusterctl.cabling.health.findings import FabricLabels
from clusterctl.cabling.health.symptoms import JUDGED, HealthKind, HealthWindow, Symptom
from clusterctl.fleet.fabric.topology import Link, PortId
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.payloads.hardware import BadLinks

_BY_COUNTERS = {kind.value: kind for kind in (HealthKind.FLAPPING, HealthKind.BIT_ERRORS, HealthKind.PACKET_ERRORS)}


def still_bad(
    before: Iterable[BadLinks], window: HealthWindow, links: Iterable[Link], places: FabricLabels
) -> Mapping[frozenset[PortId], tuple[Symptom, ...]]:
    """Return further symptoms of links that were bad before and have a full error counter now, by both ends.

    before  the last judgement. A full counter alone proves nothing: it may be years old.
    """
    bad = [(_BY_COUNTERS[one.kind], set(one.ends)) for one in before if _failed(one)]
    found: dict[frozenset[PortId], tuple[Symptom, ...]] = {}
    for link in links if bad else ():
        names = {places.plain(link.a), places.plain(link.b)}
        kind = next((kind for kind, ends in bad if names <= ends), None)
        if kind is not None and (symptoms := tuple(_full(kind, window, link, places))):
            found[frozenset((link.a, link.b))] = symptoms
    return found


def _failed(one: BadLinks) -> bool:
    return one.verdict == Verdict.FAIL.value and one.kind in _BY_COUNTERS


def _full(kind: HealthKind, window: HealthWindow, link: Link, places: FabricLabels) -> Iterator[Symptom]:
    for port in (link.a, link.b):
        doubts = window.growth(port).doubts
        for counter in JUDGED:
            if doubts.get(counter) is Doubt.STOPPED:
                where = f"{counter} at {places.plain(port)}"
                text = f"{where} is full since the link was found bad: clear it after the repair"
                yield Symptom(kind, Verdict.FAIL, text, frozenset({counter}))
