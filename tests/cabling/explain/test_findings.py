"""The cabling's findings of each node."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.cabling.explain.findings import findings_by_node
from clusterctl.fleet.finding import Digest, Verdict
from clusterctl.fleet.quantity import Quantity, exactly
from tests.cabling.bench import HOSTS, Bench, port

NODES = [f"node{number:03d}" for number in range(1, HOSTS + 1)]


def verdicts(bench: Bench, node: str, **options) -> dict[str, Verdict]:
    return {f.check: f.verdict for f in findings_by_node(bench.verify(**options), NODES)[node]}


def test_every_link_right():
    """A node whose links are all right passes both checks, and the finding has the number of proven links."""
    findings = findings_by_node(Bench().verify(host_gbps=400.0), NODES, (Digest("abc"),))["node001"]
    assert {f.check: f.verdict for f in findings} == {"cable": Verdict.PASS, "link_rate": Verdict.PASS}
    cable, rate = findings
    assert cable.cause == "2 of 2 planned links proven right"
    assert (rate.measured, rate.expected) == (Quantity(400, "Gb/s"), exactly(400, "Gb/s"))
    assert cable.evidence == (Digest("abc"),)


def test_no_planned_link_is_no_proof():
    """A node that the plan does not mention was not proven: INCONCLUSIVE, never PASS."""
    findings = findings_by_node(Bench().verify(), ["node999"])["node999"]
    assert {f.verdict for f in findings} == {Verdict.INCONCLUSIVE}
    assert {f.check for f in findings} == {"cable", "link_rate"}


def test_a_missing_cable_fails_its_node_only():
    """FAIL with the adapter, the cause and the technician's line; the unmeasured rate is its consequence."""
    bench = Bench()
    bench.unplug(port("node002", "mlx5_1"))
    found = findings_by_node(bench.verify(), NODES)
    cable, rate = found["node002"]
    assert (cable.check, cable.verdict, cable.subject) == ("cable", Verdict.FAIL, "mlx5_1")
    assert cable.remedy.startswith("rack A01 U12 node002")
    assert (rate.verdict, rate.root) == (Verdict.INCONCLUSIVE, "cable:mlx5_1")
    assert all(f.verdict is Verdict.PASS for node in NODES if node != "node002" for f in found[node])


def test_a_missing_cable_in_a_reading_with_warnings_proves_nothing():
    """The tool that read the fabric may not have reached the node: INCONCLUSIVE; a swapped cable is seen all the same."""
    bench = Bench()
    bench.unplug(port("node002", "mlx5_1"))
    bench.rotate(port("leaf-0", 4), port("leaf-0", 5))
    found = findings_by_node(replace(bench.verify(), warnings=("ibwarn: mad_rpc failed",)), NODES)
    assert found["node002"][0].verdict is Verdict.INCONCLUSIVE
    assert found["node004"][0].verdict is Verdict.FAIL


def test_a_swap_fails_both_nodes():
    """Both nodes of a swapped pair are held."""
    bench = Bench()
    bench.rotate(port("leaf-0", 1), port("leaf-0", 2))
    for node in ("node001", "node002"):
        assert verdicts(bench, node)["cable"] is Verdict.FAIL
    assert verdicts(bench, "node003")["cable"] is Verdict.PASS


def test_a_slow_link_fails_the_rate_only():
    """A slow link is in its place: `cable` passes, `link_rate` fails."""
    bench = Bench()
    bench.rates = {port("node004", "mlx5_0"): (4, "HDR")}
    assert verdicts(bench, "node004") == {"cable": Verdict.PASS, "link_rate": Verdict.FAIL}


def test_a_broken_trunk_fails_no_node():
    """What is wrong between switches belongs to the fabric."""
    bench = Bench()
    bench.unplug(port("leaf-0", 33))
    assert all(f.verdict is Verdict.PASS for found in findings_by_node(bench.verify(), NODES).values() for f in found)


def test_an_island_holds_its_hosts():
    """Hosts behind a leaf that is cut off are held, with the leaf as the cause: INCONCLUSIVE, for it is not theirs."""
    bench = Bench()
    for number in range(33, 39):
        bench.unplug(port("leaf-1", number))
    for node in NODES:
        cable = findings_by_node(bench.verify(), NODES)[node][0]
        assert (cable.verdict, cable.deterministic) == (Verdict.INCONCLUSIVE, False)
        assert "leaf-1" in cable.cause
        assert "check power first" in cable.remedy
