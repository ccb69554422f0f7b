"""Generated plans: the standard shapes, right in every size that fits, and refused in words where it does not."""

from __future__ import annotations

import csv
import io
from collections import Counter

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, fewest_tiers, largest_hosts, shape_of
from clusterctl.cabling.lint.linter import lint
from clusterctl.cabling.lint.plan_index import PlanRules
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.node import Location
from clusterctl.formats.wiring.csv_plan import wiring_csv
from clusterctl.formats.wiring.plan import decode_draft, decode_plan
from clusterctl_cli.commands.cable_plan import plan as cable_plan


def labels(wanted: FabricSize) -> PortNaming:
    return PortNaming(tuple(f"mlx5_{number}" for number in range(wanted.rails)), twin_cages=wanted.radix % 4 == 0)


def plan_of(wanted: FabricSize, room: RackLayout | None = None) -> WiringPlan:
    return generate(shape_of(wanted), labels(wanted), room or RackLayout())


@st.composite
def sizes(draw: st.DrawFn) -> FabricSize:
    """Any size that fits, up to some thousand links."""
    radix = draw(st.integers(2, 20)) * 2
    tiers = draw(st.integers(1, 3))
    rails = draw(st.integers(1, min(8, radix // 2)))
    hosts = draw(st.integers(1, min(largest_hosts(rails, radix, tiers), 400)))
    return FabricSize(hosts, rails, radix, tiers)


@pytest.mark.parametrize(
    ("wanted", "leaves", "spines", "cores", "links"),
    [
        (FabricSize(512, 8, 64, 3), 128, 128, 64, 12288),
        (FabricSize(256, 8, 64, 2), 64, 32, 0, 4096),
        (FabricSize(64, 8, 64, 1), 8, 0, 0, 512),
        (FabricSize(16, 1, 4, 3), 8, 8, 4, 48),
    ],
)
def test_the_standard_shapes_have_their_textbook_counts(wanted, leaves, spines, cores, links):
    """Full trees: 512 × 8 is 128 leaf, 128 spine and 64 core switches with 12,288 links; k = 4 is the k-ary fat tree."""
    shape = shape_of(wanted)
    assert (shape.leaves, shape.spines, shape.cores) == (leaves, spines, cores)
    assert len(generate(shape, labels(wanted), RackLayout()).cables) == links


def test_the_largest_one():
    """8192 × 8 fills every port of 2,048 leaf, 2,048 spine and 1,024 core switches."""
    shape = shape_of(FabricSize(8192, 8, 64, 3))
    assert (shape.leaves, shape.spines, shape.cores) == (2048, 2048, 1024)
    assert shape.cores * 64 == shape.spines * 32 == shape.leaves * 32 == 8192 * 8


@settings(max_examples=60, deadline=None)
@given(wanted=sizes())
def test_every_port_once_and_never_beyond_the_switch(wanted):
    """No port is used twice, no port number exceeds the radix, every adapter of every host is cabled."""
    plan = plan_of(wanted)
    ports = Counter(end for cable in plan.cables for end in cable.ends)
    assert set(ports.values()) == {1}
    assert all(1 <= int(port.port) <= wanted.radix for port in ports if port.device not in plan.hosts)
    adapters = {port for port in ports if port.device in plan.hosts}
    assert len(plan.hosts) == wanted.hosts
    assert len(adapters) == wanted.hosts * wanted.rails


@settings(max_examples=60, deadline=None)
@given(wanted=sizes())
def test_lint_finds_nothing_in_a_generated_plan(wanted):
    """One rail a leaf, no oversubscription, even uplinks, connected: read back from its own CSV."""
    draft = decode_draft(wiring_csv(plan_of(wanted)).encode(), file="plan.csv")
    linted = lint([draft], PlanRules(radix=wanted.radix, separate_rails=wanted.tiers == 1))
    assert linted.flaws == ()
    assert linted.unjudged == ()


@settings(max_examples=60, deadline=None)
@given(wanted=sizes())
def test_no_tier_carries_less_than_the_one_below(wanted):
    """Leaves and spines have at least as many links upwards as downwards: non-blocking."""
    plan = plan_of(wanted)
    down, up = Counter(), Counter()
    for cable in plan.cables:
        source, destination = cable.source.device, cable.destination.device
        if destination in plan.hosts:
            down[source] += 1
        else:
            up[source] += 1
            down[destination] += 1
    lower = {1: (), 2: ("leaf",), 3: ("leaf", "spine")}[wanted.tiers]
    assert all(up[switch] >= down[switch] for switch in down if switch.startswith(lower or ("none",)))


@settings(max_examples=40, deadline=None)
@given(wanted=sizes())
def test_written_and_read_back_it_is_the_same_plan(wanted):
    """The CSV holds all of it: ports, racks, cages and rails."""
    plan = plan_of(wanted)
    assert decode_plan(wiring_csv(plan).encode(), file="plan.csv") == plan


@settings(max_examples=60, deadline=None)
@given(
    rails=st.integers(1, 16),
    half=st.integers(2, 40),
    tiers=st.integers(1, 3),
    beyond=st.integers(1, 50),
    fits=st.booleans(),
)
def test_too_many_hosts_are_refused_with_the_largest_number(rails, half, tiers, beyond, fits):
    """The number that the refusal names fits, and one more does not."""
    largest = largest_hosts(rails, 2 * half, tiers)
    if fits and largest:
        assert shape_of(FabricSize(largest, rails, 2 * half, tiers)).wanted.hosts == largest
    else:
        with pytest.raises(UsageError, match=f"carry at most {largest} hosts") as caught:
            shape_of(FabricSize(largest + beyond, rails, 2 * half, tiers))
        assert caught.value.where == f"--hosts {largest + beyond}"
        assert caught.value.remedy


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        (FabricSize(0, 8, 64, 2), "--hosts, --rails"),
        (FabricSize(8, 8, 63, 2), "--radix"),
        (FabricSize(8, 8, 2, 2), "--radix"),
        (FabricSize(8, 8, 64, 4), "--tiers"),
    ],
)
def test_shapes_that_are_none(wanted, where):
    """Odd radix, four tiers, no hosts: the error names the flag."""
    with pytest.raises(UsageError) as caught:
        shape_of(wanted)
    assert caught.value.where == where


def test_as_few_tiers_as_suffice():
    """One rail within one switch needs a leaf only; several rails need spines to meet; beyond 256 hosts, cores."""
    assert [fewest_tiers(*size) for size in ((64, 1, 64), (8, 8, 64), (256, 8, 64), (257, 8, 64))] == [1, 2, 2, 3]


def test_rails_are_named_by_the_plan_and_not_by_the_adapter():
    """Adapters may be called as they are (mlx5_6 on rail 5); the plan's rail column counts rails."""
    plan = generate(
        shape_of(FabricSize(2, 3, 8, 2)), PortNaming(("mlx5_0", "mlx5_1", "mlx5_6"), twin_cages=False), RackLayout()
    )
    rails = {cable.destination.port: cable.rail for cable in plan.cables if cable.destination.device in plan.hosts}
    assert rails == {"mlx5_0": "1", "mlx5_1": "2", "mlx5_6": "3"}


def test_names_contain_rack_and_unit():
    """A host is called by where it stands; so is a switch, after its role; cages are QM9700's labels."""
    plan = plan_of(FabricSize(6, 2, 8, 2))
    assert plan.locations["a01u25"] == Location("A01", 25)
    assert plan.locations["a02u01"] == Location("A02", 1)
    first = plan.cables[0]
    assert (first.source, first.destination) == (PortName("leaf-a03u01", "1"), PortName("a01u01", "mlx5_0"))
    assert first.cage == "1/1"


def test_numbered_hosts_and_rows_of_racks():
    """`--host-prefix node` numbers the hosts; racks go on in the next row, and after row Z comes AA."""
    plan = plan_of(FabricSize(60, 1, 64, 1), RackLayout(hosts_per_rack=1, racks_per_row=2, host_prefix="node"))
    assert plan.locations["node003"] == Location("B01", 1)
    assert plan.locations["node053"] == Location("AA01", 1)


@pytest.mark.parametrize("room", [RackLayout(hosts_per_rack=7, host_units=8), RackLayout(switches_per_rack=25)])
def test_racks_that_are_too_low(room):
    """More than 48 units in a rack are refused, naming the flag."""
    with pytest.raises(UsageError, match="48") as caught:
        plan_of(FabricSize(2, 1, 4, 1), room)
    assert "per-rack" in caught.value.where


@pytest.mark.parametrize("names", [("a",), ("a", "a"), ("a", "7"), ("a", ""), ("a", 'b"')])
def test_adapters_must_fit_the_rails(names):
    """One name for each rail, each once, none of them a number or hard to write."""
    with pytest.raises(UsageError) as caught:
        generate(shape_of(FabricSize(2, 2, 8, 2)), PortNaming(names, twin_cages=False), RackLayout())
    assert caught.value.where == "--adapters"


def test_no_cage_is_split_between_hosts_and_spines():
    """With 18 ports the ninth would share its cage with the first uplink: twin cages are refused there."""
    with pytest.raises(UsageError, match="middle of a cage"):
        generate(shape_of(FabricSize(2, 2, 18, 2)), PortNaming(("a", "b"), twin_cages=True), RackLayout())


def _made(*options: str, folder):
    files = {name: folder / name for name in ("out", "labels", "bom")}
    words = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    result = CliRunner().invoke(cable_plan, [*options, *words])
    assert result.exit_code == 0, result.output
    return {name: file.read_text() for name, file in files.items()}


def test_hosts_are_spread_evenly_over_leaves(tmp_path):
    """33 hosts are 17 and 16, not 32 and 1."""
    plan = decode_plan(
        _made("--hosts", "33", "--rails", "1", "--tiers", "2", folder=tmp_path)["out"].encode(), file="p.csv"
    )
    leaves = Counter(cable.source.device for cable in plan.cables if cable.destination.device in plan.hosts)
    assert sorted(leaves.values()) == [16, 17]


def test_ports_for_ufm(tmp_path):
    """127 hosts and 4 ports for UFM fill the leaves of 128 hosts; the plan is without a flaw."""
    made = _made("--hosts", "127", "--ufm-ports", "4", folder=tmp_path)
    draft = decode_draft(made["out"].encode(), file="p.csv")
    ufm = {end.device: cable.source for cable in draft.cables for end in cable.ends if end.device.startswith("ufm")}
    assert len(ufm) == 4
    assert {port.port for port in ufm.values()} == {"32"}
    assert len({port.device for port in ufm.values()}) == 4
    assert lint([draft], PlanRules()).flaws == ()


def test_lengths_labels_and_materials(tmp_path):
    """Each cable between known places has a length that is sold and reaches; labels and the bill count every cable."""
    made = _made("--hosts", "64", folder=tmp_path)
    plan = decode_plan(made["out"].encode(), file="p.csv")
    lengths = [cable.length_m for cable in plan.cables]
    assert all(length is not None and 0.5 <= length <= 150 for length in lengths)
    near, far = (next(c for c in plan.cables if c.destination == PortName(h, "mlx5_0")) for h in ("a01u01", "a16u01"))
    assert near.length_m < far.length_m
    assert {cable.kind for cable in plan.cables if cable.length_m > 3} == {"optical"}
    labels = list(csv.DictReader(io.StringIO(made["labels"])))
    assert len(labels) == 2 * len(plan.cables)
    bill = list(csv.DictReader(io.StringIO(made["bom"])))
    assert sum(int(row["number"]) for row in bill if row["item"] == "cable") == len(plan.cables)
    switches = {end.device for cable in plan.cables for end in cable.ends} - plan.hosts
    assert sum(int(row["number"]) for row in bill if row["item"] == "switch") == len(switches)
    optical = sum(cable.kind == "optical" and cable.destination.device in plan.hosts for cable in plan.cables)
    assert [int(row["number"]) for row in bill if row["type"] == "host, one port"] == [optical]
