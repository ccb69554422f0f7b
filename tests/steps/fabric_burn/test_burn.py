"""A burn of a fabric: every link loaded in both directions, bad ones named, nothing lost when it is killed."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import pytest

from clusterctl.cabling.burn.coverage import BurnReport
from clusterctl.cabling.burn.scope import BurnScope
from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.telemetry import Transceiver
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.finding import Digest, Evidence, Verdict
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.hardware import FabricCountersRead
from clusterctl.fleet.payloads.runs import BurnEnded, BurnStageMeasured, BurnStarted, BurnSwitchBack, BurnSwitchGone
from clusterctl.ports import Claim, Deadline
from clusterctl.steps.burnin.node_under_test import SkuLimits
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.fabric_burn import BurnServices, BurnSettings, FabricBurn
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from tests.cabling.burn.tree import Tree
from tests.steps.fabric_burn.world import Bad, FabricWorld, LostSwitch

LIMITS = shipped_fabric_limits("ndr")
STAGE_S = 1200
"""Seconds: long enough to prove a bit error rate at 400 Gb/s."""


class Diary:
    """The part of a journal that a burn uses. `kill_after`: appends after which the run is killed."""

    def __init__(self) -> None:
        self.events: list[NewEvent] = []
        self.kept: dict[Digest, Evidence] = {}

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[object, ...]:
        assert claim is not None
        self.events += events
        return ()

    def store(self, evidence: Sequence[Evidence]) -> None:
        self.kept |= {one.digest: one for one in evidence}

    def evidences(self, digests: Sequence[Digest]) -> dict[Digest, Evidence]:
        return {digest: self.kept[digest] for digest in digests if digest in self.kept}

    @property
    def stages(self) -> list[BurnStageMeasured]:
        return [event.payload for event in self.events if isinstance(event.payload, BurnStageMeasured)]


def burn_of(
    world: FabricWorld,
    diary: Diary,
    *,
    rails: Sequence[int] = (),
    cycles: int | None = 1,
    scope: BurnScope | None = None,
) -> FabricBurn:
    services = BurnServices(world, world, world, world, diary, SshAccess("root", "key"), dict[str, SkuLimits]())  # type: ignore[arg-type]
    settings = BurnSettings(
        scope=scope or BurnScope(rails=frozenset(rails)),
        stage_s=STAGE_S,
        longest_s=10 * STAGE_S,
        cycles=cycles,
        adaptive=False,
        limits=LIMITS,
        plan=WiringPlan((), frozenset()),
    )
    claim = Claim(NodeId("fabric burn"), "run", 1)
    return FabricBurn(services, settings, world.hosts(), "burn-1", claim, lambda _text: None)


def fabric(bad: Sequence[Bad] = (), tree: Tree | None = None) -> FabricWorld:
    found = tree or Tree(leaves=3, hosts=3)
    return FabricWorld(found.fabric(), found.tables(), bad)


def run(world: FabricWorld, diary: Diary, seconds: float = 1e6, **settings: object) -> tuple[str, BurnReport]:
    burn = burn_of(world, diary, **settings)  # type: ignore[arg-type]
    burn.start()
    stopped = burn.run(Deadline.after(seconds, timer=world.timer))
    report = burn.report()
    assert report is not None
    return stopped, report


def accused(report: BurnReport) -> dict[HealthKind, list[str]]:
    found: dict[HealthKind, list[str]] = {}
    for finding in report.health.findings:
        if finding.verdict is Verdict.FAIL:
            found.setdefault(finding.kind, []).append(" – ".join(map(str, finding.ends)))
    return found


def test_every_link_of_a_healthy_fabric_is_proven():
    world, diary = fabric(), Diary()
    stopped, report = run(world, diary)
    assert not stopped
    assert report.loaded == len(report.directions) == len(world.routes.links)
    assert {one.verdict for one in report.directions} == {Verdict.PASS}
    assert accused(report) == {}
    assert report.health.proven_ber is not None
    assert isinstance(diary.events[0].payload, BurnStarted)
    assert isinstance(diary.events[-1].payload, BurnEnded)
    assert {event.stream for event in diary.events} == {Stream.CAMPAIGN, Stream.FABRIC}
    read = [event.payload for event in diary.events if isinstance(event.payload, FabricCountersRead)]
    assert len(read) == 2 * len(diary.stages), "each reading is one of the fabric's history, too"
    assert all({one.fabric, one.counters} <= diary.kept.keys() for one in read)


def test_a_single_link_is_loaded_and_judged_alone():
    """Both directions of the link, by one of its ports; a bad link elsewhere is none of its business."""
    tree = Tree(leaves=3, hosts=3)
    world = fabric([Bad(PortId(tree.leaf(0), 4), per_s={"SymbolErrorCounter": 2.0})], tree)
    stopped, report = run(world, Diary(), scope=BurnScope(links=frozenset({PortName("spine-2", "2")})))
    assert not stopped
    assert {one.load.source for one in report.directions} == {PortId(tree.leaf(1), 6), PortId(tree.spine(2), 2)}
    assert {one.verdict for one in report.directions} == {Verdict.PASS}
    assert report.health.findings == ()


def test_each_kind_of_bad_link_is_named_and_no_other():
    """Of 40 links one is slow, one has bit errors, one flaps, one damages packets; the tree is 4 leaves by 4 hosts."""
    tree = Tree(leaves=4, hosts=4)
    leaf = tree.leaf
    bad = [
        Bad(PortId(leaf(0), 5), share=0.6),
        Bad(PortId(leaf(1), 6), per_s={"SymbolErrorCounter": 2.0}),
        Bad(PortId(leaf(2), 7), per_s={"LinkDownedCounter": 0.01}, both_ends=True),
    ]
    _, report = run(fabric(bad, tree), Diary())
    assert accused(report) == {
        HealthKind.SLOW: ["leaf-0 port 5 – spine-0 port 1"],
        HealthKind.BIT_ERRORS: ["leaf-1 port 6 – spine-1 port 2"],
        HealthKind.FLAPPING: ["leaf-2 port 7 – spine-2 port 3"],
    }
    assert report.health.stop is None


def test_a_bad_link_is_named_with_the_serial_that_the_history_has_of_it():
    """The readings of a burn hold no serials; the fabric's history does."""
    tree = Tree(leaves=3, hosts=3)
    port = PortId(tree.leaf(1), 5)
    world, diary = fabric([Bad(port, per_s={"SymbolErrorCounter": 2.0})], tree), Diary()
    burn = burn_of(world, diary)
    burn.settings = replace(burn.settings, modules={port: Transceiver(part="MCP4Y10", serial="MT2243VS01234")})
    burn.start()
    burn.run(Deadline.after(1e6, timer=world.timer))
    report = burn.report()
    assert report is not None
    (finding,) = [one for one in report.health.findings if one.kind is HealthKind.BIT_ERRORS]
    assert [(part, serial) for _, part, serial in finding.modules] == [("MCP4Y10", "MT2243VS01234")]
    assert finding.action.endswith("MCP4Y10 serial MT2243VS01234 at leaf-1 port 5")


def test_a_link_that_goes_away_is_lost_and_the_others_are_proven():
    tree = Tree(leaves=4, hosts=4)
    world = fabric([Bad(PortId(tree.leaf(3), 8), lost_at_s=400.0)], tree)
    diary = Diary()
    _, report = run(world, diary)
    assert accused(report)[HealthKind.LOST] == ["leaf-3 port 8 – spine-3 port 4"]
    assert all(len(ends) == 1 for ends in accused(report).values())


def _switch_events(diary: Diary) -> list[tuple[str, str]]:
    found = (event.payload for event in diary.events)
    return [(type(one).__name__, one.switch) for one in found if isinstance(one, BurnSwitchGone | BurnSwitchBack)]


@pytest.mark.parametrize(
    ("spine", "links"), [pytest.param(True, 5, id="a spine with five leaves"), pytest.param(False, 8, id="a leaf")]
)
def test_a_switch_that_goes_away_during_a_stage_is_one_event_and_accuses_no_link(spine: bool, links: int):
    """Its links are not proven, with that as the reason; all others are, although flows ended or were routed in another way."""
    tree = Tree(leaves=5, hosts=4)
    lost = tree.spine(1) if spine else tree.leaf(2)
    world, diary, printed = fabric(tree=tree), Diary(), list[str]()
    world.switches = [LostSwitch(lost, at_s=STAGE_S / 2)]
    burn = burn_of(world, diary)
    burn.on_event = printed.append
    burn.start()
    assert not burn.run(Deadline.after(1e6, timer=world.timer))
    report = burn.report()
    assert report is not None
    name = "spine-1" if spine else "leaf-2"
    assert _switch_events(diary) == [("BurnSwitchGone", name)]
    assert [line for line in printed if line == f"the switch {name} went away, and {links} links with it"]
    assert {kind for kind, _ in accused(report).items()} == {HealthKind.SWITCH_LOST}
    (finding,) = [one for one in report.health.findings if one.verdict is Verdict.FAIL]
    assert (finding.devices, finding.links, finding.ends) == ((name,), links, ())
    assert (report.health.bad, report.health.stop) == (0, None)
    own = [one for one in report.directions if lost in (one.load.source.guid, one.load.target.guid)]
    assert len(own) == 2 * links
    assert {(one.verdict, one.why) for one in own} == {(Verdict.INCONCLUSIVE, f"the switch {name} went away")}
    assert {one.reason for one in report.unproven} <= {f"the switch {name} went away", "no stage loaded it"}
    others = [one for one in report.directions if one not in own]
    assert sum(one.verdict is Verdict.PASS for one in others) >= len(others) - links


def test_a_switch_that_comes_back_is_an_event_too_and_its_links_are_proven():
    """The burn goes on; what the switch has missed is loaded in the same cycle."""
    tree = Tree(leaves=5, hosts=4)
    world, diary = fabric(tree=tree), Diary()
    world.switches = [LostSwitch(tree.spine(1), at_s=STAGE_S / 2, back_s=2.2 * STAGE_S)]
    stopped, report = run(world, diary, seconds=6 * STAGE_S, cycles=None)
    assert not stopped
    assert _switch_events(diary) == [("BurnSwitchGone", "spine-1"), ("BurnSwitchBack", "spine-1")]
    assert accused(report) == {}
    assert report.loaded == len(report.directions)


def test_a_burn_that_was_killed_reports_a_lost_switch_once():
    """The run that goes on knows from the recorded stages what is gone."""
    tree = Tree(leaves=5, hosts=4)
    world, diary = fabric(tree=tree), Diary()
    world.switches = [LostSwitch(tree.spine(1), at_s=STAGE_S / 2)]
    run(world, diary)
    again = burn_of(world, diary)
    again.start()
    assert again.recall(diary.stages) == len(diary.stages)
    again.run(Deadline.after(1e6, timer=world.timer))
    assert _switch_events(diary) == [("BurnSwitchGone", "spine-1")]


def test_a_burn_ends_with_the_reason_where_the_fabric_is_gone():
    """All leaves lose their power in the second stage: no crash, and what the first one has proven is reported."""
    tree = Tree(leaves=2, hosts=2)
    world, diary = fabric(tree=tree), Diary()
    world.switches = [LostSwitch(tree.leaf(number), 1.5 * STAGE_S) for number in (0, 1)]
    stopped, _ = run(world, diary, seconds=10 * STAGE_S, cycles=None)
    assert "3 stages in a row had no result" in stopped
    assert isinstance(diary.events[-1].payload, BurnEnded)


def test_more_than_a_tenth_of_the_links_bad_ends_the_burn():
    """All four uplinks of a leaf are slow, of 32 links."""
    tree = Tree(leaves=4, hosts=4)
    bad = [Bad(PortId(tree.leaf(0), port), share=0.5) for port in (5, 6, 7, 8)]
    stopped, report = run(fabric(bad, tree), Diary())
    assert "find their common cause" in stopped
    assert report.health.stop is not None


def test_a_host_that_dies_ends_only_its_own_part():
    world, diary = fabric(), Diary()
    world.dead.add("node4")
    _, report = run(world, diary)
    unloaded = [one.load for one in report.directions if one.verdict is Verdict.INCONCLUSIVE]
    own = PortId(Tree(leaves=3, hosts=3).adapter(4), 1)
    assert sum(own in (load.source, load.target) for load in unloaded) == 2
    assert len(unloaded) == 3, "and the way down from a spine that only packets to this host take"
    assert {one.verdict for one in report.directions} == {Verdict.PASS, Verdict.INCONCLUSIVE}
    assert len(report.unproven) == 3
    assert any("node4" in failed.target for failed in diary.stages[0].failed)


def test_a_killed_burn_goes_on_with_what_is_left():
    """Killed after each stage: the same coverage as in one go, no stage made twice."""
    whole = Diary()
    _, report = run(fabric(), whole, cycles=4)
    diary, world, runs = Diary(), fabric(), 0
    while not any(isinstance(event.payload, BurnEnded) for event in diary.events):
        burn = burn_of(world, diary, cycles=4)
        burn.start()
        burn.recall(diary.stages)
        known = len(diary.stages)
        until = Deadline.after(1e6, timer=world.timer)
        burn.services.journal.append = _killing(diary, known, until)  # type: ignore[method-assign]
        with contextlib.suppress(CancelledError):
            burn.run(until)
        runs += 1
        assert runs < 20
    after = burn.report()
    assert after is not None
    assert after.loaded == report.loaded
    assert [stage.cycle for stage in diary.stages] == [stage.cycle for stage in whole.stages]


def _killing(diary: Diary, known: int, until: Deadline):
    """Append as before, and stop the run once it has one stage more."""

    def append(events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[object, ...]:
        Diary.append(diary, events, claim=claim)
        if len(diary.stages) > known:
            until.cancelled.set()
        return ()

    return append


def test_a_reading_that_was_not_kept_counts_for_nothing():
    world, diary = fabric(), Diary()
    run(world, diary)
    diary.kept.popitem()
    assert burn_of(world, diary).recall(diary.stages) < len(diary.stages)


def test_a_stage_that_is_too_short_for_two_readings_is_made_longer():
    """It counts for nothing, the operator reads why, and the next stage proves all links."""
    world, diary, printed = fabric(), Diary(), list[str]()
    world.reading_s = 60.0
    burn = burn_of(world, diary)
    burn.on_event = printed.append
    burn.start()
    assert not burn.run(Deadline.after(1e6, timer=world.timer))
    report = burn.report()
    assert report is not None
    assert report.loaded == len(report.directions)
    assert STAGE_S < burn.stage_s <= burn.settings.longest_s
    assert len(diary.stages) == 1
    assert [line for line in printed if f"a stage of {STAGE_S} s is too short for two" in line]


def test_no_stage_is_made_longer_than_the_operator_allows():
    """The burn is not over: the next command goes on with it."""
    world, diary = fabric(), Diary()
    world.reading_s = 60.0
    burn = burn_of(world, diary)
    burn.settings = replace(burn.settings, longest_s=STAGE_S)
    burn.start()
    with pytest.raises(UsageError, match="too short for two"):
        burn.run(Deadline.after(1e6, timer=world.timer))
    assert not any(isinstance(event.payload, BurnEnded) for event in diary.events)


def test_rates_between_readings_that_took_too_long_prove_nothing_and_the_report_has_the_reason():
    """The second reading takes much longer than the first: its rates are those of no known time."""
    world, diary = fabric(), Diary()
    slow = world.traffic

    def traffic(deadline: Deadline) -> object:
        world.reading_s = 200.0 if world.reading_s else 1.0
        return slow(deadline)

    world.traffic = traffic  # type: ignore[assignment, method-assign]
    burn = burn_of(world, diary)
    burn.settings = replace(burn.settings, longest_s=STAGE_S)
    burn.start()
    with pytest.raises(UsageError, match="too short for two"):
        burn.run(Deadline.after(1e6, timer=world.timer))
    report = burn.report()
    assert report is not None
    assert report.loaded == 0
    assert len(report.unproven) == len(report.directions)
    assert {one.reason.partition(" s of ")[0] for one in report.unproven} == {"reading all counters took 100.5"}


def test_a_burn_of_a_leaf_loads_and_judges_the_links_of_this_switch():
    """Both directions of its links to hosts and to spines, and no other link."""
    tree = Tree(leaves=3, hosts=3)
    world, diary = fabric(tree=tree), Diary()
    _, report = run(world, diary, scope=BurnScope(leaves=frozenset({"leaf-1"})))
    leaf = tree.leaf(1)
    assert all(leaf in (one.load.source.guid, one.load.target.guid) for one in report.directions)
    ends = [end for link in world.fabric.links for end in (link.a, link.b) if end.guid == leaf]
    assert len(report.directions) == 2 * len(ends)
    assert {one.verdict for one in report.directions} == {Verdict.PASS}
    assert report.health.links == len(ends)


def test_a_burn_of_named_nodes_is_about_the_links_that_they_can_load():
    """All of them are proven, though most links of the fabric were not loaded."""
    tree = Tree(leaves=3, hosts=3)
    world, diary = fabric(tree=tree), Diary()
    burn = burn_of(world, diary, scope=BurnScope(named=True))
    burn.hosts = {name: one for name, one in burn.hosts.items() if name in ("node1", "node2", "node4")}
    burn.start()
    assert not burn.run(Deadline.after(1e6, timer=world.timer))
    report = burn.report()
    assert report is not None
    own = {guid for one in burn.hosts.values() for guid in one.rails}
    loaded = {end.guid for one in report.directions for end in (one.load.source, one.load.target)}
    assert own <= loaded
    assert {one.verdict for one in report.directions} == {Verdict.PASS}
    assert 6 <= len(report.directions) < len(world.routes.links)


def test_only_one_rail_is_loaded_where_it_is_named():
    world, diary = fabric(), Diary()
    with pytest.raises(UsageError, match="a burn needs two"):
        run(world, diary, rails=[3])


def test_the_time_is_used_for_further_cycles():
    """Three stages fit into the time; one loads all links."""
    world, diary = fabric(), Diary()
    stopped, report = run(world, diary, seconds=4 * STAGE_S, cycles=None)
    assert not stopped
    assert {stage.cycle for stage in diary.stages} >= {1, 2}
    assert report.loaded == len(report.directions)


def test_too_little_time_is_no_proof():
    """A table that keeps two flows apart needs several stages; the time is enough for one."""
    tree = Tree(leaves=4, hosts=4)
    for leaf in range(4):
        tree.exits[tree.leaf(leaf)] |= {lid: 5 for lid, port in tree.exits[tree.leaf(leaf)].items() if port > 4}
    stopped, report = run(fabric(tree=tree), Diary(), seconds=1.6 * STAGE_S, cycles=None)
    assert stopped == "the time was over before every link was loaded"
    assert report.loaded < len(report.directions)
