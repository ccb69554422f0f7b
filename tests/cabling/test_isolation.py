"""The budget: which links may be out, and which never."""

from __future__ import annotations

from clusterctl.cabling.isolation import Cut, Isolation, budget_of, plan_cuts
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid


def fabric(leaves: int, spines: int, twins: int = 1, hosts: int = 2) -> Fabric:
    """Every leaf with `twins` cables to every spine, and `hosts` adapters at each leaf."""
    devices: dict[Guid, Device] = {}

    def device(kind: DeviceKind, name: str) -> Guid:
        guid = Guid(f"{len(devices) + 1:016x}")
        devices[guid] = Device(guid, kind, name, 64)
        return guid

    tops = [device(DeviceKind.SWITCH, f"spine-{n}") for n in range(spines)]
    links = []
    for leaf in range(leaves):
        own = device(DeviceKind.SWITCH, f"leaf-{leaf}")
        for host in range(hosts):
            adapter = device(DeviceKind.CA, f"host{leaf}-{host} mlx5_0")
            links.append(Link(PortId(own, host + 1), PortId(adapter, 1), 4, "NDR"))
        for number, top in enumerate(tops):
            for twin in range(twins):
                near = PortId(own, 20 + number * twins + twin)
                links.append(Link(PortId(top, leaf * twins + twin + 1), near, 4, "NDR"))
    return Fabric(devices, tuple(links))


def uplinks(seen: Fabric) -> list[Link]:
    return [link for link in seen.links if seen.devices[link.b.guid].kind is DeviceKind.SWITCH]


def test_the_smaller_of_ten_and_half_a_percent():
    """At least 1, also in the smallest fabric."""
    assert [budget_of(links) for links in (1, 199, 400, 1999, 2000, 24_576)] == [1, 1, 2, 9, 10, 10]


def test_a_hosts_rail_is_never_cut():
    """The host is named instead."""
    seen = fabric(2, 2)
    plan = plan_cuts(seen, [seen.links[0]], Isolation())
    assert plan.cuts == ()
    (refusal,) = plan.refusals
    assert refusal.host == seen.links[0].b.guid
    assert "quarantine the host" in refusal.remedy


def test_the_port_is_the_lower_switchs():
    """Of an uplink the leaf's port is disabled, and its far end is what must be found there."""
    seen = fabric(2, 2)
    link = uplinks(seen)[0]
    plan = plan_cuts(seen, [link, link], Isolation())
    assert plan.cuts == (Cut(link.b, link.a),)
    assert plan.refusals == ()


def test_one_uplink_of_each_switch():
    """The second of one leaf is refused, though the budget would have room; that of another leaf is not."""
    seen = fabric(16, 16, hosts=16)
    first, second, *_ = uplinks(seen)
    other = uplinks(seen)[-1]
    plan = plan_cuts(seen, [first, second, other], Isolation())
    assert plan.budget == 2
    assert [cut.port for cut in plan.cuts] == [first.b, other.b]
    assert (
        "another uplink of the same switch"
        in plan_cuts(fabric(32, 32), uplinks(fabric(32, 32))[:2], Isolation()).refusals[0].reason
    )


def test_what_is_out_counts():
    """Links that stand disabled use up the budget, and their switches."""
    seen = fabric(2, 4)
    first, second = uplinks(seen)[0], uplinks(seen)[-1]
    rest = Fabric(seen.devices, tuple(link for link in seen.links if link is not first))
    plan = plan_cuts(rest, [second], Isolation((Cut(first.b, first.a),)))
    assert (plan.out, plan.cuts) == (1, ())
    assert "budget" in plan.refusals[0].reason


def test_never_the_last_twin():
    """Of two cables that a plan has between two switches, one of which is gone, the other stays."""
    seen = fabric(2, 2, twins=2)
    gone, left = uplinks(seen)[:2]
    pair = frozenset((gone.a.guid, gone.b.guid))
    rest = Fabric(seen.devices, tuple(link for link in seen.links if link is not gone))
    assert plan_cuts(rest, [left], Isolation()).cuts
    assert "last of its twins" in plan_cuts(rest, [left], Isolation(twins={pair: 2})).refusals[0].reason


def test_never_the_last_way():
    """A leaf's only uplink stays, and so does what is not up any more."""
    seen = fabric(2, 1)
    (link, _) = uplinks(seen)
    assert "last way" in plan_cuts(seen, [link], Isolation()).refusals[0].reason
    strange = Link(link.a, PortId(link.b.guid, 63), 4, "NDR")
    assert "not up" in plan_cuts(seen, [strange], Isolation()).refusals[0].reason
