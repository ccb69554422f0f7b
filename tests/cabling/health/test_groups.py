"""Bad links that share a rack, a switch, a batch of cables or a firmware have one finding with one cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.cabling.health.groups import Shared, batch_of, ungrouped
from clusterctl.cabling.health.judge import FabricHealth, judge_health
from clusterctl.cabling.health.symptoms import HealthKind, HealthWindow
from clusterctl.fleet.fabric.telemetry import HIGHEST, PortCounters, Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Location
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from tests.cabling.burn.tree import Tree

LIMITS = shipped_fabric_limits("ndr")
TREE = Tree(leaves=6, hosts=6)
FABRIC: Fabric = TREE.fabric()
"""72 links; rack B0n has leaf n with its six hosts, the spines are in rack C01."""
PORTS = [end for link in FABRIC.links for end in (link.a, link.b)]
NAMES = fabric_labels(FABRIC, None)
RACKS = {
    **{f"leaf-{leaf}": f"B0{leaf}" for leaf in range(6)},
    **{f"node{host}": f"B0{host // 6}" for host in range(36)},
    **{f"spine-{spine}": "C01" for spine in range(6)},
}
PLAN = WiringPlan(
    tuple(PlannedCable(NAMES.name(link.a), NAMES.name(link.b)) for link in FABRIC.links),
    frozenset(f"node{host}" for host in range(36)),
    locations={device: Location(rack, 1) for device, rack in RACKS.items()},
)
IDLE, BUSY = 0, 10**13
"""Words of 4 bytes in 720 s: nothing, and 444 Gb/s."""


def rack_of(port: PortId) -> str:
    return RACKS[NAMES.name(port).device]


def judge(
    added: Mapping[PortId, Mapping[str, int]],
    modules: Callable[[PortId], Transceiver | None] = lambda _port: None,
    words: int | None = None,
) -> FabricHealth:
    traffic = {} if words is None else {"PortXmitData": words, "PortRcvData": words}
    zero = dict.fromkeys((*HIGHEST, *traffic), 0)

    def telemetry(counts: Mapping[PortId, Mapping[str, int]], passed: Mapping[str, int]) -> Telemetry:
        counters = {port: PortCounters({**zero, **passed, **counts.get(port, {})}, narrow=False) for port in PORTS}
        return Telemetry(counters, transceivers={p: m for p in PORTS if (m := modules(p)) is not None})

    window = HealthWindow(telemetry({}, {}), telemetry(added, traffic), 720.0, LIMITS)
    return judge_health(FABRIC, window, fabric_labels(FABRIC, PLAN))


def dirty(ports: Iterable[PortId]) -> dict[PortId, dict[str, int]]:
    return {port: {"SymbolErrorCounter": 200} for port in ports}


def test_a_hot_rack_is_one_finding_with_the_share_of_its_modules_and_the_traffic():
    """Rack B02 has 18 of 144 modules: 6 hosts, 12 ports of the leaf; two of them are cool."""
    in_rack = [port for port in PORTS if rack_of(port) == "B02"]
    cool = set(in_rack[:2])

    def module(port: PortId) -> Transceiver:
        return Transceiver(temperature_c=76.0 if port in in_rack and port not in cool else 48.0)

    health = judge({}, module, IDLE)
    (group,) = health.groups
    assert (group.kind, group.shared, group.value, group.rack) == (HealthKind.OVERHEATED, Shared.RACK, "B02", "B02")
    assert (group.count, group.population) == (len(in_rack) - 2, len(in_rack)) == (16, 18)
    assert group.cause == "16 of 18 modules in rack B02 are above 70 °C without traffic"
    assert group.action.startswith("check airflow, blanking panels")
    assert list(ungrouped(health.findings, health.groups)) == []
    assert "under load" in judge({}, module, BUSY).groups[0].cause
    assert judge({}, module).groups[0].cause.endswith("above 70 °C"), "no traffic was read: nothing is claimed"


def test_links_of_one_switch_with_errors_are_one_finding_and_another_bad_link_is_its_own():
    spine = TREE.spine(3)
    bad = [port for port in PORTS if port.guid == spine]
    other = next(port for port in PORTS if port.guid == TREE.leaf(0) and port.number == 1)
    health = judge(dirty([*bad, other]))
    (group,) = health.groups
    assert (group.shared, group.value, group.count, group.population) == (Shared.SWITCH, "spine-3", 6, 6)
    assert group.cause == "6 of 6 links at spine-3 have too many bit errors in 12 min"
    assert group.verdict is Verdict.FAIL
    (single,) = ungrouped(health.findings, health.groups)
    assert "leaf-0 port 1" in single.subjects
    assert health.bad == 7, "the links themselves are counted as before"


def serial(port: PortId, batch: Iterable[PortId]) -> Transceiver:
    """Every other cable is of week 22/43 or 23/10; both ends of a cable have its serial."""
    number = next(n for n, link in enumerate(FABRIC.links) if port in (link.a, link.b))
    return Transceiver(part="MCP4Y10", serial=f"{'MT2243' if port in batch else 'MT2310'}VS{number:05}")


def test_a_batch_of_cables_all_over_the_fabric_is_found_by_its_serials():
    batch = [end for link in FABRIC.links[::9] for end in (link.a, link.b)]
    health = judge(dirty(batch[::2]), lambda port: serial(port, batch))
    (group,) = health.groups
    assert (group.shared, group.value) == (Shared.BATCH, "MCP4Y10 MT2243")
    assert (group.count, group.population) == (8, 8)
    member = group.members[0]
    assert {number for _, _, number in member.modules} == {"MT2243VS00000"}
    assert member.action.endswith("MCP4Y10 serial MT2243VS00000 (cable)")


def test_a_firmware_of_modules_is_found():
    old = [end for link in FABRIC.links[::8] for end in (link.a, link.b)]
    health = judge(
        dirty(old[::2]), lambda port: Transceiver(part="MMA4Z00", firmware="46.100" if port in old else "46.120")
    )
    groups = [group for group in health.groups if group.kind is HealthKind.BIT_ERRORS]
    assert [(group.shared, group.value, group.count) for group in groups] == [(Shared.FIRMWARE, "46.100 (MMA4Z00)", 9)]


def test_what_is_shared_by_the_same_members_is_named_too():
    """The whole batch is in one rack: heat is blamed on the rack, and the batch is not hidden."""
    in_rack = [port for port in PORTS if rack_of(port) == "B04"]

    def module(port: PortId) -> Transceiver:
        return Transceiver(
            part="MMA4Z00",
            serial=f"{'MT2243' if port in in_rack else 'MT2310'}VS00001",
            temperature_c=75.0 if port in in_rack else 50.0,
        )

    (group,) = judge({}, module).groups
    assert (group.shared, group.value) == (Shared.RACK, "B04")
    assert "share cable batch MMA4Z00 MT2243" in group.cause


@pytest.mark.parametrize(
    "bad",
    [
        [port for port in PORTS if port.guid == TREE.spine(1)][:2],
        [port for port in PORTS if port.guid == TREE.leaf(1)][:5],
        [link.a for link in FABRIC.links],
    ],
    ids=["two links are no group", "5 of 12 ports are the lesser part", "what all links share explains nothing"],
)
def test_chance_is_no_group(bad):
    """Each link is its own finding."""
    health = judge(dirty(bad))
    assert health.groups == ()
    assert len(list(ungrouped(health.findings, health.groups))) == len(health.findings)


@pytest.mark.parametrize(
    ("downs", "flaps"),
    [((1, 1, 1), 0), ((2, 1, 2), 0), ((1, 1, 0), 2), ((9, 1, 1), 3)],
    ids=["a restart", "two restarts, one counted once", "two of three links", "one link much oftener"],
)
def test_links_of_a_host_that_was_restarted_are_no_flaps(downs, flaps):
    """The host has three adapters, which keep their counters over a restart; both ends count each time."""
    devices, links = dict(FABRIC.devices), []
    for link in FABRIC.links:
        ends = [NAMES.name(end).device for end in (link.a, link.b)]
        links.append(link)
        for number in (0, 1, 2):
            if f"node{number}" in ends:
                own = next(end for end in (link.a, link.b) if NAMES.name(end).device == f"node{number}")
                devices[own.guid] = replace(devices[own.guid], description=f"host mlx5_{number}")
    fabric = Fabric(devices, tuple(links))
    labels = fabric_labels(fabric, None)
    own_links = [link for link in links if any(labels.name(end).device == "host" for end in (link.a, link.b))]
    assert len(own_links) == 3
    zero = dict.fromkeys(HIGHEST, 0)
    added = {end: n for link, n in zip(own_links, downs, strict=True) for end in (link.a, link.b)}
    counters = {port: PortCounters({**zero, "LinkDownedCounter": added.get(port, 0)}) for port in PORTS}
    before = Telemetry({port: PortCounters(zero) for port in PORTS})
    health = judge_health(fabric, HealthWindow(before, Telemetry(counters), 720.0, LIMITS), labels)
    found = [one.kind for one in health.findings]
    assert found.count(HealthKind.FLAPPING) == health.bad == flaps
    if not flaps:
        assert found == [HealthKind.WENT_DOWN] * 3
        assert "as often as all 3 links of host: it was restarted" in health.findings[0].cause


@given(st.sets(st.sampled_from(range(len(FABRIC.links))), max_size=20))
@settings(max_examples=25, deadline=None)
def test_no_bad_link_is_lost_or_in_two_groups(numbers):
    health = judge(dirty(FABRIC.links[number].a for number in numbers))
    members = [id(member) for group in health.groups for member in group.members]
    assert len(members) == len(set(members))
    assert len(members) + len(list(ungrouped(health.findings, health.groups))) == len(health.findings)
    assert health.bad == len(numbers)


def test_only_a_dated_serial_names_a_batch():
    assert batch_of(Transceiver(part="MMA4Z00-NS", serial="MT2243VS01234")) == "MMA4Z00-NS MT2243"
    assert batch_of(Transceiver(part="X", serial="7A0012345")) == ""
    assert batch_of(Transceiver()) == ""
    assert PortName("node0", "mlx5_0") == NAMES.name(PortId(TREE.adapter(0), 1))
