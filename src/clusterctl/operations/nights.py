"""The nights of a site as the journal has them: when, what they tested, and what they found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.edges.site.night_record import read_record
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.nightly.record import NightRecord
from clusterctl.fleet.payloads.hardware import FabricLinksJudged
from clusterctl.fleet.payloads.runs import NightEnded, NightStarted
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time

MOST = 60
WINDOW = timedelta(days=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightSummary:
    """One night. `ended`, `reason`: when and why it came to its end; None while it runs, or where it was killed.

    tested, failed  names of nodes; `failed` are no longer gold
    hung            nodes that were not given back, with the reason
    links           the judgement of the fabric's links in that night
    """

    run: str
    began: datetime
    closes: datetime
    percent: int
    ended: datetime | None = None
    reason: str = ""
    tested: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    hung: Mapping[str, str] = field(default_factory=dict)
    links: FabricLinksJudged | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nights:
    """The last nights, the newest first, and the record that monitoring has."""

    nights: tuple[NightSummary, ...]
    record: NightRecord | None


def site_nights(context: SiteContext) -> Nights:
    """Return the last nights of a site."""
    found: dict[str, NightSummary] = {}
    for event in _events(context):
        _add(found, event)
    nights = sorted(found.values(), key=lambda night: night.began, reverse=True)
    return Nights(nights=tuple(nights[:MOST]), record=read_record(context.site.folder / "state"))


def _events(context: SiteContext) -> Iterable[Event]:
    kinds = (Kind.NIGHT_STARTED, Kind.NIGHT_ENDED, Kind.FABRIC_LINKS_JUDGED)
    return sorted(context.journal.recent(kinds, current_time() - WINDOW), key=lambda event: event.seq)


def _add(found: dict[str, NightSummary], event: Event) -> None:
    """Add what an event has of a night; one that began before the window is left out."""
    match event.payload:
        case NightStarted() as started:
            found[event.run] = NightSummary(
                run=event.run, began=event.at, closes=started.closes, percent=started.percent
            )
        case NightEnded() as ended if event.run in found:
            found[event.run] = replace(
                found[event.run],
                ended=event.at,
                reason=ended.ended,
                tested=ended.tested,
                failed=ended.failed,
                hung=ended.stuck,
            )
        case FabricLinksJudged() as judged if event.run in found:
            found[event.run] = replace(found[event.run], links=judged)
