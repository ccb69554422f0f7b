"""What a burn loaded, from counters; and which links stood it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from clusterctl.cabling.burn.verdicts import FLEET_MIN, BurnVerdict, LinkLoad, coverage_from_counters, judge_burn
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.telemetry import PortCounters, Telemetry
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from clusterctl_cli.commands.cable_coverage import coverage
from tests.cabling.burn.tree import Tree, guid

LIMITS = shipped_fabric_limits("ndr")
SECONDS = 100.0
FULL = int(400e9 / 32 * SECONDS)
"""Words of 4 bytes that pass a 4xNDR link in the interval."""


def words(sent: float, received: float, *, start: int = 7) -> tuple[PortCounters, PortCounters]:
    """Two readings of a port that sent and received those shares (%) of its rate."""
    first = PortCounters({"PortXmitData": start, "PortRcvData": start}, narrow=False)
    last = {"PortXmitData": start + int(FULL * sent / 100), "PortRcvData": start + int(FULL * received / 100)}
    return first, PortCounters(last, narrow=False)


def loads_of(
    tree: Tree, shares: dict[PortId, tuple[float, float]], lost: tuple[PortId, ...] = ()
) -> tuple[LinkLoad, ...]:
    """Every port at 96 % both ways, but those in `shares`; nothing of those in `lost`."""
    before, after = {}, {}
    for link in tree.fabric().cables():
        for port in (link.a, link.b):
            if port not in lost:
                before[port], after[port] = words(*shares.get(port, (96, 96)))
    return coverage_from_counters(tree.fabric(), HealthWindow(Telemetry(before), Telemetry(after), SECONDS, LIMITS))


def verdicts(found: BurnVerdict) -> dict[tuple[PortId, PortId], Verdict]:
    return {
        (one.load.source, one.load.target): one.verdict for one in found.directions if one.verdict is not Verdict.PASS
    }


def test_shares_by_direction():
    """What a port sends is its own direction; where a port was not read, its peer's received data count."""
    tree = Tree()
    link = tree.fabric().links[0]
    loads = loads_of(tree, {link.a: (50, 20), link.b: (20, 50)})
    assert [(one.source, round(one.share or 0)) for one in loads[:2]] == [(link.a, 50), (link.b, 20)]
    (first, second, *_) = loads_of(tree, {link.b: (20, 50)}, lost=(link.a,))
    assert (round(first.share or 0), round(second.share or 0)) == (50, 20)
    assert [one.share for one in loads_of(tree, {}, lost=(link.a, link.b))[:2]] == [None, None]


def test_all_stood_it():
    """96 % both ways everywhere: all pass, none reaches the goal of 97 %, and no host fails for that."""
    found = judge_burn(loads_of(Tree(), {}), LIMITS)
    assert (found.verdict, found.loaded, found.at_goal) == (Verdict.PASS, 64, 0)


def test_slow_idle_and_unmeasured_directions():
    """Below the limit: FAIL; no load: INCONCLUSIVE, as is what was not measured; only those directions."""
    tree = Tree()
    slow, idle, lost = (tree.fabric().links[n] for n in (0, 5, 9))
    shares = {slow.a: (88, 96), slow.b: (96, 88), idle.a: (0, 96), idle.b: (96, 0)}
    found = judge_burn(loads_of(tree, shares, lost=(lost.a, lost.b)), LIMITS)
    assert verdicts(found) == {
        (slow.a, slow.b): Verdict.FAIL,
        (idle.a, idle.b): Verdict.INCONCLUSIVE,
        (lost.a, lost.b): Verdict.INCONCLUSIVE,
        (lost.b, lost.a): Verdict.INCONCLUSIVE,
    }
    assert found.verdict is Verdict.FAIL
    assert found.loaded == 61


def test_one_way_has_its_own_limit():
    """92 % is healthy while both directions are loaded, and not where only one is."""
    tree = Tree()
    link = tree.fabric().links[0]
    both = judge_burn(loads_of(tree, {link.a: (92, 92), link.b: (92, 92)}), LIMITS)
    assert Verdict.FAIL not in verdicts(both).values()
    one = judge_burn(loads_of(tree, {link.a: (92, 0), link.b: (0, 92)}), LIMITS)
    assert verdicts(one)[link.a, link.b] is Verdict.FAIL


def test_a_link_is_compared_with_the_fleet():
    """Within the limit but far below the others: a warning. With fewer than 20 of a kind no host is compared."""
    loads = [LinkLoad(PortId(guid(n), 1), PortId(guid(n), 2), 400, 96.5 + n % 3 / 10) for n in range(FLEET_MIN)]
    back = [LinkLoad(one.target, one.source, 400, one.share) for one in loads]
    odd = (
        LinkLoad(PortId(guid(99), 1), PortId(guid(99), 2), 400, 91.0),
        LinkLoad(PortId(guid(99), 2), PortId(guid(99), 1), 400, 96.5),
    )
    found = judge_burn([*loads, *back, *odd], LIMITS)
    assert verdicts(found) == {(odd[0].source, odd[0].target): Verdict.WARN}
    few = judge_burn([*loads[:8], *back[:8], *odd], LIMITS)
    assert (few.usual, verdicts(few)) == ({}, {})


def test_half_the_fleet_ill_does_not_hide_it():
    """A low median lowers no limit."""
    loads = [LinkLoad(PortId(guid(n), way), PortId(guid(n), 3 - way), 400, 80.0) for n in range(30) for way in (1, 2)]
    assert judge_burn(loads, LIMITS).verdict is Verdict.FAIL


def test_nothing_measured_is_not_healthy():
    """No link, no verdict."""
    assert judge_burn((), LIMITS).verdict is Verdict.INCONCLUSIVE


NET = """\
vendid=0x2c9
switchguid=0x100(100)
Switch\t4 "S-0000000000000100"\t\t# "leaf-1" enhanced port 0 lid 1 lmc 0
[1]\t"H-0000000000001000"[1](1001)\t\t# "node1 mlx5_0" lid 2 4xNDR

vendid=0x2c9
caguid=0x1000
Ca\t1 "H-0000000000001000"\t\t# "node1 mlx5_0"
[1](1001)\t"S-0000000000000100"[1]\t\t# lid 2 lmc 0 "leaf-1" lid 1 4xNDR
"""


def perfquery(minute: int, lid: int, sent: int, received: int) -> str:
    return (
        f"# 2026-01-31T08:{minute:02d}:00Z\n"
        f"# Port extended counters: Lid {lid} port 1 (CapMask: 0x5A00 CapMask2: 0x0000002)\n"
        "PortSelect:......................1\nCounterSelect:...................0x0000\n"
        f"PortXmitData:....................{sent}\nPortRcvData:.....................{received}\n"
        "PortXmitPkts:....................9\nPortRcvPkts:.....................9\n"
        "PortUnicastXmitPkts:.............9\nPortUnicastRcvPkts:..............9\n"
        "PortMulticastXmitPkts:...........0\nPortMulticastRcvPkts:............0\n"
    )


def test_command(tmp_path):
    """The command: verdict by direction in the document, exit code 1 where one was not loaded."""
    (tmp_path / "fabric").write_text(NET)
    minute = int(400e9 / 32 * 60)
    (tmp_path / "before").write_text(perfquery(0, 1, 0, 0))
    (tmp_path / "after").write_text(perfquery(1, 1, int(minute * 0.98), 0))
    options = [f"--{name}={tmp_path / name}" for name in ("before", "after", "fabric")]
    result = CliRunner().invoke(coverage, [*options, "--json"])
    assert result.exit_code == 1, result.exception
    found = json.loads(result.stdout)
    assert (found["directions"], found["loaded"], found["at_goal"], found["seconds"]) == (2, 1, 1, 60)
    assert [(one["from"], one["to"], one["verdict"]) for one in found["links"]] == [
        ("leaf-1 port 1", "node1 mlx5_0", "pass"),
        ("node1 mlx5_0", "leaf-1 port 1", "inconclusive"),
    ]
    people = CliRunner().invoke(coverage, options)
    assert "INCONCLUSIVE node1 mlx5_0 → leaf-1 port 1: no flow went over it (0.0 % of its rate)" in people.stdout
    assert "1 of 2 directions were loaded, 1 reached the goal of 97 %" in people.stdout


@pytest.mark.parametrize("name", ["before", "after", "fabric"])
def test_bad_input(tmp_path, name):
    """A file that is not what it should be is wrong usage."""
    (tmp_path / "fabric").write_text(NET)
    (tmp_path / "before").write_text(perfquery(0, 1, 0, 0))
    (tmp_path / "after").write_text(perfquery(1, 1, 5, 5))
    (tmp_path / name).write_text("nonsense\n")
    options = [f"--{one}={tmp_path / one}" for one in ("before", "after", "fabric")]
    assert isinstance(CliRunner().invoke(coverage, options).exception, UsageError)


def test_more_than_a_link_can_carry_proves_nothing():
    tree = Tree()
    link = tree.fabric().links[0]
    found = verdicts(judge_burn(loads_of(tree, {link.a: (240, 96)}), LIMITS))
    assert found == {(link.a, link.b): Verdict.INCONCLUSIVE}
