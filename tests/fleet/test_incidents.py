"""Incidents from what is wrong: what is joined, what is updated, what is resolved, and what its messages hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from clusterctl.fleet.codec import incident_from_json, incident_to_json
from clusterctl.fleet.event import Event, Kind, NewEvent, Payload, Stream
from clusterctl.fleet.finding import Finding, Origin, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.incidents.derive import Route, Seen, derive, routed
from clusterctl.fleet.incidents.fold import fold
from clusterctl.fleet.incidents.incident import (
    SITE,
    IncidentFacts,
    IncidentKind,
    IncidentState,
    Member,
    Phase,
    Severity,
    retry_after,
)
from clusterctl.fleet.incidents.message import MAX_BODY, MAX_TITLE, inert, message
from clusterctl.fleet.incidents.nodes import MIXED, Stopped, stopped
from clusterctl.fleet.incidents.signals import (
    MOST_MEMBERS,
    NIGHT_MISSING,
    NIGHT_NOT_GOLD,
    NIGHT_STUCK,
    NIGHT_UNFINISHED,
    Nights,
    Signal,
    Trouble,
    alert_signals,
    fault_signals,
    link_signals,
    trouble_signals,
)
from clusterctl.fleet.incidents.ticket_text import Exhibit, note_text, ticket_text
from clusterctl.fleet.node import Location, NodeId, Serial, Stage, Step
from clusterctl.fleet.payloads.hardware import BadLinks, FabricFault, FabricLinksJudged
from clusterctl.fleet.payloads.incidents import (
    AlertReceived,
    IncidentResolved,
    MessageFailed,
    MessageIntended,
    MessageQueued,
    MessageSent,
)
from clusterctl.fleet.payloads.runs import NightEnded, NightStarted
from clusterctl.fleet.state import NodeState, summarise
from tests.events import written
from tests.steps.fakes import NOW

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
ALL = routed([Route(("ops",), frozenset(IncidentKind), frozenset(Phase))])


def node(name: str, rack: str, code: Code = Code.GPU_ECC_UNCORRECTABLE, at: int = 0, fault: str = "") -> Stopped:
    """A node that went into quarantine `at` minutes."""
    finding = Finding(
        check="c", verdict=Verdict.FAIL, code=code, cause=f"{code.value} of {name}", remedy="repair it", fault=fault
    )
    state = NodeState(
        NodeId(f"id-{name}"),
        name,
        stage=Stage.QUARANTINED,
        since=NOW + at * MINUTE,
        verdict=Verdict.FAIL,
        cause=finding.cause,
        remedy=finding.remedy,
        stopped_at=Step.BURNIN,
        location=Location(rack, 4 if rack else None),
        serial=Serial(f"S-{name}"),
        reports={"burnin": Report("burnin", "", (finding,), frozenset({Origin.REAL}))},
    )
    found = stopped(state)
    assert found is not None
    return found


class Book:
    """A journal of incidents alone."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def states(self) -> list[IncidentState]:
        subjects = dict.fromkeys(event.subject for event in self.events)
        return [fold((e for e in self.events if e.subject == subject), subject) for subject in subjects]

    def append(self, events: Sequence[NewEvent], at: datetime = NOW) -> None:
        self.events += [written(new, len(self.events) + 1 + n, at) for n, new in enumerate(events)]

    def see(
        self, *nodes: Stopped, signals: Sequence[Signal] = (), unknown: frozenset[IncidentKind] = frozenset()
    ) -> list[NewEvent]:
        """Derive and write; return what was new. Deriving again writes nothing."""
        seen = Seen(list(nodes), list(signals), unknown)
        events = list(derive(seen, self.states(), ALL))
        assert events == list(derive(seen, self.states(), ALL))
        self.append(events)
        assert not derive(seen, self.states(), ALL)
        return events

    def open(self) -> list[IncidentFacts]:
        return [state.facts for state in self.states() if state.open and state.facts]


def test_a_quarantined_node_is_one_incident_until_it_is_released() -> None:
    """Opened with serial, place and remedy; resolved when the node leaves quarantine; a later quarantine is another."""
    book = Book()
    assert [event.kind for event in book.see(node("n1", "A01"))] == [Kind.INCIDENT_OPENED, Kind.MESSAGE_QUEUED]
    (facts,) = book.open()
    assert (facts.code, facts.place, facts.severity) == ("gpu_ecc_uncorrectable", "A01", Severity.WARNING)
    assert (facts.members[0].serial, facts.members[0].place) == ("S-n1", "rack A01 U4")
    assert [event.kind for event in book.see()] == [Kind.INCIDENT_RESOLVED, Kind.MESSAGE_QUEUED]
    assert not book.open()
    book.see(node("n1", "A01", at=600))
    assert len({state.id for state in book.states()}) == 2


def test_forty_nodes_with_one_cause_are_one_incident() -> None:
    """In one rack, and over many racks: one message each, which names all of them up to a limit."""
    book = Book()
    book.see(*(node(f"n{i}", "A01", at=i) for i in range(40)))
    (facts,) = book.open()
    assert (facts.place, len(facts.members), facts.severity) == ("A01", 40, Severity.CRITICAL)
    other = Book()
    events = other.see(*(node(f"n{i}", f"A{i:02}", Code.TASK_FAILED, at=i) for i in range(40)))
    (facts,) = other.open()
    assert facts.place == SITE
    assert sum(event.kind is Kind.MESSAGE_QUEUED for event in events) == 1


def test_one_cause_in_two_racks_is_two_incidents() -> None:
    """Two GPUs that fail in two racks have nothing in common."""
    book = Book()
    book.see(node("n1", "A01"), node("n2", "A02"))
    assert [facts.place for facts in book.open()] == ["A01", "A02"]


def test_a_rack_with_several_causes_at_one_time_is_one_incident() -> None:
    """A rack that loses its power shows in many ways."""
    book = Book()
    codes = [Code.BMC_UNREACHABLE, Code.POWER_SUPPLY_FAILED, Code.SSH_NO_ANSWER]
    book.see(*(node(f"n{i}", "A01", code, at=i) for i, code in enumerate(codes)), node("m1", "B01", codes[0]))
    assert [(facts.code, facts.place, len(facts.members)) for facts in book.open()] == [
        ("bmc_unreachable", "B01", 1),
        (MIXED, "A01", 3),
    ]


def test_nodes_with_one_fault_are_one_incident_whenever_they_stopped() -> None:
    """A switch or cable between them is what they share: the finding's fault identifies it."""
    book = Book()
    code = Code.CABLING_ABSENT_DEVICE
    book.see(node("n1", "A01", code, fault="sw1"), node("n2", "A02", code, at=500, fault="sw1"))
    (facts,) = book.open()
    assert (facts.place, facts.fault) == (SITE, "sw1")
    book.see(*(node(f"n{i}", f"A0{i}", code, at=(i - 1) * 500, fault="sw1") for i in (1, 2, 3)))
    assert len(book.open()) == 1


@pytest.mark.parametrize(("at", "incidents"), [(59, 1), (61, 2)])
def test_time_joins_and_divides(at: int, incidents: int) -> None:
    """Within an hour of an incident's last node a node of its rack with its cause joins it."""
    book = Book()
    book.see(node("n1", "A01"))
    book.see(node("n1", "A01"), node("n2", "A01", at=at))
    assert len(book.open()) == incidents


def test_a_node_without_a_rack_is_alone() -> None:
    book = Book()
    book.see(node("n1", ""), node("n2", ""))
    assert [facts.place for facts in book.open()] == ["n1", "n2"]


def test_an_update_that_only_releases_nodes_is_not_sent() -> None:
    """New members are worth a message; released ones are not, until the last one is."""
    book = Book()
    book.see(node("n1", "A01"))
    assert Kind.MESSAGE_QUEUED in {e.kind for e in book.see(node("n1", "A01"), node("n2", "A01", at=5))}
    assert [e.kind for e in book.see(node("n2", "A01", at=5))] == [Kind.INCIDENT_UPDATED]
    (facts,) = book.open()
    assert [(member.name, member.active) for member in facts.members] == [("n1", False), ("n2", True)]
    assert [e.kind for e in book.see()] == [Kind.INCIDENT_RESOLVED, Kind.MESSAGE_QUEUED]


def by_hand(book: Book) -> None:
    """Resolve each open incident as an operator does."""
    payload = IncidentResolved(reason="accepted", by_hand=True)
    open_ = [state.id for state in book.states() if state.open]
    book.append([NewEvent(Stream.INCIDENT, one, payload) for one in open_], at=NOW + 10 * MINUTE)


def test_what_an_operator_has_resolved_opens_nothing_until_it_comes_back() -> None:
    """Its nodes are in no other incident, nodes that follow are; its end is written once, without a message."""
    book = Book()
    book.see(node("n1", "A01"))
    by_hand(book)
    (state,) = book.states()
    assert (state.open, state.still_seen, state.unfinished, state.change) == (
        False,
        True,
        True,
        "by clusterctl: accepted",
    )
    assert not book.see(node("n1", "A01"))
    assert [event.kind for event in book.see(node("n1", "A01"), node("n2", "A01", at=20))] == [
        Kind.INCIDENT_OPENED,
        Kind.MESSAGE_QUEUED,
    ]
    (facts,) = book.open()
    assert [member.name for member in facts.members] == ["n2"]
    assert [event.kind for event in book.see(node("n2", "A01", at=20))] == [Kind.INCIDENT_RESOLVED]
    first = book.states()[0]
    assert (first.still_seen, first.change, first.revision) == (False, "by clusterctl: accepted", state.revision)
    book.see(node("n1", "A01", at=30), node("n2", "A01", at=20))
    assert {member.name for facts in book.open() for member in facts.members} == {"n1", "n2"}


def test_another_quarantine_of_the_node_is_another_incident() -> None:
    """Also where no update came between its release and the next quarantine."""
    book = Book()
    book.see(node("n1", "A01"))
    by_hand(book)
    opened = book.see(node("n1", "A01", at=30))
    assert [event.kind for event in opened] == [Kind.INCIDENT_RESOLVED, Kind.INCIDENT_OPENED, Kind.MESSAGE_QUEUED]
    assert len({event.subject for event in opened}) == 2


def test_an_alert_that_an_operator_has_resolved_is_opened_again_for_another_node() -> None:
    """Not for the same one; its end is seen, and the next time it is an incident again."""
    book = Book()
    first, second = alert("LinkDown", "g1", "A01"), alert("LinkDown", "g1", "A02")
    one = list(alert_signals([first], (), NOW))
    book.see(signals=one)
    by_hand(book)
    assert not book.see(signals=one)
    both = list(alert_signals([first, second], (), NOW))
    assert [event.kind for event in book.see(signals=both)] == [Kind.INCIDENT_OPENED, Kind.MESSAGE_QUEUED]
    (state,) = [state for state in book.states() if state.open]
    assert (state.resolved_by, state.still_seen) == ("", False)
    by_hand(book)
    unknown = frozenset({IncidentKind.ALERT})
    assert not book.see(unknown=unknown), "nothing is known of alerts now: it lasts"
    assert [event.kind for event in book.see()] == [Kind.INCIDENT_RESOLVED]
    assert not any(state.unfinished for state in sent(book))
    again = [replace(one[0], anchor="later")]
    assert [event.kind for event in book.see(signals=again)] == [Kind.INCIDENT_OPENED, Kind.MESSAGE_QUEUED]


def sent(book: Book) -> list[IncidentState]:
    """The incidents once all messages are sent."""
    return [replace(state, deliveries={}) for state in book.states()]


def test_more_nodes_than_an_incident_names_are_resolved_with_it() -> None:
    """Five hundred are named; the others of the same cause and place open nothing either."""
    book = Book()
    many = [node(f"n{number}", "A01") for number in range(MOST_MEMBERS + 5)]
    book.see(*many)
    by_hand(book)
    assert not book.see(*many)


def event(
    payload: Payload, stream: Stream = Stream.FABRIC, seq: int = 1, at: datetime = NOW, subject: str = "s"
) -> Event:
    return written(NewEvent(stream, subject, payload), seq, at, run=subject)


def judged(*found: BadLinks, verdict: str = "fail", seq: int = 1) -> list[Signal]:
    payload = FabricLinksJudged(verdict=verdict, links=64, bad=len(found), found=found)
    return list(link_signals(event(payload, seq=seq), payload))


def bad(kind: str, end: str, rack: str = "A01", verdict: str = "fail", **more: object) -> BadLinks:
    return BadLinks(
        kind=kind, verdict=verdict, cause=f"{end} is bad", action="clean it", rack=rack, ends=(end,), **more
    )


def test_bad_links_are_joined_by_what_they_share() -> None:
    """A group of the health judgement is one incident; single links are joined by kind and rack; warnings are none."""
    book = Book()
    group = bad("bit_errors", "sw1 p1", shared="switch", value="sw1")
    singles = [bad("flapping", f"n{i} mlx5_0") for i in range(3)]
    book.see(signals=judged(group, *singles, bad("warming", "sw2 p1", verdict="warn")))
    assert [(f.what.value, f.code, f.place, len(f.members)) for f in book.open()] == [
        ("links", "bit_errors", "switch sw1", 1),
        ("links", "flapping", "A01", 3),
    ]
    book.see(signals=judged(*singles, seq=9))
    assert [facts.code for facts in book.open()] == ["flapping"]
    book.see(signals=[], unknown=frozenset({IncidentKind.LINKS}))
    assert [facts.code for facts in book.open()] == ["flapping"]


def test_a_judgement_of_an_older_program_is_one_incident() -> None:
    """It has texts only."""
    payload = FabricLinksJudged(verdict="fail", links=64, bad=2, causes=("FAIL two links; clean them",))
    (signal,) = link_signals(event(payload), payload)
    assert signal.facts.place == "fabric"


def fault(kind: str, subject: str, rack: str) -> FabricFault:
    return FabricFault(kind, (subject,), f"{subject} is absent", "check it", rack, 4)


def test_faults_of_the_fabric_that_keep_nodes_back_are_reported_once() -> None:
    """By kind and rack; in three racks, of the site."""
    faults = [fault("absent", "sw1", "A01"), fault("absent", "sw2", "A02"), fault("swapped", "sw3", "A01")]
    found = list(fault_signals(faults, {}, frozenset({faults[1].fault})))
    assert [(s.facts.code, s.facts.place) for s in found] == [("absent", "A01"), ("swapped", "A01")]
    many = [fault("absent", f"sw{i}", f"A0{i}") for i in range(3)]
    (signal,) = fault_signals(many, {}, frozenset())
    assert (signal.facts.place, len(signal.facts.members)) == (SITE, 3)


DAY = timedelta(hours=26)


def started(at: datetime, run: str = "r1") -> Event:
    return event(NightStarted(closes=at + timedelta(hours=3), percent=5), Stream.RUN, 1, at, run)


def ended(at: datetime, run: str = "r1", failed: tuple[str, ...] = (), stuck: dict[str, str] | None = None) -> Event:
    payload = NightEnded(tested=("n1",), failed=failed, stuck=stuck or {}, ended="the window closes")
    return event(payload, Stream.RUN, 2, at, run)


def codes(nights: Nights, *nodes: NodeState) -> list[str]:
    return [signal.facts.code for signal in nights.signals({one.name: summarise(one) for one in nodes})]


def test_nights_that_are_missing_or_failed() -> None:
    """A site that has had no night yet misses none."""
    assert codes(Nights(DAY, NOW)) == []
    assert codes(Nights(DAY, NOW, [started(NOW - DAY)], [ended(NOW - DAY + MINUTE)])) == []
    late = NOW + 2 * MINUTE
    assert codes(Nights(DAY, late, [started(NOW - DAY)], [ended(NOW - DAY + MINUTE)])) == [NIGHT_MISSING]
    assert codes(Nights(DAY, NOW, [started(NOW - 5 * 60 * MINUTE)])) == [NIGHT_UNFINISHED]
    assert codes(Nights(DAY, NOW, [started(NOW - 60 * MINUTE)])) == []


def test_nodes_that_a_night_left_behind() -> None:
    """Those in quarantine have incidents of their own."""
    nodes = [
        NodeState(NodeId(name), name, stage=stage)
        for name, stage in (("n1", Stage.QUARANTINED), ("n2", Stage.CABLED), ("n3", Stage.GOLD))
    ]
    nights = Nights(DAY, NOW, [started(NOW)], [ended(NOW, failed=("n1", "n2", "n3"), stuck={"n4": "scontrol failed"})])
    assert codes(nights, *nodes) == [NIGHT_STUCK, NIGHT_NOT_GOLD]
    assert codes(nights, nodes[0], nodes[2]) == [NIGHT_STUCK]


def alert(name: str, group: str, place: str, *, firing: bool = True) -> Event:
    payload = AlertReceived(
        firing=firing,
        name=name,
        group=group,
        severity=Severity.CRITICAL,
        starts_at=NOW,
        place=place,
        summary=f"{name} at {place}",
    )
    return event(payload, Stream.ALERT, subject=f"{name}-{place}")


def test_alerts_are_one_incident_per_group() -> None:
    """Resolved when its last alert is."""
    book = Book()
    book.see(
        signals=list(
            alert_signals(
                [alert("LinkFlap", "g1", "sw1"), alert("LinkFlap", "g1", "sw2"), alert("Down", "g2", "x")], (), NOW
            )
        )
    )
    assert [(f.code, f.place, len(f.members)) for f in book.open()] == [("LinkFlap", SITE, 2), ("Down", "x", 1)]
    last = [alert("LinkFlap", "g1", "sw1", firing=False), alert("Down", "g2", "x")]
    book.see(signals=list(alert_signals(last, (), NOW)))
    assert [facts.code for facts in book.open()] == ["Down"]


def later(posted: Event, hours: int, *, renewed: bool = True) -> Event:
    assert isinstance(posted.payload, AlertReceived)
    return replace(posted, at=NOW + hours * HOUR, payload=replace(posted.payload, renewed=renewed))


def firing(*last: Event, now: int) -> list[str]:
    return [signal.facts.code for signal in alert_signals(last, (), NOW + now * HOUR)]


def test_an_alert_that_is_not_repeated_has_ended() -> None:
    """It was silenced while it ended, or its rule is gone: no post reports that. While Alertmanager posts nothing at all,
    nothing is known; what an older version wrote was never written again.
    """
    silenced, other = later(alert("Silenced", "g1", "x"), 0), alert("Other", "g2", "y")
    assert firing(silenced, now=500) == ["Silenced"]
    assert firing(silenced, later(other, 49), now=49) == ["Silenced", "Other"]
    assert firing(silenced, later(other, 51), now=51) == ["Other"]
    assert firing(later(silenced, 0, renewed=False), later(other, 51), now=51) == ["Silenced", "Other"]


def test_trouble_of_the_controller_opens_and_resolves() -> None:
    book = Book()
    trouble = Trouble(code="disk_nearly_full", cause="12 MiB left", remedy="make room", where="/srv/site/state")
    book.see(signals=list(trouble_signals([trouble], NOW)))
    book.see(signals=list(trouble_signals([replace(trouble, cause="11 MiB left")], NOW + MINUTE)))
    (facts,) = book.open()
    assert (facts.cause, facts.severity) == ("11 MiB left", Severity.CRITICAL)
    book.see()
    assert not book.open()


def test_routes_choose_by_kind_phase_and_severity() -> None:
    """Each channel gets a message once, whatever many routes lead to it."""
    routes = routed(
        [
            Route(("ops",), frozenset(IncidentKind), frozenset(Phase)),
            Route(("ops", "pager"), frozenset({IncidentKind.NODES}), frozenset({Phase.OPENED}), Severity.CRITICAL),
        ]
    )
    facts = IncidentFacts(what=IncidentKind.NODES, code="c", place="p", cause="x")
    grave = replace(facts, severity=Severity.CRITICAL)
    assert routes(facts, Phase.OPENED) == ("ops",)
    assert routes(grave, Phase.OPENED) == ("ops", "pager")
    assert routes(grave, Phase.RESOLVED) == ("ops",)
    assert routes(replace(grave, what=IncidentKind.NIGHT), Phase.OPENED) == ("ops",)


def test_the_outbox_wants_the_newest_message_only() -> None:
    """An attempt counts when it is intended; a failure has its time; what is sent is done until something changes."""
    book = Book()
    book.see(node("n1", "A01"))
    subject = book.events[0].subject

    def write(payload: Payload) -> IncidentState:
        book.append([NewEvent(Stream.INCIDENT, subject, payload)])
        return book.states()[0]

    state = write(MessageIntended(channel="ops", revision=1))
    assert state.delivery("ops").due(NOW)
    assert state.delivery("ops").attempts == 1
    state = write(MessageFailed(channel="ops", revision=1, reason="down", retry_at=NOW + MINUTE))
    assert not state.delivery("ops").due(NOW)
    assert state.delivery("ops").due(NOW + MINUTE)
    state = write(MessageFailed(channel="ops", revision=1, reason="down"))
    assert state.delivery("ops").given_up
    state = write(MessageQueued(channel="ops", revision=2))
    assert state.delivery("ops").due(NOW)
    state = write(MessageSent(channel="ops", revision=2))
    assert not state.delivery("ops").pending
    assert incident_from_json(incident_to_json(state)) == state


def test_attempts_are_ever_farther_apart() -> None:
    """30 s, 1 min, 2 min … one hour at most."""
    waits = [retry_after(attempts) for attempts in range(1, 20)]
    assert waits[:3] == [timedelta(seconds=30), MINUTE, 2 * MINUTE]
    assert waits == sorted(waits)
    assert waits[-1] == timedelta(hours=1)


EVIL = "<!channel> @everyone `x` https://evil.example \x1b[31m" + "A" * 5000


def test_a_message_is_bounded_and_a_chat_acts_on_nothing_in_it() -> None:
    """Text of peers is no link, no mention and no markup; a repeat carries the incident's id."""
    members = tuple(Member(name=f"n{i}", serial=EVIL, cause=EVIL) for i in range(100))
    facts = IncidentFacts(what=IncidentKind.NODES, code="c", place="A01", cause=EVIL, remedy=EVIL, members=members)
    state = IncidentState("inc-1", facts, NOW, NOW, None, 2, EVIL)
    text = message(state, facts, "lab")
    assert len(text.title) <= MAX_TITLE
    assert len(text.body) <= MAX_BODY
    assert not set("<>@`\x1b") & set(text.title + text.body)
    assert "://" not in text.body
    few = replace(facts, members=members[:1], cause="short")
    assert "incident inc-1, message 2" in message(replace(state, facts=few), few, "lab").body


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![ ](//evil.example/x.png)", "! ( )(/ /evil.example/x.png)"),
        ("[~admin] and [x|https://evil.example]", "(~ admin) and (x|https:/ /evil.example)"),
        ("see #12, GH-12, acme/ops#5, #general", "see # 12, GH- 12, acme/ops# 5, # general"),
        ("@name <!channel> <@U1>", "(at)name (! channel) ((at)U1)"),
        ("&#64;name &lt;!channel&gt;", "& # 64;name & lt;! channel& gt;"),
        ("**bold** _it_ ~~gone~~ `code`", "* * bold* * _ it_ ~ ~ gone~ ~ 'code'"),
        ("{color:red}x{color} !img.png! www.evil.example", "(color:red)x(color) ! img.png! www. evil.example"),
    ],
)
def test_markup_of_a_machine_is_text(text: str, shown: str) -> None:
    """Of chats, of Markdown and of Jira: no link, mention, reference, image or macro is left of it, nor in a ticket."""
    assert inert(text) == shown
    facts = IncidentFacts(what=IncidentKind.NODES, code=text, place=text, cause=text, remedy=text)
    state = IncidentState("inc-1", facts, change=text)
    texts = ticket_text(state, facts, "lab", (), [Exhibit(command=text, where=text, text=f"{text}\n# x\n|| y ||\n- z")])
    for written_text in (texts.body, texts.title, note_text(state, facts), message(state, facts, "lab").body):
        assert shown in written_text
        assert text not in written_text
        assert all(line[:1] not in "#*|>=" for line in written_text.splitlines() if line)


@pytest.mark.parametrize(
    "text",
    [
        "mlx5_0 of n2 (0000:3b:00.0): 2 uncorrectable errors, 5.1e-12",
        "systemctl list-timers 'burnin-*', journalctl -u burnin-nightly",
        "docs/how-to/monitoring.md#iblinkflapping",
        "clusterctl release n2 --reason 'GPU 3, serial 1650: replaced'",
    ],
)
def test_what_is_no_markup_stays(text: str) -> None:
    """Names, figures and commands are copied from messages."""
    assert inert(text) == text
