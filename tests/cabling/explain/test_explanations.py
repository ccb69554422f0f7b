"""The instructions to a technician for each kind of wrong cabling."""

from __future__ import annotations

from clusterctl.cabling.explain.verify import verify
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Guid
from tests.cabling.bench import Bench, kinds, pairs, plan, port
from tests.cabling.world import Shape, World


def only(bench: Bench, **options):
    (explanation,) = bench.verify(**options).explanations
    return explanation


def test_as_planned_is_silent():
    """A fabric that is as planned gives no explanation, and every cable counts as right."""
    verification = Bench().verify()
    assert verification.explanations == ()
    assert verification.planned == verification.observed == verification.right == len(pairs())


def test_missing_link():
    """An adapter without link: one explanation, that host, and the rack to walk to."""
    bench = Bench()
    bench.unplug(port("node002", "mlx5_1"))
    found = only(bench)
    assert (found.kind.value, found.nodes, found.rack, found.moves) == ("missing_link", ("node002",), "A01", 1)
    assert found.action.startswith("rack A01 U12 node002 mlx5_1: plug in the cable to leaf-1 port 2 (cage 1/2)")


def test_missing_trunk_holds_no_host():
    """A leaf–spine cable that is missing belongs to the fabric and names no host."""
    bench = Bench()
    bench.unplug(port("leaf-0", 33))
    assert (only(bench).kind.value, only(bench).nodes) == ("missing_link", ())


def test_both_trunks_of_a_cage_are_one_cable():
    """Two links that share a cage at both ends are one twin-port cable: one action, and no host is held."""
    bench = Bench()
    bench.unplug(port("leaf-0", 33))
    bench.unplug(port("leaf-0", 34))
    found = only(bench)
    assert (found.kind.value, found.links, found.moves, found.nodes, found.tie) == ("missing_link", 2, 1, (), False)
    assert "both links of leaf-0 cage 17 are down" in found.cause
    assert found.action == (
        "leaf-0 cage 17: reseat its transceiver and the cable to spine-0 cage 1; replace them if the links stay down"
    )


def test_both_hosts_of_a_cage_share_its_transceiver():
    """Where the far ends are two hosts, the transceiver is the likelier one of two causes: one action, reported as a tie."""
    bench = Bench()
    bench.unplug(port("leaf-0", 3))
    bench.unplug(port("leaf-0", 4))
    found = only(bench)
    assert (found.links, found.moves, found.nodes, found.tie) == (2, 1, ("node003", "node004"), True)
    assert found.action == (
        "leaf-0 cage 2: reseat its transceiver, and replace it if both links stay down — or, alternatively, plug in both "
        "cables, from rack A01 U20 node003 mlx5_0 and rack A01 U28 node004 mlx5_0"
    )


def test_neighbours_of_two_cages_are_two_cables():
    """Ports 2 and 3 stand side by side, but share no cage."""
    bench = Bench()
    bench.unplug(port("leaf-0", 2))
    bench.unplug(port("leaf-0", 3))
    assert kinds(bench.verify()) == ["missing_link", "missing_link"]


def test_each_link_is_reported_once_where_cages_overlap():
    """Three links of which two share a leaf's cage, and two a spine's: one pair and one alone."""
    bench = Bench()
    for number in (33, 34, 35):
        bench.unplug(port("leaf-1", number))
    verification = bench.verify()
    assert sorted(found.links for found in verification.explanations) == [1, 2]
    assert verification.moves == 2


def test_swapped_pair_on_a_leaf():
    """Two cables swapped on one leaf are two plug moves on that leaf, not four changed lines."""
    bench = Bench()
    bench.rotate(port("leaf-0", 1), port("leaf-0", 2))
    found = only(bench)
    assert (found.kind.value, found.moves, found.tie) == ("swapped", 2, False)
    assert found.action == "leaf-0: swap the cables in cages 1/1 and 1/2 (ports 1 and 2)"
    assert found.nodes == ("node001", "node002")


def test_swapped_at_one_host_is_a_wrong_rail():
    """Two cables exchanged at a host put both adapters on the wrong rail; the work is at the host."""
    bench = Bench()
    bench.rotate(port("node003", "mlx5_0"), port("node003", "mlx5_1"))
    found = only(bench)
    assert (found.kind.value, found.nodes, found.moves) == ("wrong_rail", ("node003",), 2)
    assert found.action == "rack A01 U20 node003: swap the cables in mlx5_0 and mlx5_1"


def test_rails_are_the_plans():
    """Hosts of two kinds call the adapters of one rail differently: only the plan's column decides which leaf is wrong."""
    rails = {("node001", "mlx5_4"): "r1", ("node001", "mlx5_5"): "r2", ("node002", "mlx5_0"): "r1"}
    rails |= {("node002", "mlx5_1"): "r2", ("node003", "mlx5_0"): "r1", ("node003", "mlx5_1"): "r2"}
    cables = [
        PlannedCable(port(f"leaf-{rail[1]}", int(host[-1])), port(host, adapter), rail=rail)
        for (host, adapter), rail in rails.items()
    ]
    cables += [PlannedCable(port(f"leaf-{leaf}", 33), port("spine-0", leaf)) for leaf in (1, 2)]
    planned = WiringPlan(tuple(cables), frozenset(host for host, _ in rails))
    hands = Bench(cables={cable.ends for cable in planned.cables})
    hands.rotate(port("leaf-1", 1), port("leaf-1", 2))
    (found,) = verify(planned, hands.fabric()).explanations
    assert found.kind.value == "swapped"
    hands.rotate(port("leaf-1", 1), port("leaf-1", 2))
    hands.rotate(port("node001", "mlx5_4"), port("node001", "mlx5_5"))
    (found,) = verify(planned, hands.fabric()).explanations
    assert (found.kind.value, found.nodes) == ("wrong_rail", ("node001",))


def test_rotation_of_three():
    """Three cables rotated on one leaf cost three plug moves, listed one by one."""
    bench = Bench()
    bench.rotate(port("leaf-1", 1), port("leaf-1", 2), port("leaf-1", 3))
    found = only(bench)
    assert (found.kind.value, found.moves) == ("swapped", 3)
    assert found.action.count("move the plug") == 3
    assert found.cause.startswith("3 cables are rotated")


def test_swap_across_two_leaves_and_two_hosts_is_a_tie():
    """Where work at either end is the same effort, the explanation has that and names both."""
    bench = Bench()
    bench.rotate(port("node001", "mlx5_0"), port("node002", "mlx5_1"))
    found = only(bench)
    assert found.tie
    assert "with the same effort" in found.action
    assert found.nodes == ("node001", "node002")


def test_moved_to_a_spare_port():
    """A plug in a free port of the same leaf is one move back."""
    bench = Bench()
    bench.move(port("leaf-0", 4), port("leaf-0", 20))
    found = only(bench)
    assert (found.kind.value, found.moves, found.nodes) == ("moved", 1, ("node004",))
    assert found.action == "leaf-0: move the plug in port 20 (cage 10/2) to port 4 (cage 2/2)"


def test_moved_and_one_missing():
    """A plug that sits in another host's port, whose own cable is gone: one move on the leaf, one cable to plug in."""
    bench = Bench()
    bench.unplug(port("node005", "mlx5_0"))
    bench.move(port("leaf-0", 6), port("leaf-0", 5))
    found = only(bench)
    assert (found.kind.value, found.moves, found.nodes) == ("moved", 2, ("node005", "node006"))
    assert "move the plug in port 5 (cage 3/1) to port 6 (cage 3/2)" in found.action
    assert "plug in a cable" in found.action


def test_extra_cable():
    """A cable between two unplanned ports is ordered to be taken out; no other work waits for it."""
    bench = Bench()
    bench.plug(port("leaf-0", 60), port("leaf-1", 60))
    found = only(bench)
    assert (found.kind.value, found.nodes) == ("extra_link", ())
    assert found.action == "take out the cable leaf-0 port 60 – leaf-1 port 60"


def test_slow_width_and_speed():
    """A link at 1x or at a lower speed than its like is one explanation each, though it is where it belongs."""
    bench = Bench()
    bench.rates = {port("node001", "mlx5_0"): (1, "NDR"), port("leaf-1", 34): (4, "HDR")}
    host, trunk = sorted(bench.verify().explanations, key=lambda e: e.nodes, reverse=True)
    assert (host.kind.value, host.nodes) == ("down_width", ("node001",))
    assert "1xNDR (100 Gb/s) instead of 400 Gb/s" in host.cause
    assert (trunk.kind.value, trunk.nodes) == ("down_speed", ())


def test_all_slow_against_the_expected_rate():
    """With the SKU's rate given, a fabric that is slow throughout does not pass for normal."""
    bench = Bench()
    bench.rates = {end: (4, "HDR") for pair in pairs() for end in pair if end.device.startswith("node")}
    assert bench.verify().explanations == ()
    assert kinds(bench.verify(host_gbps=400.0)) == ["down_speed"] * 12


def test_absent_host():
    """A host of which nothing is seen is one explanation, about the host and not its cables."""
    bench = Bench()
    bench.unplug_device("node006")
    found = only(bench)
    assert (found.kind.value, found.nodes, found.rack) == ("absent_device", ("node006",), "A02")


def test_absent_spine():
    """A switch that is off is one explanation for all its cables, and holds no host."""
    bench = Bench()
    bench.unplug_device("spine-1")
    found = only(bench)
    assert (found.kind.value, found.nodes, len(found.ports)) == ("absent_device", (), 6)


def test_island():
    """A leaf without its uplinks takes its hosts' adapters with it: the cause is its boundary, not 6 adapters."""
    bench = Bench()
    for number in range(33, 39):
        bench.unplug(port("leaf-1", number))
    found = only(bench)
    assert (found.kind.value, len(found.nodes), len(found.ports)) == ("island", 6, 6)
    assert "6 adapters" in found.cause


def test_unknown_device_on_a_free_port():
    """A device that the plan does not know is one explanation with its GUID, however many cables it has."""
    bench = Bench()
    for number in (50, 51, 52):
        bench.plug(port("leaf-0", number), port("visitor", number))
    found = only(bench)
    assert found.kind.value == "unknown_device"
    assert "GUID" in found.cause
    assert "3 links" in found.cause


def test_unknown_adapter_in_a_planned_place():
    """A stranger where a host's adapter belongs names that host: it may be a replaced part, or a foreign cable."""
    bench = Bench()
    bench.descriptions["node001 mlx5_0"] = "MT4129 ConnectX7 Mellanox Technologies"
    found = only(bench)
    assert (found.kind.value, found.nodes) == ("unknown_device", ("node001",))
    assert "if the part was replaced" in found.action


def test_inventory_knows_better_than_descriptions():
    """An adapter with a default description is known by its GUID."""
    bench = Bench()
    bench.descriptions["node001 mlx5_0"] = "MT4129 ConnectX7 Mellanox Technologies"
    fabric = bench.fabric()
    guid = next(guid for guid, device in fabric.devices.items() if device.description.startswith("MT4129"))
    assert verify(plan(), fabric, {guid: PortName("node001", "mlx5_0")}).explanations == ()


def test_a_guid_beats_a_false_description():
    """Two hosts with exchanged descriptions but known GUIDs are where they belong."""
    bench = Bench()
    fabric = bench.fabric()
    truth = {
        guid: PortName(*device.description.split()) for guid, device in fabric.devices.items() if device.ports == 1
    }
    bench.descriptions = {"node001 mlx5_0": "node002 mlx5_0", "node002 mlx5_0": "node001 mlx5_0"}
    assert kinds(bench.verify()) == ["swapped"]
    assert verify(plan(), bench.fabric(), truth).explanations == ()


def test_host_known_by_guid_without_adapter_name():
    """Where the inventory knows only the host, the adapter's name comes from the description."""
    bench = Bench()
    fabric = bench.fabric()
    bench.descriptions["node001 mlx5_0"] = "localhost mlx5_0"
    guid = next(guid for guid, device in fabric.devices.items() if device.description == "node001 mlx5_0")
    assert verify(plan(), bench.fabric(), {Guid(guid): PortName("node001", "")}).explanations == ()


def test_swapped_switch_names():
    """Two leaves under each other's name are one explanation that leaves the cables alone."""
    bench = Bench()
    bench.descriptions = {"leaf-0": "MF0;leaf-1:MQM9700/U1", "leaf-1": "MF0;leaf-0:MQM9700/U1"}
    found = only(bench)
    assert (found.kind.value, found.nodes) == ("exchanged", ())
    assert "leave the cables" in found.action


def test_switch_under_a_wrong_name():
    """A switch with a factory name, cabled as a planned one, is that one under a wrong name."""
    bench = Bench()
    bench.descriptions = {"spine-1": "MF0;switch-8b40d0:MQM9700/U1"}
    found = only(bench)
    assert found.kind.value == "misnamed"
    assert "switch-8b40d0 is cabled as spine-1" in found.cause


def test_two_adapters_under_one_name():
    """Of two adapters with one name, the one in the planned place is believed; the other is the stranger."""
    bench = Bench()
    bench.plug(port("leaf-0", 40), port("node009", "mlx5_0"))
    bench.descriptions = {"node009 mlx5_0": "node001 mlx5_0"}
    found = only(bench)
    assert found.kind.value == "unknown_device"
    assert "node001 mlx5_0 [" in found.cause


def test_two_adapters_under_one_name_neither_in_place():
    """Where no device is in the planned place, it is not guessed which is which."""
    bench = Bench()
    bench.move(port("leaf-0", 1), port("leaf-0", 40))
    bench.plug(port("leaf-0", 41), port("node009", "mlx5_0"))
    bench.descriptions = {"node009 mlx5_0": "node001 mlx5_0"}
    assert "duplicate_name" in kinds(bench.verify())


def test_several_faults_stay_apart():
    """Independent faults are explained one by one, and one does not hide the other."""
    bench = Bench()
    bench.unplug(port("node001", "mlx5_0"))
    bench.rotate(port("leaf-1", 2), port("leaf-1", 3))
    bench.rotate(port("leaf-0", 33), port("leaf-0", 34))
    bench.unplug_device("node006")
    assert sorted(kinds(bench.verify())) == ["absent_device", "missing_link", "swapped", "swapped"]


def test_a_hidden_leaf_is_reported_with_its_cause():
    """A leaf whose only uplink is misplaced is no second finding: it comes back with the move."""
    world = World(Shape(groups=1, rails=2, hosts=3, spines=1, cores=1, trunks=1).plan())
    uplink = PortId(world.guids["spine-0"], 2)
    world.pull(uplink).clear()
    core = world.pull(PortId(world.guids["core-0"], 1))
    core.add(uplink)
    (found,) = verify(world.plan, world.fabric()).explanations
    assert (found.kind.value, found.moves) == ("moved", 2)
    assert "so leaf-0-1, with 3 links behind, cannot be seen" in found.cause
    assert found.nodes == ("node000", "node001", "node002")


def test_two_switches_under_one_name():
    """Neighbours show which of two namesakes is which: the one in the wrong is renamed, the other left alone."""
    bench = Bench()
    bench.descriptions = {"leaf-1": "MF0;leaf-0:MQM9700/U1"}
    found = only(bench)
    assert (found.kind.value, found.moves) == ("misnamed", 0)
    assert found.cause.startswith("MF0;leaf-0:MQM9700/U1 [")
    assert "is cabled as leaf-1" in found.cause


def test_nameless_adapters_are_one_finding():
    """Adapters that are all named `localhost HCA-1` are one cause, with all hosts that they may belong to."""
    bench = Bench()
    bench.descriptions = {f"node{host:03d} mlx5_0": "localhost HCA-1" for host in range(1, 7)}
    found = only(bench)
    assert (found.kind.value, found.links, len(found.nodes)) == ("duplicate_name", 6, 6)
    assert bench.verify().right == len(pairs()) - 6


def test_a_shift_is_one_instruction():
    """Five plugs that are each one port too far are one sentence, not five."""
    bench = Bench()
    for number in range(6, 0, -1):
        bench.move(port("leaf-0", number), port("leaf-0", number + 1))
    found = only(bench)
    assert (found.kind.value, found.moves) == ("moved", 6)
    assert found.action == "leaf-0: move each plug in ports 2–7 1 port down, to ports 1–6"
