"""Links are judged by what their counters gather between two readings, never by what stands in them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.health.counters import growth, throughput_gbps
from clusterctl.cabling.health.findings import fabric_labels, port_rates, still_bad
from clusterctl.cabling.health.judge import FabricHealth, judge_health
from clusterctl.cabling.health.symptoms import HealthKind, HealthWindow
from clusterctl.fleet.fabric.telemetry import HIGHEST, ErrorRates, PortCounters, Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid, Location
from clusterctl.fleet.payloads.hardware import BadLinks
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from tests.cabling.burn.tree import Tree
from tests.formats.infiniband.printers import two_switches

FABRIC = two_switches()
HOST_LINK = FABRIC.links[0]
LEAF, HOST = HOST_LINK.a, HOST_LINK.b
LIMITS = shipped_fabric_limits("ndr")
ENDS = [end for link in FABRIC.links for end in (link.a, link.b)]
OLD = dict.fromkeys(HIGHEST, 7)
"""What stands in every counter from before."""


def reading(added: dict[PortId, dict[str, int]] | None = None, **parts) -> Telemetry:
    """All ports, with `added` on top of the old counts."""
    counters = {
        end: PortCounters({name: count + (added or {}).get(end, {}).get(name, 0) for name, count in OLD.items()})
        for end in ENDS
    }
    return Telemetry(**{"counters": counters, **parts})


def judge(after: Telemetry, *, seconds: float = 720, before: Telemetry | None = None, **others) -> FabricHealth:
    fabric = others.pop("fabric", FABRIC)
    places = fabric_labels(fabric, others.pop("plan", None))
    return judge_health(fabric, HealthWindow(before or reading(), after, seconds, LIMITS), places, **others)


def kinds(health: FabricHealth) -> list[tuple[HealthKind, Verdict]]:
    return [(finding.kind, finding.verdict) for finding in health.findings]


def test_old_counts_are_nobodys_fault():
    """Counters that are not zero and do not move prove a link healthy, after 12 minutes to 1e-14, after 125 to 1e-15."""
    health = judge(reading())
    assert (health.findings, health.verdict, health.proven, health.bad) == ((), Verdict.PASS, len(FABRIC.links), 0)
    assert health.proven_ber == 1e-14
    assert judge(reading(), seconds=7500).proven_ber == 1e-15


@pytest.mark.parametrize(
    ("errors", "seconds", "found"),
    [
        (2, 720, []),
        (3, 720, [(HealthKind.BIT_ERRORS, Verdict.FAIL)]),
        (4, 7500, [(HealthKind.BIT_ERRORS, Verdict.WARN)]),
        (3, 7500, []),
        (30, 7500, [(HealthKind.BIT_ERRORS, Verdict.WARN)]),
        (31, 7500, [(HealthKind.BIT_ERRORS, Verdict.FAIL)]),
    ],
)
def test_symbol_errors_at_ndr(errors, seconds, found):
    """More than 2.88 errors in 12 minutes fail, more than 3 in 125 minutes warn, by the rate of 400 Gb/s."""
    assert kinds(judge(reading({HOST: {"SymbolErrorCounter": errors}}), seconds=seconds)) == found


def test_a_short_look_certifies_nothing():
    """Below 12 minutes a quiet link is not proven, and one with too many errors for all of them fails already."""
    quiet = judge(reading(), seconds=60)
    assert kinds(quiet) == [(HealthKind.UNMEASURED, Verdict.INCONCLUSIVE)]
    assert (quiet.proven, quiet.proven_ber, quiet.findings[0].links) == (0, None, len(FABRIC.links))
    assert "60 s are too short" in quiet.findings[0].cause
    loud = judge(reading({HOST: {"SymbolErrorCounter": 3}}), seconds=60)
    assert (HealthKind.BIT_ERRORS, Verdict.FAIL) in kinds(loud)
    assert loud.findings[-1].links == len(FABRIC.links) - 1


def test_slow_links_take_longer():
    """At a quarter of the rate it takes four times as long to prove the same bit error rate."""
    fabric = replace(FABRIC, links=tuple(replace(link, width=1) for link in FABRIC.links))
    assert kinds(judge(reading(), fabric=fabric)) == [(HealthKind.UNMEASURED, Verdict.INCONCLUSIVE)]
    assert judge(reading(), fabric=fabric, seconds=2880).verdict is Verdict.PASS


def test_one_finding_for_a_link():
    """All that ails a link is one finding with both ends, worst first, the counters of both as data."""
    added = {LEAF: {"SymbolErrorCounter": 120, "LinkDownedCounter": 6}, HOST: {"PortRcvErrors": 33}}
    (finding,) = judge(reading(added)).findings
    assert finding.kind is HealthKind.BIT_ERRORS
    assert finding.ends == (PortName("node001", "mlx5_0"), PortName("leaf-1", "1"))
    assert "120 symbol errors at leaf-1 port 1 in 12 min" in finding.cause
    assert "in addition to PortRcvErrors +33 at node001 mlx5_0" in finding.cause
    assert finding.action.startswith("node001 mlx5_0: clean and reseat both ends of the cable to leaf-1 port 1")
    assert set(finding.counters) == {
        (PortName("leaf-1", "1"), "SymbolErrorCounter", 120),
        (PortName("leaf-1", "1"), "LinkDownedCounter", 6),
        (PortName("node001", "mlx5_0"), "PortRcvErrors", 33),
    }


def test_flaps_count_at_both_ends():
    """LinkDowned that rises at both ends is a flap; at one end only the other device was restarted, a warning."""
    both = judge(reading({LEAF: {"LinkDownedCounter": 1}, HOST: {"LinkDownedCounter": 1}}))
    assert kinds(both) == [(HealthKind.FLAPPING, Verdict.FAIL)]
    one = judge(reading({LEAF: {"LinkDownedCounter": 1}}))
    assert kinds(one) == [(HealthKind.WENT_DOWN, Verdict.WARN)]
    assert (one.bad, one.proven, one.verdict) == (0, len(FABRIC.links), Verdict.WARN)


@pytest.mark.parametrize(
    ("counter", "within", "beyond", "kind"),
    [
        ("PortRcvErrors", 7200, 7201, HealthKind.PACKET_ERRORS),
        ("LinkErrorRecoveryCounter", 60, 61, HealthKind.PACKET_ERRORS),
        ("LocalLinkIntegrityErrors", 0, 1, HealthKind.PACKET_ERRORS),
        ("ExcessiveBufferOverrunErrors", 0, 1, HealthKind.PACKET_ERRORS),
        ("PortXmitDiscards", 720, 721, HealthKind.CONGESTED),
    ],
)
def test_rates_in_twelve_minutes(counter, within, beyond, kind):
    """Each counter may grow up to its limit, in either direction; congestion is a warning, for no cable is at fault."""
    for port in (LEAF, HOST):
        assert judge(reading({port: {counter: within}})).findings == ()
        ((found, verdict),) = kinds(judge(reading({port: {counter: beyond}})))
        assert (found, verdict is Verdict.WARN) == (kind, kind is HealthKind.CONGESTED)


def test_cleared_counters_prove_nothing():
    """A counter that fell was cleared: not proven; what has come together since then may still be too much."""
    cleared = replace(reading(), counters={**reading().counters, HOST: PortCounters(dict.fromkeys(HIGHEST, 0))})
    (finding,) = judge(cleared).findings
    assert (finding.kind, finding.links) == (HealthKind.UNMEASURED, 1)
    assert "were cleared in between" in finding.cause
    loud = PortCounters({**dict.fromkeys(HIGHEST, 0), "SymbolErrorCounter": 5})
    assert kinds(judge(replace(cleared, counters={**cleared.counters, HOST: loud}))) == [
        (HealthKind.BIT_ERRORS, Verdict.FAIL)
    ]


def test_full_and_unread_counters_prove_nothing():
    """A counter at its highest value counts no further; a port that was read once, or not at all, is not proven."""
    full = PortCounters({**OLD, "SymbolErrorCounter": 0xFFFF})
    stuck = Telemetry({**reading().counters, HOST: full})
    (finding,) = judge(stuck, before=stuck).findings
    assert "are at their maximum" in finding.cause
    absent = Telemetry({end: found for end, found in reading().counters.items() if end != HOST})
    (finding,) = judge(absent).findings
    assert "were not read twice" in finding.cause
    nothing = judge(Telemetry(), before=Telemetry())
    assert (nothing.verdict, nothing.proven) == (Verdict.INCONCLUSIVE, 0)
    assert "error counters" in nothing.not_measured


@settings(deadline=None)
@given(before=st.integers(0, 2**64 - 1), added=st.integers(0, 2**40))
def test_growth_of_wide_counters(before, added):
    """64-bit counters that wrap are followed: the result is what was added."""
    first, last = (PortCounters({"PortRcvErrors": value % 2**64}, narrow=False) for value in (before, before + added))
    grown = growth(first, last)
    if not last.stopped("PortRcvErrors"):
        assert (grown.of("PortRcvErrors"), grown.doubts.get("PortRcvErrors")) == (added, None)


def test_throughput_by_direction():
    """PortXmitData counts words of four bytes; a direction that was not read has no rate."""
    first = PortCounters({"PortXmitData": 0}, narrow=False)
    last = PortCounters({"PortXmitData": 12_500_000_000}, narrow=False)
    assert throughput_gbps(growth(first, last), 1) == (400, None)


def transceiver(temperature: float | None, part: str = "MMA4Z00", firmware: str = "1.2.3") -> Transceiver:
    return Transceiver(part=part, firmware=firmware, temperature_c=temperature)


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        (69, 70, []),
        (69, 71, [(HealthKind.OVERHEATED, Verdict.FAIL)]),
        (40, 50, []),
        (40, 51, [(HealthKind.WARMING, Verdict.FAIL)]),
        (None, 60, []),
    ],
)
def test_temperature_of_transceivers(then, now, found):
    """Above 70 °C, or more than 10 °C hotter than before."""
    before, after = ({LEAF: transceiver(value)} for value in (then, now))
    assert kinds(judge(reading(transceivers=after), before=reading(transceivers=before))) == found


def test_hot_chips():
    """A switch or adapter that is too hot is a finding of its own, and no link's."""
    for then, now, kind in ((69, 71, HealthKind.OVERHEATED), (40, 55, HealthKind.WARMING)):
        health = judge(reading(temperatures={LEAF.guid: now}), before=reading(temperatures={LEAF.guid: then}))
        assert kinds(health) == [(kind, Verdict.FAIL)]
        assert (health.findings[0].devices, health.bad) == (("leaf-1",), 0)
    assert judge(reading(temperatures={LEAF.guid: 70})).findings == ()


def test_hot_chips_have_a_place():
    """As its label calls it, whatever it calls itself, in the rack that the plan names."""
    leaf = replace(FABRIC.devices[LEAF.guid], description="MF0;leaf-1:MQM9700/U1")
    fabric = replace(FABRIC, devices={**FABRIC.devices, LEAF.guid: leaf})
    cables = (PlannedCable(PortName("leaf-1", "1"), PortName("node001", "mlx5_0")),)
    plan = WiringPlan(cables, frozenset({"node001"}), {"node001": Location("B02", 4), "leaf-1": Location("C01", 40)})
    hot = judge(reading(temperatures={LEAF.guid: 80, HOST.guid: 90}), fabric=fabric, plan=plan)
    assert [(f.devices, f.rack) for f in hot.findings] == [(("node001 mlx5_0",), "B02"), (("leaf-1",), "C01")]
    assert hot.findings[1].action.startswith("rack C01 U40 leaf-1: check its fans")


def test_rates_of_every_port():
    """By direction; a port that was not read twice has none, and errors are per second."""
    first = reading()
    wide = PortCounters({**OLD, "PortXmitData": 9_000_000_000, "PortRcvData": 0, "PortRcvErrors": 27}, narrow=False)
    zero = PortCounters({**OLD, "PortXmitData": 0, "PortRcvData": 0}, narrow=False)
    window = HealthWindow(
        replace(first, counters={**first.counters, HOST: zero}),
        replace(first, counters={**first.counters, HOST: wide}),
        10,
        LIMITS,
    )
    rates = {rate.port: rate for rate in port_rates(FABRIC, window, fabric_labels(FABRIC))}
    assert len(rates) == len(ENDS)
    host, leaf = rates[PortName("node001", "mlx5_0")], rates[PortName("leaf-1", "1")]
    assert (host.gbps, host.sent_gbps, host.received_gbps, host.errors) == (400, 28.8, 0, {"PortRcvErrors": 2})
    assert (leaf.sent_gbps, leaf.received_gbps, leaf.errors) == (None, None, {})


def test_effective_bit_error_rate():
    """A port that reports more than 1e-12 after error correction is bad."""
    for effective, found in ((1e-12, []), (2e-12, [(HealthKind.BIT_ERRORS, Verdict.FAIL)]), (None, [])):
        assert kinds(judge(reading(error_rates={LEAF: ErrorRates(effective=effective)}))) == found


def test_half_updated_fleet():
    """The odd ones out are named by model; with no version in the majority all are, and the operator has to decide."""
    guids = [guid for guid, device in FABRIC.devices.items() if device.description.startswith("node")]
    firmware = dict.fromkeys(guids, "28.39.1002") | {guids[0]: "28.35.2000"}
    (finding,) = judge(reading(firmware=firmware)).findings
    assert (finding.kind, finding.verdict, finding.devices) == (
        HealthKind.MIXED_FIRMWARE,
        Verdict.WARN,
        ("node001 mlx5_0",),
    )
    assert "3 × 28.39.1002, 1 × 28.35.2000" in finding.cause
    assert finding.action == "node001 mlx5_0: install 28.39.1002"
    (tie,) = judge(reading(firmware={guids[0]: "1.0", guids[1]: "2.0"})).findings
    assert len(tie.devices) == 2
    assert "choose one version" in tie.action
    modules = {LEAF: transceiver(None), HOST: transceiver(None, firmware="9")}
    (finding,) = judge(reading(transceivers=modules)).findings
    assert finding.cause.startswith("transceivers MMA4Z00 run 2")


def test_links_that_are_gone():
    """A link of the first reading that the second has not is missed."""
    fabric = Fabric(FABRIC.devices, FABRIC.links[1:])
    health = judge(reading(), fabric=fabric, earlier=FABRIC)
    assert kinds(health) == [(HealthKind.LOST, Verdict.FAIL)]
    assert (health.links, health.bad) == (len(FABRIC.links), 1)


def test_a_switch_that_is_gone_is_one_finding_with_its_name_and_no_bad_links():
    """Five of twenty links are more than a tenth; a link between two lost switches counts once."""
    tree = Tree(leaves=5, hosts=4)
    earlier = tree.fabric()

    def without(*gone: Guid) -> FabricHealth:
        links = tuple(link for link in earlier.links if not {link.a.guid, link.b.guid} & {*gone})
        fabric = Fabric({guid: one for guid, one in earlier.devices.items() if guid not in gone}, links)
        quiet = Telemetry({end: PortCounters(OLD) for link in links for end in (link.a, link.b)})
        window = HealthWindow(quiet, quiet, 3600.0, LIMITS)
        return judge_health(fabric, window, fabric_labels(fabric), earlier)

    health = without(tree.spine(1))
    (finding,) = [one for one in health.findings if one.verdict is Verdict.FAIL]
    assert (finding.kind, finding.subjects, finding.links) == (HealthKind.SWITCH_LOST, ("spine-1",), 5)
    assert "the switch spine-1 was in the fabric" in finding.cause
    assert (health.links, health.proven, health.bad, health.stop) == (40, 35, 0, None)
    two = [one for one in without(tree.spine(1), tree.leaf(0)).findings if one.kind is HealthKind.SWITCH_LOST]
    assert sum(one.links for one in two) == 5 + 8 - 1


def test_stop_beyond_ten_percent():
    """With more than a tenth of the fabric broken no cable work is ordered before the whole is inspected."""
    wide = two_switches()
    links = [replace(FABRIC.links[0], a=PortId(LEAF.guid, 100 + n), b=PortId(HOST.guid, 100 + n)) for n in range(20)]
    fabric = Fabric(wide.devices, tuple(links))
    quiet = {end: PortCounters(OLD) for link in links for end in (link.a, link.b)}
    ill = PortCounters({**OLD, "SymbolErrorCounter": 500})
    for bad, stopped in ((2, False), (3, True)):
        after = Telemetry(quiet | {link.a: ill for link in links[:bad]})
        health = judge(after, before=Telemetry(quiet), fabric=fabric)
        assert (health.bad, bool(health.stop)) == (bad, stopped)


def test_grouped_by_rack():
    """With a plan that knows racks, work is listed rack by rack, and the action begins with the place."""
    cables = tuple(PlannedCable(PortName("leaf-1", str(n)), PortName(f"node00{n}", "mlx5_0")) for n in (1, 2))
    plan = WiringPlan(
        cables, frozenset({"node001", "node002"}), {"node001": Location("B02", 4), "node002": Location("A01", 9)}
    )
    added = {FABRIC.links[n].b: {"SymbolErrorCounter": 50} for n in (0, 1, 4)}
    findings = judge(reading(added), plan=plan).findings
    assert [finding.rack for finding in findings] == ["A01", "B02", ""]
    assert findings[0].action.startswith("rack A01 U9 node002 mlx5_0: ")


def test_a_full_counter_keeps_a_bad_link_bad():
    """A counter at its maximum proves nothing by itself; of a link that was bad before, it is no all-clear."""
    full = reading({LEAF: {"SymbolErrorCounter": 0xFFFF - 7}})
    window, places = HealthWindow(full, full, 720, LIMITS), fabric_labels(FABRIC)
    ends = tuple(map(places.plain, (LEAF, HOST)))
    other = tuple(map(places.plain, ENDS[2:4]))

    def again(kind: str, verdict: str, ends: tuple[str, ...]) -> FabricHealth:
        before = [BadLinks(kind=kind, verdict=verdict, cause="", action="", ends=ends)]
        further = still_bad(before, window, FABRIC.links, places)
        return judge_health(FABRIC, window, places, under_load=further)

    assert kinds(again("bit_errors", "fail", ends)) == [(HealthKind.BIT_ERRORS, Verdict.FAIL)]
    for before in (("bit_errors", "warn", ends), ("overheated", "fail", ends), ("bit_errors", "fail", other)):
        assert kinds(again(*before)) == [(HealthKind.UNMEASURED, Verdict.INCONCLUSIVE)]
