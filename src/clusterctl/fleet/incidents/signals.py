"""What is wrong now, from what the journal holds: quarantined nodes, bad links, nights, alerts, the controller.

A signal is what one incident is about at this moment. Signals of one cause at one place are one: a rack that fails is
one incident with its nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.fleet.event import Event
from clusterctl.fleet.fabric.port_acts import DisabledPort
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.incidents.incident import SITE, IncidentFacts, IncidentKind, Member, Severity
from clusterctl.fleet.node import Stage
from clusterctl.fleet.payloads.hardware import BadLinks, FabricFault, FabricLinksJudged
from clusterctl.fleet.payloads.incidents import AlertReceived
from clusterctl.fleet.payloads.runs import NightEnded, NightStarted
from clusterctl.fleet.state import NodeSummary

FABRIC = "fabric"
SPREAD = 3
"""One cause in so many racks is one incident of the site."""
MOST_MEMBERS = 500
"""Members that an incident names."""
ALERT_LASTS = timedelta(hours=50)
"""An alert that Alertmanager has not repeated for so long, while it posted others, is over: its `repeat_interval` is
24 h at most."""
POST_TOO_LARGE = "AlertPostTooLarge"
"""Name and fingerprint of the alert about a post of Alertmanager that was refused."""
TOO_LARGE_LASTS = timedelta(hours=3)
GRACE = timedelta(hours=1)
"""After the end of its window, a night that has not come to its end is an unfinished one."""

NIGHT_MISSING = "night_missing"
NIGHT_UNFINISHED = "night_unfinished"
NIGHT_STUCK = "night_stuck"
NIGHT_NOT_GOLD = "night_not_gold"
BAD_LINKS = "bad_links"
BAD_LINK = "bad_link"
SAME_AS_LINKS = frozenset({"LinkBitErrors"})
"""Alerts of the shipped rules about the last judgement of the links: where there is one, its links have incidents."""
_ENDS = 2


@dataclass(frozen=True, slots=True)
class Signal:
    """Facts of an incident. `anchor` distinguishes it from an earlier one of the same cause and place."""

    facts: IncidentFacts
    anchor: str


def link_signals(judged: Event, ended: FabricLinksJudged) -> Iterator[Signal]:
    """Yield the groups of links that must be repaired, and the single links by kind and rack."""
    yield from _by_kind(judged, ended, _failed_links(ended))


def _failed_links(ended: FabricLinksJudged) -> list[BadLinks]:
    return [one for one in ended.found if one.verdict == Verdict.FAIL.value]


def watched_links(judged: Event | None, out: Sequence[DisabledPort]) -> Iterator[Signal]:
    """Yield the groups as `link_signals` does, and one signal for each single bad link and each disabled one.

    A link keeps its incident from the first errors until it is proven again: what is known of it changes, not what it
    is about. Counts of errors are left out, because they change with each reading.
    """
    disabled = {_ends_text(one.ends): one for one in out}
    yield from (_disabled_signal(one) for one in disabled.values())
    if judged is not None and isinstance(judged.payload, FabricLinksJudged):
        yield from _bad_links(judged, judged.payload, disabled.keys())


def _bad_links(judged: Event, ended: FabricLinksJudged, disabled: Collection[str]) -> Iterator[Signal]:
    """Yield the groups of bad links, and each single bad link that is not disabled."""
    bad = _failed_links(ended)
    single = [one for one in bad if not one.shared and len(one.ends) == _ENDS]
    yield from _by_kind(judged, ended, [one for one in bad if one not in single])
    named = {_ends_text(one.ends): one for one in single}
    yield from (_single_signal(one, judged) for ends, one in named.items() if ends not in disabled)


def _single_signal(one: BadLinks, judged: Event) -> Signal:
    link = _ends_text(one.ends)
    cause = f"the link {link} is bad: {one.kind.replace('_', ' ')}"
    members = tuple(Member(name=end, place=one.rack, remedy=one.action, since=judged.at) for end in sorted(one.ends))
    return _signal(IncidentKind.LINKS, BAD_LINK, link, [cause], members, str(judged.seq))


def _disabled_signal(one: DisabledPort) -> Signal:
    link, place = _ends_text(one.ends), one.place
    device, _, port = one.label.partition(" port ")
    remedy = f"{place.repair or 'repair it'}; then: clusterctl fabric repaired {device}:{port}"
    racks = {one.label: place.rack, place.peer: place.peer_rack or place.rack}
    members = tuple(Member(name=end, place=racks[end], serial=place.serial, remedy=remedy) for end in one.ends)
    cause = f"the link {link} is out of use: {one.why}"
    return _signal(IncidentKind.LINKS, BAD_LINK, link, [cause], members, str(one.seq))


def _ends_text(ends: Iterable[str]) -> str:
    return " – ".join(sorted(ends))


def _by_kind(judged: Event, ended: FabricLinksJudged, bad: list[BadLinks]) -> Iterator[Signal]:
    if ended.verdict == Verdict.FAIL.value and not ended.found:  # an older program has judged
        cause = ended.causes[0] if ended.causes else f"{ended.bad} links are bad"
        bad = [BadLinks(kind=BAD_LINKS, verdict=ended.verdict, cause=cause, action="", count=ended.bad)]
    for (kind, place), found in _by_place(bad).items():
        members = tuple(_link_member(one, end, judged.at) for one in found for end in one.ends or (place,))
        yield _signal(IncidentKind.LINKS, kind, place, [one.cause for one in found], members, str(judged.seq))


def _by_place(bad: Iterable[BadLinks]) -> Mapping[tuple[str, str], list[BadLinks]]:
    groups: dict[tuple[str, str], list[BadLinks]] = defaultdict(list)
    for one in bad:
        place = f"{one.shared} {one.value}" if one.shared else one.rack or FABRIC
        groups[one.kind, place].append(one)
    return groups


def _link_member(one: BadLinks, end: str, at: datetime) -> Member:
    return Member(name=end, place=one.rack, cause=one.cause, remedy=one.action, since=at)


def fault_signals(
    faults: Iterable[FabricFault], anchors: Mapping[str, str], known: Collection[str]
) -> Iterator[Signal]:
    """Yield the fabric's faults by kind and rack; those of many racks as one of the site.

    anchors  the number of the event that a fault was last seen by, by `FabricFault.subject`
    known    identities of faults that keep nodes back: these have incidents already
    """
    groups: dict[str, list[FabricFault]] = defaultdict(list)
    for fault in faults:
        if fault.fault not in known:
            groups[fault.kind].append(fault)
    for kind, found in sorted(groups.items()):
        racks: dict[str, list[FabricFault]] = defaultdict(list)
        for fault in found:
            racks[fault.rack or FABRIC].append(fault)
        placed = {SITE: found} if len(racks) >= SPREAD else racks
        for place, there in placed.items():
            members = tuple(_fault_member(fault) for fault in there)
            anchor = anchors.get(there[0].subject, "")
            yield _signal(IncidentKind.FABRIC, kind, place, [fault.cause for fault in there], members, anchor)


def _fault_member(fault: FabricFault) -> Member:
    return Member(name=", ".join(fault.subjects), place=fault.rack, cause=fault.cause, remedy=fault.action)


@dataclass(frozen=True, slots=True)
class Nights:
    """The nights of a site: the end of the last one before `now - alarm` counts as missing.

    started, ended  events of the last nights, oldest first
    """

    alarm: timedelta
    now: datetime
    started: Sequence[Event] = ()
    ended: Sequence[Event] = ()

    def signals(self, nodes: Mapping[str, NodeSummary]) -> Iterator[Signal]:
        """Yield what is wrong with the nights. `nodes`: by name."""
        last = self.ended[-1] if self.ended else None
        since = last or (self.started[0] if self.started else None)
        if since is not None and self.now - since.at > self.alarm:
            hours = self.alarm // timedelta(hours=1)
            cause = f"no night has come to its end for more than {hours} h"
            remedy = "see that its timer runs: systemctl list-timers 'burnin-*', journalctl -u burnin-nightly"
            yield self._of(NIGHT_MISSING, cause, remedy, since, severity=Severity.CRITICAL)
        yield from self._unfinished()
        if last is not None and isinstance(last.payload, NightEnded):
            yield from self._failed(last, last.payload, nodes)

    def _unfinished(self) -> Iterator[Signal]:
        begun = self.started[-1] if self.started else None
        if begun is None or not isinstance(begun.payload, NightStarted):
            return
        done = any(event.run == begun.run for event in self.ended)
        if not done and self.now > begun.payload.closes + GRACE:
            remedy = "start it again within its window: clusterctl burnin nightly; it goes on with the nodes it had"
            yield self._of(NIGHT_UNFINISHED, f"the night {begun.run} did not come to its end", remedy, begun)

    def _failed(self, last: Event, night: NightEnded, nodes: Mapping[str, NodeSummary]) -> Iterator[Signal]:
        if night.stuck:
            members = tuple(
                Member(name=name, node=name, cause=why, since=last.at) for name, why in sorted(night.stuck.items())
            )
            cause = f"{len(members)} nodes could not be given back to the scheduler"
            yield self._of(NIGHT_STUCK, cause, "give them back in the scheduler", last, members)
        waiting = [nodes[name] for name in night.failed if name in nodes and _waits(nodes[name])]
        if waiting:
            members = tuple(node_member(node) for node in waiting)
            cause = f"{len(members)} nodes are not gold after their night, and not in quarantine"
            yield self._of(NIGHT_NOT_GOLD, cause, "clusterctl why NODE", last, members)

    def _of(
        self,
        code: str,
        cause: str,
        remedy: str,
        event: Event,
        members: tuple[Member, ...] = (),
        severity: Severity = Severity.WARNING,
    ) -> Signal:
        facts = IncidentFacts(
            what=IncidentKind.NIGHT,
            code=code,
            place=SITE,
            cause=cause,
            remedy=remedy,
            severity=severity,
            members=members[:MOST_MEMBERS],
        )
        return Signal(facts, str(event.seq))


def _waits(node: NodeSummary) -> bool:
    return node.stage not in (Stage.GOLD, Stage.QUARANTINED, Stage.RETIRED)


def node_member(node: NodeSummary) -> Member:
    return Member(
        name=node.name,
        node=node.name,
        serial=node.serial or "",
        place=str(node.location),
        cause=node.cause,
        remedy=node.remedy,
        since=node.since,
    )


def alert_signals(last: Iterable[Event], repeated: Collection[str], now: datetime) -> Iterator[Signal]:
    """Yield the alerts that fire and last, one signal per group of Alertmanager.

    last      the last event of each alert
    repeated  names of alerts about what has incidents already
    """
    events = [(event, event.payload) for event in last if isinstance(event.payload, AlertReceived)]
    newest = max((event.at for event, _ in events if event.subject != POST_TOO_LARGE), default=now)
    groups: dict[tuple[str, str], list[tuple[Event, AlertReceived]]] = defaultdict(list)
    for event, alert in events:
        if alert.firing and alert.name not in repeated and not _over(event, alert, newest, now):
            groups[alert.group, alert.name].append((event, alert))
    for found in groups.values():
        yield _alert_signal(found)


def _over(event: Event, alert: AlertReceived, newest: datetime, now: datetime) -> bool:
    """Return whether an alert has ended without a post about it: it was silenced, or its rule is gone.

    Alertmanager repeats what fires. Where it has posted nothing at all since `newest`, nothing is known, and the alert
    lasts; so does one of a version that did not write repeats down.
    """
    if event.subject == POST_TOO_LARGE:
        return now - event.at > TOO_LARGE_LASTS
    return alert.renewed and newest - event.at > ALERT_LASTS


def _alert_signal(found: Sequence[tuple[Event, AlertReceived]]) -> Signal:
    _, first = found[0]
    places = {alert.place for _, alert in found}
    facts = IncidentFacts(
        what=IncidentKind.ALERT,
        code=first.name,
        place=first.place if first.place and len(places) == 1 else SITE,
        cause=first.summary if len(found) == 1 else f"{len(found)} alerts {first.name}: {first.summary}",
        remedy=first.remedy,
        severity=_worst(alert.severity for _, alert in found),
        fault=first.group,
        members=tuple(_alert_member(event, alert) for event, alert in found[:MOST_MEMBERS]),
    )
    return Signal(facts, str(min(event.seq for event, _ in found)))


def _alert_member(event: Event, alert: AlertReceived) -> Member:
    name = alert.node or alert.place or event.subject
    return Member(name=name, node=alert.node, place=alert.place, cause=alert.summary, since=alert.starts_at)


def _worst(severities: Iterable[Severity]) -> Severity:
    return Severity.CRITICAL if Severity.CRITICAL in set(severities) else Severity.WARNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something that is wrong with the controller itself, as it was just seen."""

    code: str
    cause: str
    remedy: str
    where: str = ""


def trouble_signals(troubles: Iterable[Trouble], now: datetime) -> Iterator[Signal]:
    for trouble in troubles:
        facts = IncidentFacts(
            what=IncidentKind.CONTROLLER,
            code=trouble.code,
            place=trouble.where or "controller",
            cause=trouble.cause,
            remedy=trouble.remedy,
            severity=Severity.CRITICAL,
        )
        yield Signal(facts, now.isoformat())


def _signal(
    what: IncidentKind,
    code: str,
    place: str,
    causes: Sequence[str],
    members: tuple[Member, ...],
    anchor: str,
) -> Signal:
    more = f" (and {len(causes) - 1} more)" if len(causes) > 1 else ""
    facts = IncidentFacts(
        what=what,
        code=code,
        place=place,
        cause=f"{causes[0]}{more}",
        remedy=members[0].remedy if members else "",
        severity=Severity.CRITICAL if place == SITE else Severity.WARNING,
        members=members[:MOST_MEMBERS],
    )
    return Signal(facts, anchor)
