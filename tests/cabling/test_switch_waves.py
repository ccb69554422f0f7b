"""Waves in which switches go out of service: few at once, and nothing that is in use."""

from __future__ import annotations

from clusterctl.cabling.switch_waves import KEPT, WaveRules, plan_waves
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid
from tests.ufm.watch_world import fat_tree

TREE = fat_tree(6, 4, 2)


def hosts_of(fabric: Fabric) -> dict[Guid, str]:
    adapters = (one for one in fabric.devices.values() if one.kind is DeviceKind.CA)
    return {one.guid: one.description.split(" ")[0] for one in adapters}


def switches(fabric: Fabric, prefix: str = "") -> list[Guid]:
    found = fabric.devices.values()
    return [one.guid for one in found if one.kind is DeviceKind.SWITCH and one.description.startswith(prefix)]


def named(fabric: Fabric, waves: tuple[tuple[Guid, ...], ...]) -> list[list[str]]:
    return [[fabric.devices[guid].description for guid in wave] for wave in waves]


def rails(fabric: Fabric) -> Fabric:
    """The fabric, and each second leaf has a second adapter of the hosts of the leaf before it."""
    leaves = switches(fabric, "leaf")
    devices, links = dict(fabric.devices), list(fabric.links)
    for first, second in zip(leaves[::2], leaves[1::2], strict=True):
        for link in fabric.links:
            far = fabric.devices[link.b.guid]
            if link.a.guid == first and far.kind is DeviceKind.CA:
                guid = Guid(f"{int(far.guid, 16) + 0x1000:016x}")
                name = f"{far.description.split(' ')[0]} mlx5_1"
                devices[guid] = Device(guid, DeviceKind.CA, name, 1, port_guids=(guid,))
                links.append(Link(PortId(second, 40 + link.a.number), PortId(guid, 1), 4, "NDR"))
    return Fabric(devices, tuple(links))


def test_spines_first_and_one_alone() -> None:
    """The canary is one spine; each leaf keeps half of its uplinks in every wave; each switch has its turn once."""
    found = plan_waves(TREE, switches(TREE), WaveRules(hosts=hosts_of(TREE), at_once=3))
    assert named(TREE, found.waves) == [
        ["spine-1"],
        ["spine-2", "spine-3", "leaf-1"],
        ["spine-4", "leaf-2", "leaf-3"],
        ["leaf-4", "leaf-5", "leaf-6"],
    ]
    assert found.refusals == {}
    for wave in found.waves:
        for leaf in set(switches(TREE, "leaf")) - set(wave):
            ends = [link.b.guid for link in TREE.links if link.a.guid == leaf and link.b.guid in switches(TREE)]
            assert sum(end not in wave for end in ends) >= KEPT * len(ends)


def test_no_host_loses_two_rails() -> None:
    """Leaves that share a host are in different waves."""
    fabric = rails(TREE)
    found = plan_waves(fabric, switches(fabric, "leaf"), WaveRules(hosts=hosts_of(fabric), at_once=6))
    assert named(fabric, found.waves) == [["leaf-1"], ["leaf-2", "leaf-3", "leaf-5"], ["leaf-4", "leaf-6"]]


def test_a_host_with_jobs_keeps_its_rails() -> None:
    """Its leaf waits, and the spines do not; neither does a leaf whose adapters belong to no known host."""
    known = hosts_of(TREE)
    stranger = next(guid for guid, name in known.items() if name == "node0003")
    del known[stranger]
    found = plan_waves(
        TREE, switches(TREE), WaveRules(hosts=known, busy={"node0001": "allocated", "node0002": "mixed"})
    )
    reasons = {TREE.devices[guid].description: refusal.reason for guid, refusal in found.refusals.items()}
    assert reasons == {
        "leaf-1": "node0001 is behind it: allocated, and 1 more hosts",
        "leaf-2": f"it is unknown which host has the adapter {stranger}",
    }
    assert sum(map(len, found.waves)) == len(switches(TREE)) - 2


def test_the_master_subnet_manager_stays() -> None:
    """Neither its leaf nor a switch that runs it goes out."""
    known = hosts_of(TREE)
    master = next(guid for guid, name in known.items() if name == "node0012")
    found = plan_waves(TREE, switches(TREE), WaveRules(hosts=known, masters=(master, switches(TREE, "spine")[0])))
    refused = sorted(TREE.devices[guid].description for guid in found.refusals)
    assert refused == ["leaf-6", "spine-1"]


def test_the_last_way_stays() -> None:
    """With one spine, or with a leaf that has uplinks to one spine alone, that spine stays; so does what is not there."""
    alone = fat_tree(3, 1, 1)
    found = plan_waves(alone, [*switches(alone, "spine"), Guid("00000000000000ff")], WaveRules(hosts=hosts_of(alone)))
    assert found.waves == ()
    assert sorted(
        refusal.text(lambda guid: alone.devices[guid].description) for refusal in found.refusals.values()
    ) == [
        "it is not in the fabric",
        "leaf-1 would keep 0 of its 2 links to switches",
    ]
