"""Fabrics whose names are not the plan's: names alone never justify a move."""

from __future__ import annotations

import pytest

from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.explain.findings import findings_by_node
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.names import PlanNames
from clusterctl.fleet.fabric.topology import DeviceKind, PortId
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.finding import Verdict
from tests.cabling.bench import HOSTS, Bench, kinds, pairs, plan, port
from tests.cabling.world import Shape, World

HOST_NAMES = [f"node{host:03d}" for host in range(1, HOSTS + 1)]


def described(spell, hosts=HOST_NAMES) -> dict[str, str]:
    """Return the node descriptions of all adapters of `hosts`, as `spell(host, rail)` gives them."""
    return {f"{host} mlx5_{rail}": spell(host, rail) for host in hosts for rail in range(2)}


SPELLINGS = {
    "upper case": lambda host, rail: f"{host.upper()} mlx5_{rail}",
    "with a domain": lambda host, rail: f"{host}.pod1.example.com mlx5_{rail}",
    "zero-width space": lambda host, rail: f"node\u200b{host[4:]} mlx5_{rail}",
    "full-width letters": lambda host, rail: f"\uff4eode{host[4:]} mlx5_{rail}",
    "Cyrillic o": lambda host, rail: f"n\u043ede{host[4:]} mlx5_{rail}",
    "adapters from 1": lambda host, rail: f"{host} HCA-{rail + 1}",
    "adapters by PCI place": lambda host, rail: f"{host} ibp{(26, 204)[rail]}s0",
    "adapters with gaps": lambda host, rail: f"{host} mlx5_{(1, 9)[rail]}",
    "adapters the other way round": lambda host, rail: f"{host} mlx5_{1 - rail}",
    "one word": lambda host, rail: f"{host}-ib{rail}",
    "all of it": lambda host, rail: f"{host.upper()}.EXAMPLE.COM hca-{rail + 1}",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_right_cables_under_other_names(spelling):
    """Every cable counts as right, one finding has the rename map, no cable is moved, and no host is held back."""
    bench = Bench(descriptions=described(SPELLINGS[spelling]))
    verification = bench.verify()
    assert kinds(verification) == ["names_differ"]
    assert (verification.right, verification.moves, verification.as_planned) == (len(pairs()), 0, True)
    verdicts = {f.verdict for found in findings_by_node(verification, HOST_NAMES).values() for f in found}
    assert verdicts == {Verdict.PASS}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_real_fault_under_other_names(spelling):
    """A swapped pair and a missing link are the same findings as under the plan's names."""
    bench = Bench(descriptions=described(SPELLINGS[spelling]))
    bench.rotate(port("leaf-0", 1), port("leaf-0", 2))
    bench.unplug(port("node005", "mlx5_1"))
    verification = bench.verify()
    assert sorted(kinds(verification)) == ["missing_link", "names_differ", "swapped"]
    assert (verification.moves, verification.as_planned) == (3, False)
    assert {node for found in verification.explanations for node in found.nodes} == {"node001", "node002", "node005"}


@pytest.mark.parametrize("form", ["{host}:mlx5_{rail}", "mlx5_{rail} {host}", "'{host} mlx5_{rail}'"])
def test_other_forms_of_the_plans_names(form):
    """Host and adapter are the plan's, only written together in another way: no name differs."""
    bench = Bench(descriptions=described(lambda host, rail: form.format(host=host, rail=rail)))
    verification = bench.verify()
    assert (kinds(verification), verification.right) == ([], len(pairs()))


@pytest.mark.parametrize("host_name", ["10.0.0.{}", "a01-node{}", "SN4471{}"])
def test_hosts_under_other_names(host_name):
    """Hosts that no plan names are one finding; a real fault among them is one more, with its own moves only."""
    world = World(Shape(groups=1, rails=4, hosts=6, spines=2, cores=0, trunks=1).plan())
    for unit, guid in world.guids.items():
        if not world.is_switch(guid):
            host, adapter = unit.split()
            world.names[guid] = f"{host_name.format(host[-3:])} {adapter}"
    found = verify(world.plan, world.fabric())
    assert (kinds(found), found.moves, found.right) == (["names_differ"], 0, len(world.plan.cables))
    assert len(found.explanations[0].steps) == 6
    leaf = world.guids["leaf-0-0"]
    world.rotate([PortId(leaf, 1), PortId(leaf, 2)])
    found = verify(world.plan, world.fabric())
    assert (sorted(kinds(found)), found.moves) == (["names_differ", "swapped"], 2)


def test_factory_names_of_switches():
    """Switches that no plan names are one finding: the neighbours of each prove its place."""
    bench = Bench(descriptions={name: f"MF0;switch-{n:06x}:MQM9700/U1" for n, name in enumerate(SWITCHES, 0xA1)})
    verification = bench.verify()
    assert kinds(verification) == ["names_differ"]
    assert "switch-0000a1 is leaf-0" in verification.explanations[0].cause
    assert (verification.right, verification.moves) == (len(pairs()), 0)


SWITCHES = ["leaf-0", "leaf-1", "spine-0", "spine-1"]


def test_one_host_with_exchanged_cables():
    """The plan's own names on one host only: its cables are exchanged."""
    bench = Bench()
    bench.rotate(port("node003", "mlx5_0"), port("node003", "mlx5_1"))
    assert kinds(bench.verify()) == ["wrong_rail"]


def test_one_host_with_foreign_names_in_another_order():
    """One host cannot prove which of its names is which: it is held back, and nothing is moved."""
    bench = Bench(descriptions=described(lambda host, rail: f"{host} HCA-{2 - rail}", ["node003"]))
    verification = bench.verify()
    (found,) = verification.explanations
    assert (found.kind.value, found.nodes, found.moves) == ("names_unproven", ("node003",), 0)
    assert "--guids" in found.action
    assert verification.right == len(pairs()) - 2
    cable, _ = findings_by_node(verification, ["node003"])["node003"]
    assert cable.verdict is Verdict.INCONCLUSIVE


def test_one_host_of_three_that_lack_an_adapter_renames_none():
    """Three hosts show one adapter only; that one of them is on the other rail is its cable, and not three hosts' names."""
    bench = Bench()
    bench.rotate(port("node003", "mlx5_0"), port("node003", "mlx5_1"))
    bench.rotate(port("node004", "mlx5_1"), port("node005", "mlx5_1"))
    for host in ("node003", "node004", "node005"):
        bench.unplug(port(host, "mlx5_0"))
    assert "names_differ" not in kinds(bench.verify())


def test_four_hosts_of_six_with_exchanged_cables():
    """The other two show that the names are the plan's: hosts named alike do not differ so."""
    bench, exchanged = Bench(), {f"node{host:03d}" for host in range(1, 5)}
    for host in exchanged:
        bench.rotate(port(host, "mlx5_0"), port(host, "mlx5_1"))
    found = bench.verify()
    assert set(kinds(found)) == {"wrong_rail"}
    assert {node for explanation in found.explanations for node in explanation.nodes} == exchanged


def test_guids_of_an_inventory_outrank_agreement():
    """Where the inventory proves each adapter, cables that all hosts exchange alike are exchanged."""
    bench = Bench(descriptions=described(lambda host, rail: f"{host} mlx5_{1 - rail}"))
    fabric = bench.fabric()
    hosts = {
        guid: PortName(*device.description.split())
        for guid, device in fabric.devices.items()
        if device.kind is DeviceKind.CA
    }
    assert set(kinds(verify(plan(), fabric, hosts))) == {"wrong_rail"}


def test_names_that_fold_alike_stay_apart():
    """A spelling that fits two planned names fits none."""
    names = PlanNames([port("Leaf-1", 1), port("leaf-1", 1), port("node001.a", "mlx5_0"), port("node001.b", "mlx5_0")])
    assert names.device("LEAF-1") == "LEAF-1"
    assert (names.device("node001"), names.device("NODE001.B")) == ("node001", "node001.b")


def test_each_kind_has_a_code():
    """A host's finding names the kind of the fault, whatever its wording."""
    assert {CablingExplanation(kind=kind, cause="", action="").code.value for kind in FaultKind} == {
        f"cabling_{kind.value}" for kind in FaultKind
    }
