"""Repeat offenders: machines by what they did in 28 days, parts by their serial, wherever they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.reporting.offenders import ENDS, OFFENCE, Offenders, offenders
from tests.events import new_event, written

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
STOP = {"step": "burnin", "cause": "it failed", "remedy": "replace it"}


def day(number: float) -> datetime:
    """So many days ago."""
    return NOW - timedelta(days=number)


def event(node: str, kind: Kind, at: datetime, /, **data: object) -> Event:
    return written(new_event("node", node, kind, data), 1, at)


def quarantined(node: str, at: datetime, serial: str = "", subject: str = "gpu3", check: str = "gpu_ecc") -> Event:
    return event(node, Kind.NODE_QUARANTINED, at, check=check, subject=subject, serial=serial, **STOP)


def released(node: str, at: datetime) -> Event:
    return event(node, Kind.NODE_RELEASED, at, to="cabled", reason="repaired")


def revalidated(node: str, at: datetime, was: str = "quarantined") -> Event:
    more = {"since": "discover", "to": "seen", "was": was, "origin": "operator"}
    return event(node, Kind.REVALIDATION_ORDERED, at, reason="repaired", **more)


def reinstalled(node: str, at: datetime) -> Event:
    return event(node, Kind.REINSTALL_ORDERED, at, reason="again", serial="S1", root_disk="DISK-S1", was="quarantined")


def found(*events: Event, machines: tuple[str, ...] = ()) -> Offenders:
    return offenders(sorted(events, key=lambda one: one.at), machines, NOW)


def test_once_is_no_habit() -> None:
    assert found(quarantined("n1", day(3)), quarantined("n2", day(2))) == Offenders()


def test_the_worst_machine_comes_first() -> None:
    """By how often, then by how long it was out; the time out counts until the release, or until now."""
    two = [quarantined("n2", day(9)), released("n2", day(8)), quarantined("n2", day(1))]
    three = [part for n in (20, 10, 5) for part in (quarantined("n3", day(n)), released("n3", day(n - 1)))]
    longer = [quarantined("n1", day(12)), released("n1", day(4)), quarantined("n1", day(2))]
    nodes = found(*two, *three, *longer).nodes
    assert [(one.node, len(one.offences), one.out.days) for one in nodes] == [("n3", 3, 3), ("n1", 2, 10), ("n2", 2, 2)]


def test_old_deeds_are_forgotten() -> None:
    """What lies before the window does not count; who was out when it began was out from its beginning."""
    once = found(quarantined("n1", day(40)), released("n1", day(27)), quarantined("n1", day(1)))
    assert once.nodes == ()
    twice = found(
        quarantined("n1", day(40)), released("n1", day(26)), quarantined("n1", day(3)), quarantined("n1", day(1))
    )
    assert [one.out for one in twice.nodes] == [timedelta(days=2 + 3)]


def test_the_first_moment_of_the_window_counts() -> None:
    assert len(found(quarantined("n1", day(28)), quarantined("n1", day(1))).nodes) == 1


def test_an_order_about_a_node_that_is_not_out_ends_nothing() -> None:
    """A second release, when two operators repaired the same, adds no time."""
    twice = [quarantined("n1", day(9)), released("n1", day(8)), released("n1", day(7)), quarantined("n1", day(1))]
    assert [one.out for one in found(*twice).nodes] == [timedelta(days=1 + 1)]


def test_each_order_that_leads_out_of_quarantine_ends_the_time_out() -> None:
    """Release, revalidation and reinstallation, as the journal is read: by `OFFENCE` and `ENDS`. A healthy node's ends nothing."""
    for ending in (released, revalidated, reinstalled):
        before = ending("n1", day(27))  # it was quarantined before the window began
        events = [part for n in (20, 10) for part in (quarantined("n1", day(n)), ending("n1", day(n - 1)))]
        read = [one for one in (before, *events) if one.kind in (OFFENCE, *ENDS)]
        assert [one.out for one in found(*read).nodes] == [timedelta(days=1 + 1 + 1)]
    gold = [revalidated("n1", day(27), was="gold"), quarantined("n1", day(3)), quarantined("n1", day(2))]
    assert [one.out for one in found(*gold).nodes] == [timedelta(days=3)]


def test_an_erase_before_retirement_is_no_offence() -> None:
    """`retire --wipe` quarantines by the serial of the whole machine."""
    erase = {"check": "operator", "serial": "M1", "by_operator": True}
    by_hand = [event("n1", Kind.NODE_QUARANTINED, day(n), **erase, **STOP) for n in (9, 5)]
    assert found(*by_hand, machines=("M1",)) == Offenders()


def test_what_an_operator_decides_is_no_offence() -> None:
    """A quarantine for maintenance counts against no machine, and the release of a node that was only stopped is no
    outage. A part that an operator names counts.
    """
    by_hand = [event("n1", Kind.NODE_QUARANTINED, day(n), check="operator", by_operator=True, **STOP) for n in (9, 5)]
    assert found(*by_hand) == Offenders()
    stopped = event("n2", Kind.NODE_RELEASED, day(9), to="cabled", reason="again", was="cabled")
    (node,) = found(stopped, quarantined("n2", day(2)), quarantined("n2", day(1))).nodes
    assert node.out == timedelta(days=2)
    named = [quarantined(n, day(2), "GPU77", check="operator") for n in ("n1", "n2")]
    assert [part.serial for part in found(*named).parts] == ["GPU77"]


def test_a_part_takes_its_deeds_along() -> None:
    """The same serial in two machines, each of which failed once: the part is named, and no machine."""
    both = found(
        quarantined("n1", day(20), "GPU77"), quarantined("n2", day(2), "GPU77"), quarantined("n3", day(1), "GPU78")
    )
    assert both.nodes == ()
    (part,) = both.parts
    assert (part.serial, part.nodes) == ("GPU77", ("n1", "n2"))
    assert both.parts_in(NodeId("n2")) == (part,)
    assert both.parts_in(NodeId("n3")) == ()


def test_a_machine_is_no_part_of_itself() -> None:
    """Findings on the whole machine carry its own serial."""
    assert found(quarantined("n1", day(3), "M1"), quarantined("n1", day(2), "M1"), machines=("M1",)).parts == ()


def test_another_machine_begins_again_its_parts_do_not() -> None:
    """After a merge the node is another machine, retired it is none; what a part did stays with the part."""
    for ending, more in ((Kind.NODE_MERGED, {"node": "n1", "old": "S1", "new": "S2"}), (Kind.NODE_RETIRED, {})):
        before = (quarantined("n1", day(9), "GPU77"), event("n1", ending, day(8), reason="x", **more))
        seen = found(*before, quarantined("n1", day(2), "GPU77"))
        assert seen.nodes == ()
        assert [part.serial for part in seen.parts] == ["GPU77"]


def test_a_finding_about_a_part_is_not_about_the_machine() -> None:
    """A part has a stream of its own, in which an operator's decision is stored a second time."""
    reported = written(new_event("part", "GPU77", Kind.NODE_QUARANTINED, {"serial": "GPU77", **STOP}), 1, day(1), "eva")
    assert found(reported, reported) == Offenders()


def test_the_order_is_that_of_the_offences_and_not_of_the_events() -> None:
    """Most offences first, then the longest time out, then by name."""
    few = [quarantined("b", day(n)) for n in (1, 2)]
    many = [quarantined("c", day(n)) for n in (3, 4, 5)]
    equal = [quarantined("a", day(n)) for n in (1, 2)]
    output = found(*few, *many, *equal)
    assert [one.node for one in output.nodes] == ["c", "a", "b"]
    assert [output.of(NodeId(name)) is not None for name in ("a", "b", "c", "d")] == [True, True, True, False]
