"""`lint`: each thing that is wrong with a plan gives its finding, at the line, and nothing else is found."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.cabling.lint.linter import lint, lint_ethernet
from clusterctl.cabling.lint.plan_index import PlanRules, ProblemKind
from clusterctl.fleet.fabric.wiring import PlanDraft, PlannedCable, PortName
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv, read_wiring_csv, wiring_csv
from clusterctl.formats.wiring.plan import decode_draft
from tests.paths import SHARED

SAMPLES = SHARED / "samples/fabric"
HEADER = "source_device,source_port,destination_device,destination_port"


def draft_of(hosts: int = 16, rails: int = 2, radix: int = 16, tiers: int = 2) -> PlanDraft:
    """Two units of 8 hosts: 4 leaves, 4 spines."""
    adapters = tuple(f"mlx5_{number}" for number in range(rails))
    shape = shape_of(FabricSize(hosts, rails, radix, tiers))
    plan = generate(shape, PortNaming(adapters, twin_cages=True), RackLayout(host_prefix="node"))
    return decode_draft(wiring_csv(plan).encode(), file="plan.csv")


def changed(draft: PlanDraft, *cables: PlannedCable) -> PlanDraft:
    """The plan with some lines written otherwise."""
    new = {cable.line: cable for cable in cables}
    return replace(draft, cables=tuple(new.get(cable.line, cable) for cable in draft.cables))


def without(draft: PlanDraft, *lines: int) -> PlanDraft:
    return replace(draft, cables=tuple(cable for cable in draft.cables if cable.line not in lines))


def kinds(draft: PlanDraft, rules: PlanRules | None = None) -> list[ProblemKind]:
    return [flaw.kind for flaw in lint([draft], rules or PlanRules(radix=16)).flaws]


def uplinks(draft: PlanDraft) -> list[PlannedCable]:
    return [cable for cable in draft.cables if cable.destination.device not in draft.hosts]


GOOD = draft_of()


@pytest.mark.parametrize("port", ["²", "٣", "9" * 5000, f"L01/U1/{'9' * 5000}", f"L{'9' * 5000}/U1/1", "-1", "1e9"])
@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_port_that_only_looks_like_a_number(port: str, end: str) -> None:
    """It is a name, or no port of that switch: the plan has a flaw at that line, and no reader or picture ends by it."""
    cells = {"source": ("leaf-1", "1"), "destination": ("node001", "mlx5_0")} | {end: ("leaf-1", port)}
    line = ",".join(cell for pair in cells.values() for cell in pair)
    draft = decode_draft(f"{HEADER}\n{line}\nleaf-1,2,node002,mlx5_0\n".encode(), file="plan.csv")
    flaws = lint([draft], PlanRules()).flaws
    assert all(cable.source.number >= 0 and str(cable.destination) for cable in draft.cables)
    assert flaws or port == "٣"


def test_names_with_numbers_of_any_length():
    """Leading zeros make no other host, also in a number that is longer than `int` reads."""
    number = "7" * 5000
    text = f"{HEADER}\nleaf-1,1,n{number},mlx5_0\nleaf-1,2,n00{number},mlx5_0\nleaf-1,3,n07,mlx5_0\n"
    draft = decode_draft(text.encode(), file="plan.csv")
    similar = [flaw for flaw in lint([draft], PlanRules()).flaws if flaw.kind is ProblemKind.SIMILAR_NAMES]
    assert len(similar) == 1


def test_a_good_plan_is_silent():
    """The plan that the cases below spoil has no flaw."""
    assert kinds(GOOD) == []


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_port_used_twice_is_named_with_both_lines(data):
    """Any cable's end moved onto any other cable's port: both lines are reported."""
    first, second = data.draw(st.lists(st.sampled_from(GOOD.cables), min_size=2, max_size=2, unique=True))
    spoilt = replace(first, destination=second.destination, rail=second.rail)
    found = [f for f in lint([changed(GOOD, spoilt)], PlanRules()).flaws if f.kind is ProblemKind.PORT_TWICE]
    (flaw,) = found
    assert flaw.subjects == (str(second.destination),)
    assert set(flaw.where) == {f"plan.csv:{first.line}", f"plan.csv:{second.line}"}


def test_a_cable_listed_twice():
    """The same cable on two lines, also from its other end, is one finding."""
    first = GOOD.cables[0]
    again = replace(first, source=first.destination, destination=first.source, cage="", line=999)
    flaws = lint([replace(GOOD, cables=(*GOOD.cables, again))], PlanRules()).flaws
    assert [f.where for f in flaws if f.kind is ProblemKind.CABLE_TWICE] == [("plan.csv:2", "plan.csv:999")]


def test_parts_of_a_plan_in_several_files():
    """A port used in two files is found, each line with its own file."""
    other = read_wiring_csv(f"{HEADER}\n{GOOD.cables[0].source.device},1,node099,mlx5_0\n", "more.csv")
    flaws = lint([GOOD, other], PlanRules()).flaws
    assert [f.where for f in flaws if f.kind is ProblemKind.PORT_TWICE] == [("plan.csv:2", "more.csv:2")]


def test_a_self_link():
    """A leaf cabled to itself."""
    cable = uplinks(GOOD)[0]
    own = replace(cable, destination=PortName(cable.source.device, "60"))
    assert ProblemKind.SELF_LINK in kinds(changed(GOOD, own), PlanRules())


def test_hosts_cabled_to_each_other():
    """A switch's port that is no number makes it look like a host: the message has both names."""
    cable = GOOD.cables[0]
    odd = replace(GOOD, hosts=GOOD.hosts | {"typo"})
    flaws = lint([changed(odd, replace(cable, source=PortName("typo", "x1"), cage=""))], PlanRules()).flaws
    assert [f.subjects for f in flaws if f.kind is ProblemKind.HOST_TO_HOST] == [("typo", "node001")]


@pytest.mark.parametrize("number", ["0", "17", "400"])
def test_port_numbers_beyond_the_switch(number):
    """Port 0 and ports above the radix."""
    cable = uplinks(GOOD)[0]
    beyond = replace(cable, source=PortName(cable.source.device, number), cage="")
    assert kinds(changed(GOOD, beyond)) == [ProblemKind.PORT_NUMBER]


def test_the_radix_comes_from_the_model_or_is_asked_for():
    """A QM8700 has 40 ports; an unknown switch is assumed to have 64, and the remedy states it."""
    known = decode_draft(b"QM8700 leaf\n P41 -> CX7 node001 P1\n", file="p.topo")
    unknown = decode_draft(b"BOX leaf\n P65 -> CX7 node001 P1\n", file="p.topo")
    actions = [lint([draft], PlanRules()).flaws[0].action for draft in (known, unknown)]
    assert actions == ["correct the port", "correct the port, or give the number of ports by --radix"]


@settings(max_examples=30, deadline=None)
@given(host=st.sampled_from(sorted(GOOD.hosts)))
def test_a_host_with_its_rails_exchanged(host):
    """Any one host whose two adapters are exchanged is named, with both of its lines."""
    one, two = (cable for cable in GOOD.cables if cable.destination.device == host)
    spoilt = changed(
        GOOD,
        replace(one, destination=two.destination, rail=two.rail),
        replace(two, destination=one.destination, rail=one.rail),
    )
    (flaw,) = lint([spoilt], PlanRules()).flaws
    assert flaw.kind is ProblemKind.WRONG_RAIL
    assert flaw.subjects[0] == host
    assert set(flaw.where) == {f"plan.csv:{one.line}", f"plan.csv:{two.line}"}


def test_rails_come_from_the_plan_not_from_the_number_in_a_name():
    """Adapters of different numbers are on one rail where the column `rail` has it so; without it the names differ."""
    rows = "".join(f"leaf,{n},node{n:03},mlx5_{n % 2 * 5},1\n" for n in range(1, 9))
    reported = read_wiring_csv(f"{HEADER},rail\n{rows}", "p.csv")
    untold = read_wiring_csv(f"{HEADER}\n{rows}".replace(",1\n", "\n"), "p.csv")
    assert kinds(reported, PlanRules()) == []
    assert kinds(untold, PlanRules()) == [ProblemKind.MIXED_RAILS]
    assert kinds(untold, PlanRules(rails=False)) == []


def test_a_leaf_with_two_rails():
    """A leaf that carries two rails half and half is mixed; the other leaves are fine."""
    leaf = GOOD.cables[0].source.device
    mine = [c for c in GOOD.cables if c.source.device == leaf and c.destination.device in GOOD.hosts]
    half = changed(GOOD, *(replace(cable, rail="9") for cable in mine[:4]))
    (flaw,) = lint([half], PlanRules()).flaws
    assert (flaw.kind, flaw.subjects) == (ProblemKind.MIXED_RAILS, (leaf,))


def test_unknown_rails_are_not_judged():
    """A .topo of hosts with mere port numbers has no rails: reported, not passed."""
    linted = lint([decode_draft(b"SW leaf\n P1 -> CX7 node P1\n", file="p.topo")], PlanRules())
    assert linted.flaws == ()
    assert len(linted.unjudged) == 1


def test_oversubscribed_leaf():
    """A leaf that lost two of its eight uplinks: 8:6; allowed where 2:1 is meant, but then uneven."""
    leaf = uplinks(GOOD)[0].source.device
    lost = without(GOOD, *[c.line for c in uplinks(GOOD) if c.source.device == leaf][:2])
    (flaw,) = lint([lost], PlanRules()).flaws
    assert (flaw.kind, flaw.subjects) == (ProblemKind.OVERSUBSCRIBED, (leaf,))
    assert "1.33:1" in flaw.cause
    assert kinds(lost, PlanRules(oversubscription=2)) == [ProblemKind.UNEVEN_UPLINKS]


@settings(max_examples=20, deadline=None)
@given(lost=st.sampled_from(uplinks(draft_of(tiers=3, hosts=32))))
def test_any_uplink_that_is_left_out_is_found(lost):
    """Of a leaf or of a spine, in three tiers: exactly one finding names its lower switch."""
    draft = draft_of(tiers=3, hosts=32)
    flaws = lint([without(draft, lost.line)], PlanRules(radix=16)).flaws
    assert [flaw.subjects for flaw in flaws] == [(lost.source.device,)]
    assert flaws[0].kind in (ProblemKind.OVERSUBSCRIBED, ProblemKind.UNEVEN_UPLINKS)


def test_an_island():
    """A leaf without any uplink is an island, and nothing else."""
    leaf = uplinks(GOOD)[0].source.device
    cut = without(GOOD, *(c.line for c in uplinks(GOOD) if c.source.device == leaf))
    (flaw,) = lint([cut], PlanRules()).flaws
    assert (flaw.kind, flaw.subjects) == (ProblemKind.ISLAND, (leaf,))
    assert "8 adapters" in flaw.cause


def test_eight_separate_networks():
    """One leaf for each rail and nothing between them is eight networks: one finding, unless it is meant so."""
    draft = draft_of(hosts=8, rails=8, radix=64, tiers=1)
    (flaw,) = lint([draft], PlanRules()).flaws
    assert flaw.kind is ProblemKind.ISLAND
    assert "8 separate networks" in flaw.cause
    assert len(flaw.where) == 8
    assert kinds(draft, PlanRules(separate_rails=True)) == []


def test_a_rail_in_two_pieces():
    """Even where rails are separate networks, each is one piece."""
    apart = "".join(f"leaf-{n},1,node{n},mlx5_0\n" for n in (1, 2))
    (flaw,) = lint([read_wiring_csv(f"{HEADER}\n{apart}", "p.csv")], PlanRules(separate_rails=True)).flaws
    assert "rail mlx5_0 is 2 separate networks" in flaw.cause


def test_cages():
    """A label used twice, a label that is another port's, and a cage between a host and a spine."""
    host = next(cable for cable in GOOD.cables if cable.source.port == "1")
    leaf = host.source.device
    assert kinds(changed(GOOD, replace(host, cage="1/2"))) == [ProblemKind.CAGE_TWICE, ProblemKind.CAGE_LABEL]
    last = next(c for c in GOOD.cables if c.source == PortName(leaf, "8"))
    up = next(c for c in uplinks(GOOD) if c.source == PortName(leaf, "9"))
    crossed = changed(
        GOOD, replace(last, source=up.source, cage=up.cage), replace(up, source=last.source, cage=last.cage)
    )
    (flaw,) = lint([crossed], PlanRules()).flaws
    assert flaw.kind is ProblemKind.CAGE_SPLIT
    assert "cage 4 and 5" in flaw.cause


def test_serials():
    """One serial on two cables is wrong, but not where a splitter serves both ports of a cage."""
    rows = "leaf,1,a,x,S1\nleaf,2,b,x,S1\nleaf,3,c,x,S2\nleaf,5,d,x,S2\n"
    (flaw,) = lint([read_wiring_csv(f"{HEADER},cable_serial\n{rows}", "p.csv")], PlanRules()).flaws
    assert (flaw.kind, flaw.subjects, flaw.where) == (ProblemKind.SERIAL_TWICE, ("S2",), ("p.csv:4", "p.csv:5"))


def test_a_device_in_two_places():
    """Rack and unit of one device, given twice and differently."""
    rows = "leaf,1,a,x,A1,1\nleaf,2,a,y,A2,1\n"
    (flaw,) = lint([read_wiring_csv(f"{HEADER},rack,unit\n{rows}", "p.csv")], PlanRules(rails=False)).flaws
    assert (flaw.kind, flaw.where) == (ProblemKind.TWO_PLACES, ("p.csv:2", "p.csv:3"))


def test_an_ethernet_plan():
    """Ports and MAC addresses used twice; rails and tiers do not matter there."""
    rows = "sw,Ethernet1,node001,bmc,0C:42:A1:00:00:01\nsw,Ethernet1,node002,bmc,0c-42-a1-00-00-01\n"
    linted = lint_ethernet([read_ethernet_csv(f"{HEADER},destination_mac\n{rows}", "ethernet.csv")])
    assert [flaw.kind for flaw in linted.flaws] == [ProblemKind.PORT_TWICE, ProblemKind.MAC_TWICE]


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ("", "", ""),
        ("node001 mlx5_1", "node001 mlx5_0", "2 devices call themselves 'node001 mlx5_0'"),
        ('"MF0;leaf-1:MQM9700/U1"', '"node002"', "GUID 00000000000000e1 under that name is a switch"),
        ("sysimgguid=0xa2", "sysimgguid=0xa1", "planned in node001 and node002"),
        ("Switch\t64", "Switch\t2", "has 2 ports, and the plan uses 3"),
    ],
)
def test_names_that_guids_contradict(before, after, cause):
    """Two adapters of one name, one card in two hosts, a switch of too few ports: each reported with the GUIDs."""
    rows = "leaf-1,1,node001,mlx5_0\nleaf-1,2,node001,mlx5_1\nleaf-1,3,node002,mlx5_0\n"
    text = (Path(__file__).parent / "data/three_adapters.ibnetdiscover").read_text().replace(before, after)
    draft = read_wiring_csv(f"{HEADER}\n{rows}", "p.csv")
    causes = [f.cause for f in lint([draft], PlanRules(rails=False), parse_ibnetdiscover(text)).flaws]
    assert [True for found in causes if cause and cause in found] == ([True] if cause else []), causes


@pytest.mark.parametrize("hosts", [512, pytest.param(4096, marks=pytest.mark.soak)])
def test_large_plans(hosts):
    """Generated plans of 12,288 and 98,304 links have no flaw (`benchmarks.plan_lint` times them)."""
    assert lint([draft_of(hosts, 8, radix=64, tiers=3)], PlanRules()).flaws == ()


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded fabrics are not here")
@pytest.mark.parametrize("name", ["big.plan.csv.gz", "big.plan.topo.gz", "small.plan.topo"])
def test_recorded_plans_are_clean(name):
    """The plans of the recorded fabrics have no flaw; and the names fit the GUIDs of theirs."""
    fabric = "small.good.ibnetdiscover" if name.startswith("small") else "big.good.ibnetdiscover.gz"
    data = (SAMPLES / fabric).read_bytes()
    text = (gzip.decompress(data) if fabric.endswith(".gz") else data).decode()
    draft = decode_draft((SAMPLES / name).read_bytes(), file=name)
    assert lint([draft], PlanRules(), parse_ibnetdiscover(text)).flaws == ()


HOST_LINES = [f"leaf-{rail},{host},node{host:03d},mlx5_{rail},{rail + 1}" for host in range(1, 9) for rail in (0, 1)]


@pytest.mark.parametrize(
    ("change", "kinds", "subject"),
    [
        ({}, [], ""),
        ({"leaf-1,7,node007,mlx5_1,2": ""}, ["adapter_count"], "node007"),
        ({"leaf-1,7,node007": "leaf-1,7,noed007"}, ["adapter_count", "similar_names"], "noed007"),
        ({"leaf-1,7,node007": "leaf-1,7,node7"}, ["adapter_count", "adapter_count", "similar_names"], "node7"),
        ({"leaf-1,7,node007": "leaf-1,7,NODE007.example.com"}, ["adapter_count"] * 2 + ["similar_names"], "node007"),
        (
            {"node007,mlx5_0": "node007,x", "node007,mlx5_1": "node007,mlx5_0", "node007,x": "node007,mlx5_1"},
            ["adapter_rail"] * 2,
            "node007",
        ),
        ({"node008,mlx5_1": "login01,mlx5_1"}, ["adapter_count"], "node008"),
    ],
)
def test_outliers_among_hosts(change, kinds, subject):
    """A host unlike the others is named with its lines; a host with a name of its own is none."""
    text = "source_device,source_port,destination_device,destination_port,rail\n" + "\n".join(HOST_LINES) + "\n"
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    found = lint([decode_draft(text.encode(), file="plan.csv")], PlanRules(separate_rails=True)).flaws
    assert sorted(flaw.kind.value for flaw in found) == kinds
    assert not kinds or any(subject in flaw.subjects for flaw in found)
    assert all(flaw.where and all(line.startswith("plan.csv:") for line in flaw.where) for flaw in found)
