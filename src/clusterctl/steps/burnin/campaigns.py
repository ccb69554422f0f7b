"""Campaigns in the journal: each round before it runs, each answer as it comes; the next run continues a killed one."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from clusterctl.fleet.event import Event, Kind, NewEvent, Payload, Stream
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.payloads.runs import (
    CampaignAnswered,
    CampaignAsked,
    CampaignDropped,
    CampaignEnded,
    CampaignStarted,
)
from clusterctl.ports import Clock
from clusterctl.steps.burnin.node_under_test import NodeUnderTest
from clusterctl_burnin.campaign import (
    Campaign,
    CampaignEvent,
    CampaignPlan,
    GroupTrials,
    from_data,
    one_after_the_other,
    to_data,
)
from clusterctl_burnin.hunting.model import HuntRound
from clusterctl_burnin.hunting.record import Dropped

FRESH = timedelta(hours=24)
"""What a killed run measured longer ago is measured again: the nodes may have been changed meanwhile."""
_KINDS = (
    Kind.CAMPAIGN_STARTED,
    Kind.CAMPAIGN_ASKED,
    Kind.CAMPAIGN_ANSWERED,
    Kind.CAMPAIGN_DROPPED,
    Kind.CAMPAIGN_ENDED,
)


class CampaignJournal(Protocol):
    """What a store needs of the journal."""

    def append(self, events: Sequence[NewEvent]) -> Sequence[Event]: ...
    def store(self, evidence: Iterable[Evidence]) -> None: ...
    def evidence(self, digest: Digest) -> Evidence | None: ...
    def recent(self, kinds: Collection[Kind], since: datetime) -> Iterator[Event]: ...


@dataclass(slots=True)
class _Left:
    """A campaign that was started and has not ended, as the journal has it."""

    started: Event
    events: list[CampaignEvent]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for event in self.events if isinstance(event, HuntRound) for name in event.hosts)


class CampaignLog:
    """Writes one campaign into the journal. Thread-safe, as the journal is."""

    def __init__(self, journal: CampaignJournal, subject: str, asked: int = 0) -> None:
        """Begin a record. `asked`: number of rounds that are in the journal already."""
        self._journal = journal
        self._asked = asked
        self._subject = subject

    def asked(self, one: HuntRound) -> None:
        """Write a round, once: what is left of a round that was begun before is that round."""
        if one.number > self._asked:
            self._asked = one.number
            self._write(_payload(one))

    def add(self, trials: GroupTrials, evidence: Sequence[Evidence]) -> None:
        """Write an answer, its evidence first: what an event names is there."""
        self._journal.store(evidence)
        self._write(_payload(trials), tuple(item.digest for item in evidence))

    def dropped(self, event: Dropped) -> None:
        self._write(_payload(event))

    def ended(self) -> None:
        """Write that it is over: its nodes' reports have the result, and no run continues it."""
        self._write(CampaignEnded())

    def _write(self, payload: Payload, evidence: tuple[Digest, ...] = ()) -> None:
        self._journal.append([NewEvent(Stream.CAMPAIGN, self._subject, payload, evidence)])


class CampaignStore:
    """Opens campaigns; several batches may share one."""

    def __init__(self, journal: CampaignJournal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._ours: set[str] = set()
        self._lock = threading.Lock()

    def open(self, plan: CampaignPlan, load: str, nodes: Sequence[NodeUnderTest]) -> tuple[Campaign, CampaignLog]:
        """Return a campaign over the nodes, with what a killed run has measured of them already, and their evidence."""
        with self._lock:
            left = [one for one in self._left() if _same(one.started, plan, load) and _of(one, nodes)]
            subject = uuid.uuid4().hex
            self._ours.add(subject)
            names = [node.name for node in nodes]
            history = one_after_the_other(_returned(one.events, frozenset(names)) for one in left)
            self._begin(subject, plan, load, left, history)
        self._return_evidence(history, nodes)
        campaign = Campaign(plan, load, names, history)
        return campaign, CampaignLog(self._journal, subject, campaign.rounds)

    def _begin(
        self, subject: str, plan: CampaignPlan, load: str, left: Sequence[_Left], history: Sequence[CampaignEvent]
    ) -> None:
        """Write in one append that the new campaign has what the old ones had, and that those are over."""
        carried = [NewEvent(Stream.CAMPAIGN, subject, _payload(event)) for event in history]
        over = [NewEvent(Stream.CAMPAIGN, one.started.subject, CampaignEnded(by=subject)) for one in left]
        started = NewEvent(Stream.CAMPAIGN, subject, _what(plan, load))
        self._journal.append([started, *carried, *over])

    def _left(self) -> list[_Left]:
        found: dict[str, _Left] = {}
        for event in self._journal.recent(_KINDS, self._clock.now() - FRESH):
            match event.payload:
                case CampaignStarted():
                    found[event.subject] = _Left(event, [])
                case CampaignEnded():
                    found.pop(event.subject, None)
                case CampaignAsked(record=record) | CampaignAnswered(record=record) | CampaignDropped(record=record):
                    if event.subject in found:
                        found[event.subject].events.append(from_data(record))
        return [one for subject, one in found.items() if subject not in self._ours]

    def _return_evidence(self, history: Iterable[CampaignEvent], nodes: Sequence[NodeUnderTest]) -> None:
        """Give every node the evidence of what was measured with it before."""
        by_name = {node.name: node for node in nodes}
        for event in history:
            for trial in event.trials if isinstance(event, GroupTrials) else ():
                kept = [item for digest in trial.evidence if (item := self._journal.evidence(digest)) is not None]
                for name in by_name.keys() & set(trial.members):
                    by_name[name].keep(kept)


def _payload(event: CampaignEvent) -> Payload:
    """Return what the journal keeps of an event of the campaign."""
    record = to_data(event)
    match event:
        case HuntRound():
            return CampaignAsked(record=record)
        case GroupTrials():
            return CampaignAnswered(record=record)
        case Dropped():
            return CampaignDropped(record=record)


def _what(plan: CampaignPlan, load: str) -> CampaignStarted:
    suite = plan.suite
    return CampaignStarted(
        load=load,
        suite=suite.name,
        limits=plan.limits.digest,
        pair_seconds=suite.pair_seconds,
        group_iterations=suite.group_iterations,
        hang_seconds=suite.hang_seconds,
    )


def _same(started: Event, plan: CampaignPlan, load: str) -> bool:
    return started.payload == _what(plan, load)


def _returned(events: Sequence[CampaignEvent], here: frozenset[str]) -> list[CampaignEvent]:
    """Return the events without those that only show that a node was lost which is back now: it is measured again."""
    back = {event.host for event in events if isinstance(event, Dropped)} & here
    return [event for event in events if not _of_the_loss(event, back)]


def _of_the_loss(event: CampaignEvent, back: Collection[str]) -> bool:
    match event:
        case Dropped(host):
            return host in back
        case GroupTrials(_, group, trials):
            return not all(trial.passed for trial in trials) and any(name in back for name in group)
        case _:
            return False


def _of(left: _Left, nodes: Sequence[NodeUnderTest]) -> bool:
    """Return whether it measured some of the nodes, and none of them has moved since: it may have been repaired."""
    own = [node.state for node in nodes if node.name in left.names]
    return bool(own) and all(state.since is None or state.since <= left.started.at for state in own)
