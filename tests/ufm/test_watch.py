"""The watch of a fabric: what it isolates, what it leaves alone, how a link comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.edges.site.load import load_site
from clusterctl.fleet.event import Stream
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.fabric.port_acts import disabled_ports
from clusterctl.fleet.fabric.topology import Link
from tests.ufm.watch_world import Watched, fat_tree, repaired, sick, slower, uplinks, watched

SMALL = fat_tree(4, 2, 2)


@pytest.fixture
def site(tmp_path: Path) -> Watched:
    return watched(tmp_path / "site", SMALL)


def test_dry_by_default(tmp_path: Path) -> None:
    """Without `act: true` nothing is changed; what would be done is there."""
    site = watched(tmp_path / "site", SMALL, act=False)
    site.once()
    bad = uplinks(SMALL)[0]
    sick(site.world, [bad])
    result = site.after(10)
    assert not result.acts
    assert list(result.would) == ["leaf-1 port 3"]
    assert site.world.set == []


def test_the_whole_way(site: Watched) -> None:
    """Errors, out of use, one ticket with both ends; after the repair enabled, proven, in use, ticket resolved."""
    world, bad = site.world, uplinks(SMALL)[0]
    assert site.once().verdict == "inconclusive"
    sick(world, [bad])
    result = site.after(10)
    assert [outcome.text for outcome in result.outcomes] == ["disabled"]
    assert world.set == [(bad.a, True)]
    (ticket,) = world.tickets
    for text in ("leaf-1 port 3", "spine-1 port 1", "fabric repaired leaf-1:3", "symbol errors"):
        assert text in ticket["body"]
    assert site.after(10).outcomes == ()
    repaired(world, bad)
    ticket["closed"] = True
    site.after(1)
    result = site.after(5)
    assert [outcome.text for outcome in result.outcomes] == ["enabled: its counters are watched until they prove it"]
    assert site.burns.asked == []
    waiting = site.after(5).waiting
    assert waiting == {"leaf-1 port 3": "its counters are watched; burned for 300 s at 97 % and 97 % of its rate"}
    texts = [outcome.text for _ in range(4) for outcome in site.after(10).outcomes]
    assert [text.partition(":")[0] for text in texts] == ["in use"]
    assert "burned for 300 s at 97 % and 97 %" in texts[0]
    assert site.burns.asked == [("leaf-1:3",)]
    assert world.set == [(bad.a, True), (bad.a, False)]
    assert site.after(10).out == 0
    assert len(world.tickets) == 1
    assert "Resolved" in ticket["notes"][-1]


def test_the_ticket_has_the_rack_of_each_end_and_the_serial_of_the_cable(tmp_path: Path) -> None:
    """By the wiring plan: no transceiver was read."""
    site = watched(tmp_path / "site", SMALL)
    bad = uplinks(SMALL)[0]
    head, *lines = (site.folder / "wiring.csv").read_text().splitlines()
    racks = {"leaf": "A01", "spin": "S01"}
    rows = [
        f"{line},CBL{at:04},{racks[line[:4]]},{racks.get(line.split(',')[2][:4], 'A01')}"
        for at, line in enumerate(lines)
    ]
    (site.folder / "wiring.csv").write_text("\n".join([f"{head},cable_serial,source_rack,destination_rack", *rows, ""]))
    site.site = load_site(site.folder)
    site.once()
    sick(site.world, [bad])
    site.after(10)
    (ticket,) = site.world.tickets
    serial = next(row.split(",")[4] for row in rows if row.startswith("leaf-1,3,"))
    for text in ("leaf-1 port 3", "A01", "spine-1 port 1", "S01", f"serial {serial}"):
        assert text in ticket["body"]


def enabled(site: Watched) -> Link:
    """A bad link that went out, was repaired, and is enabled; the next pass burns it."""
    world, bad = site.world, uplinks(SMALL)[0]
    site.once()
    sick(world, [bad])
    site.after(10)
    repaired(world, bad)
    world.tickets[0]["closed"] = True
    site.after(1)
    site.after(5)
    assert world.set == [(bad.a, True), (bad.a, False)]
    return bad


def test_the_burn_proves_a_link_bad(site: Watched) -> None:
    """It is disabled again, and not loaded a second time, though the process ends before it is."""
    bad = enabled(site)
    site.burns.slow, site.burns.share, site.burns.killed = True, 51.0, True
    outcomes = site.after(5).outcomes
    assert site.kills == 1
    assert [str(one.failure) for one in outcomes] == [
        "disabled again: burned: it carried 51 % — repair it, then report it again"
    ]
    assert site.world.disabled == {bad.a}
    assert len(site.burns.asked) == 1


def test_a_low_rate_is_no_fault_where_switches_route_adaptively(tmp_path: Path) -> None:
    """A part of the load may have gone another way: the counters decide, and the proof has the rate."""
    site = watched(tmp_path / "site", SMALL, adaptive=True)
    enabled(site)
    site.burns.slow, site.burns.share = True, 51.0
    texts = [outcome.text for _ in range(4) for outcome in site.after(10).outcomes]
    assert site.burns.requests[0].adaptive
    assert "not proven by a burn" in texts[0]
    assert "51 % and 51 % of its rate" in texts[0]


def test_one_direction_is_a_part_of_the_proof(site: Watched) -> None:
    """What no host's packets cross is named; the counters prove the link; the burn is tried again until then."""
    enabled(site)
    site.burns.one_way = True
    texts = [outcome.text for _ in range(4) for outcome in site.after(3).outcomes]
    assert "not proven by a burn: no stage loaded it (97 % and 0 % of its rate)" in texts[0]
    assert len(site.burns.asked) == 2


def test_no_host_is_free(site: Watched) -> None:
    """The link comes back by its counters alone, and the proof has the reason. A burn is tried three times at most."""
    enabled(site)
    site.burns.refusal = "1 hosts can take part, a burn needs two"
    texts = [outcome.text for _ in range(5) for outcome in site.after(3).outcomes]
    assert "not proven by a burn: 1 hosts can take part" in texts[0]
    assert len(site.burns.asked) == 3


def test_a_host_that_stays_without_jobs_is_a_problem(site: Watched) -> None:
    """It is printed, and the exit code is 1."""
    enabled(site)
    site.burns.stuck = {"node0001": "Slurm does not answer"}
    result = site.after(5)
    assert result.problems == ("node0001 is still without jobs: Slurm does not answer",)
    assert result.exit_code == 1


def test_a_repair_that_is_none(site: Watched) -> None:
    """Errors that go on disable the port again; the same closed ticket enables it no second time."""
    world, bad = site.world, uplinks(SMALL)[0]
    site.once()
    sick(world, [bad])
    site.after(10)
    world.tickets[0]["closed"] = True
    site.after(1)
    site.after(5)
    failures = [outcome.failure for _ in range(3) for outcome in site.after(10).outcomes]
    assert [failure.kind for failure in failures if failure] == ["unhealthy"]
    assert world.set == [(bad.a, True), (bad.a, False), (bad.a, True)]
    for _ in range(3):
        assert site.after(10).outcomes == ()
    assert len(world.tickets) == 1


def test_slower_than_before(site: Watched) -> None:
    """A link that comes back at half its rate goes out again at once."""
    world, bad = site.world, uplinks(SMALL)[0]
    site.once()
    sick(world, [bad])
    site.after(10)
    world.fabric = slower(SMALL, bad)
    repaired(world, bad)
    world.tickets[0]["closed"] = True
    site.after(1)
    site.after(5)
    (outcome,) = site.after(5).outcomes
    assert "it came back at 2xNDR, and had 400 Gb/s before" in str(outcome.failure)
    assert world.disabled == {bad.a}


def test_an_alarm_alone_changes_nothing(site: Watched) -> None:
    """What UFM reports is recorded with the port, once a day; the counters prove nothing, so the link stays in use."""
    world, link = site.world, uplinks(SMALL)[3]
    site.once()
    for _ in range(20):
        world.ufm.add_event(112, f"{link.a.guid}_{link.a.number}", world.clock.at, "Link-Downed")
        world.ufm.add_event(9999, "Grid", world.clock.at, kind="Grid")
    world.ufm.add_event(510, "Grid", world.clock.at, "SM Failover", kind="Grid")
    result = site.after(10)
    assert (result.alarms, result.unknown) == ({"link_errors": 20, "unknown": 20, "subnet_manager": 1}, (9999,))
    assert result.managers == ("SM Failover",)
    assert site.after(10).alarms == {}
    assert world.set == []
    assert world.tickets == []
    journal = site.opened().journal
    assert len(list(journal.history(Stream.FABRIC, port_name(link.a)))) == 1
    journal.close()


def full(site: Watched) -> tuple[Link, Link]:
    """Two bad links: the first is out of use, and the counters of the other have been full for more than six hours."""
    world = site.world
    first, waiting = uplinks(SMALL)[0], uplinks(SMALL)[5]
    site.once()
    sick(world, [first, waiting])
    assert [one.node for one in site.after(10).outcomes] == ["leaf-1 port 3"]
    world.counts |= dict.fromkeys((waiting.a, waiting.b), 0xFFFF)
    for _ in range(3):
        result = site.after(170)
    assert (result.out, result.bad) == (1, 1)
    assert not _resolved(site)
    return first, waiting


def _resolved(site: Watched) -> list[str]:
    return [one["key"] for one in site.world.tickets if any("Resolved" in note for note in one["notes"])]


def test_a_waiting_link_with_a_full_counter_goes_out_in_its_turn(site: Watched) -> None:
    """Its counter shows no more growth; it is bad still."""
    first, _ = full(site)
    repaired(site.world, first)
    site.world.tickets[0]["closed"] = True
    outcomes = [outcome for _ in range(4) for outcome in site.after(10).outcomes]
    assert (outcomes[-1].node, outcomes[-1].text) == ("leaf-2 port 4", "disabled")


def test_a_cleared_counter_lets_a_healthy_link_go(site: Watched) -> None:
    """An operator repairs the link and clears the counter: its incident ends once the counters prove it for six hours."""
    _, waiting = full(site)
    repaired(site.world, waiting)
    site.world.counts |= dict.fromkeys((waiting.a, waiting.b), 0)
    site.after(10)
    assert not _resolved(site)
    site.after(200)
    site.after(200)
    assert len(_resolved(site)) == 1


def test_a_malformed_event_is_reported_once(site: Watched) -> None:
    """The others are read, and the next passes are quiet about it."""
    world, link = site.world, uplinks(SMALL)[3]
    site.once()
    world.ufm.add_event(112, f"{link.a.guid}_{link.a.number}", world.clock.at, "Link-Downed")
    world.ufm.events.append({"id": 99, "event_type": "112", "timestamp": "never"})
    result = site.after(10)
    assert result.alarms == {"link_errors": 1}
    assert result.problems == ("ufm: 1 of its entries could not be read, the first: 'never' is no time",)
    assert site.after(10).problems == ()
    world.ufm.events.append({"id": 100, "event_type": "112", "timestamp": "later"})
    assert site.after(10).problems == ("ufm: 1 of its entries could not be read, the first: 'later' is no time",)


def test_a_host_stays_connected(site: Watched) -> None:
    """A host's own rail is never disabled: it is reported, and has its ticket."""
    world, rail = site.world, SMALL.links[0]
    site.once()
    sick(world, [rail])
    result = site.after(10)
    assert "quarantine the host" in next(iter(result.skipped.values()))
    assert world.set == []
    assert len(world.tickets) == 1
    site.after(10)
    assert len(world.tickets) == 1
    assert world.tickets[0]["notes"] == []


def test_too_much_is_broken(site: Watched) -> None:
    """Where more than 10 % of the links are bad, the cause is a common one: nothing is disabled."""
    site.once()
    sick(site.world, uplinks(SMALL)[::2])
    assert site.after(10).outcomes == ()
    assert site.world.set == []


def test_reported_by_an_operator(site: Watched) -> None:
    """`fabric repaired` starts the proof, without a ticket system; an unknown port is refused."""
    from clusterctl.fleet.errors import UsageError
    from clusterctl.operations.fabric_repairs import RepairedRequest, report_repaired

    world, bad = site.world, uplinks(SMALL)[0]
    site.once()
    sick(world, [bad])
    site.after(10)
    context = site.opened()
    with pytest.raises(UsageError, match="did not disable this port"):
        report_repaired(context, RepairedRequest(ports=("leaf-1:3", "leaf-2:3"), reason="new cable"))
    assert report_repaired(context, RepairedRequest(ports=("leaf-1:3",), reason="new cable")) == ("leaf-1 port 3",)
    context.journal.close()
    repaired(world, bad)
    site.after(5)
    assert world.set == [(bad.a, True), (bad.a, False)]


def test_repaired_too_often(site: Watched) -> None:
    """A third repair in a week is not tried by itself: an operator decides."""
    from clusterctl.operations.fabric_repairs import RepairedRequest, report_repaired

    world, bad = site.world, uplinks(SMALL)[0]
    site.once()
    sick(world, [bad])
    site.after(10)
    for _ in range(3):
        context = site.opened()
        report_repaired(context, RepairedRequest(ports=("leaf-1:3",), reason="new cable"))
        context.journal.close()
        for _ in range(4):
            result = site.after(10)
    assert sum(not disabled for _, disabled in world.set) == 2
    assert "more than 2 times in a week" in result.waiting["leaf-1 port 3"]
    journal = site.opened().journal
    assert [one.label for one in disabled_ports(journal.latest(Stream.FABRIC))] == ["leaf-1 port 3"]
    journal.close()
