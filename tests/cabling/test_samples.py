"""Recorded fabrics of 512 hosts × 8 adapters: 12,288 links (read where they lie, not part of the repository)."""

from __future__ import annotations

import gzip

import pytest

from clusterctl.cabling.explain.explanation import FaultKind
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.cabling.health.judge import judge_health
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.formats.infiniband.fabric_file import decode_fabric, decode_telemetry
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl_burnin.limits.fabric_reading import shipped_fabric_limits
from tests.paths import SHARED

SAMPLES = SHARED / "samples/fabric"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the recorded fabrics are not here")


def _read(name: str) -> bytes:
    data = (SAMPLES / name).read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


def _verify(plan: str, fabric: str):
    return verify(decode_plan(_read(plan), file=plan), parse_ibnetdiscover(_read(fabric).decode(), file=fabric))


@pytest.mark.parametrize(
    ("name", "devices", "links", "cables"),
    [
        ("real.458hosts-storage.ibnetdiscover.gz", 1407, 3286, 3286),
        ("real.small.ibnetdiscover", 15, 16, 15),
        ("big.good.ibnetdiscover.gz", 4416, 12288, 12288),
        ("small.good.ibnetdiscover", 6, 6, 6),
    ],
)
def test_captures_parse_without_loss(name, devices, links, cables):
    """Every device header and every pair of port lines of a capture is in the parsed fabric."""
    text = _read(name).decode()
    fabric = parse_ibnetdiscover(text)
    assert (len(fabric.devices), len(fabric.links), len(fabric.cables())) == (devices, links, cables)
    assert sum(line.startswith("[") for line in text.splitlines()) == 2 * links


@pytest.mark.parametrize(
    ("plan", "fabric"),
    [("big.plan.csv.gz", "big.good.ibnetdiscover.gz"), ("small.plan.topo", "small.good.ibnetdiscover")],
)
def test_good_fabrics_are_silent(plan, fabric):
    """A fabric that is as planned gives no explanation."""
    verification = _verify(plan, fabric)
    assert verification.explanations == ()
    assert verification.right == verification.planned


def test_six_causes_for_988_lines():
    """The broken fabric's causes are found, each once (`benchmarks.cable_verify` times larger ones)."""
    verification = _verify("big.plan.csv.gz", "big.faults.ibnetdiscover.gz")
    found = {f"{e.action.split(', or')[0]}: {e.kind.value}" for e in verification.explanations}
    assert sorted(found) == [
        "T2-P1-S1-R1: swap the cables in cages 19/1 and 19/2 (ports 37 and 38): swapped",
        "T2-P1-S1-R1: swap the cables in cages 6/1 and 6/2 (ports 11 and 12): swapped",
        "T2-P2-S1-R4: check power first, then the cables in ports 33–64: island",
        "T4-C03: check power first, then the cables in ports 1–64: absent_device",
        "node007 mlx5_0: plug in the cable to T2-P1-S1-R1 port 7 (cage 4/1): missing_link",
        "node010: swap the cables in mlx5_0 and mlx5_1: wrong_rail",
    ]
    island = next(e for e in verification.explanations if e.kind is FaultKind.ISLAND)
    assert (len(island.nodes), len(island.ports), island.links) == (32, 32, 64)
    assert sum(e.links for e in verification.explanations) == verification.planned - verification.right
    assert verification.moves == 9


def test_topo_finds_the_same_causes():
    """The same plan as a .topo gives as many causes and as many right cables."""
    by_csv = _verify("big.plan.csv.gz", "big.faults.ibnetdiscover.gz")
    by_topo = _verify("big.plan.topo.gz", "big.faults.ibnetdiscover.gz")
    assert (by_topo.right, len(by_topo.explanations)) == (by_csv.right, len(by_csv.explanations))


def test_absent_host_and_cut_trunks():
    """A host that is not there and 20 cut inter-switch cables are 21 causes, and only the host is held."""
    verification = _verify("big.plan.csv.gz", "big.511hosts.cut20.ibnetdiscover.gz")
    assert len(verification.explanations) == 21
    assert {node for e in verification.explanations for node in e.nodes} == {"node512"}


def test_counters_of_the_broken_fabric():
    """The two ports whose counters were set are one bad link, named at both ends; discards of what was unplugged are
    no device's fault.
    """
    name = "big.faults.ibnetdiscover.gz"
    fabric = parse_ibnetdiscover(_read(name).decode(), file=name)
    clean = f"## Summary: {len(fabric.devices)} nodes checked, 0 bad nodes found\n## 24419 ports checked, 0 ports have"
    readings = (clean.encode() + b" errors beyond threshold\n", _read("big.faults.ibqueryerrors"))
    before, after = (decode_telemetry(text, fabric, file="ibqueryerrors") for text in readings)
    health = judge_health(fabric, HealthWindow(before, after, 720, shipped_fabric_limits("ndr")), fabric_labels(fabric))
    (finding,) = health.findings
    assert finding.ends == (PortName("node003", "mlx5_0"), PortName("T2-P1-S1-R1", "3"))
    assert {(str(port), counter, added) for port, counter, added in finding.counters} == {
        ("node003 mlx5_0", "PortRcvErrors", 33),
        ("T2-P1-S1-R1 port 3", "SymbolErrorCounter", 120),
        ("T2-P1-S1-R1 port 3", "LinkDownedCounter", 6),
    }
    assert (health.bad, health.proven, health.stop) == (1, 12158, None)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("small.good.iblinkinfo", "small.good.ibnetdiscover"),
        ("small.good.iblinkinfo-l", "small.good.ibnetdiscover"),
        ("small.good.ibnetdiscover-p", "small.good.ibnetdiscover"),
        ("big.good.iblinkinfo-l.gz", "big.good.ibnetdiscover.gz"),
        ("big.good.ibnetdiscover-p.gz", "big.good.ibnetdiscover.gz"),
        ("big.faults.iblinkinfo-l.gz", "big.faults.ibnetdiscover.gz"),
    ],
)
def test_every_tool_shows_the_same_links(name, same):
    """The same fabric recorded with another tool has the same links, by port GUID, name and rate."""
    found, expected = (decode_fabric((SAMPLES / file).read_bytes(), file=file) for file in (name, same))
    assert _by_port_guid(found) == _by_port_guid(expected)


def test_explained_from_any_tool():
    """The broken fabric's causes are the same six when it was recorded with iblinkinfo."""
    plan = decode_plan(_read("big.plan.csv.gz"), file="plan.csv")
    fabric = decode_fabric((SAMPLES / "big.faults.iblinkinfo-l.gz").read_bytes(), file="iblinkinfo")
    expected = _verify("big.plan.csv.gz", "big.faults.ibnetdiscover.gz").explanations
    assert {(e.kind, e.action) for e in verify(plan, fabric).explanations} == {(e.kind, e.action) for e in expected}


@pytest.mark.parametrize("name", ["big.dupguid.ibnetdiscover.stderr", "big.dupguid.opensm.log"])
def test_duplicate_guids_as_tools_complain_of_them(name):
    """Output in which two devices have the same GUID is refused with the reason."""
    with pytest.raises(ParseError, match="two devices have the same GUID"):
        decode_fabric((SAMPLES / name).read_bytes(), file=name)


def _by_port_guid(fabric: Fabric) -> set[object]:
    def end(port: PortId) -> object:
        device = fabric.devices[port.guid]
        guid = device.port_guids[0] if device.port_guids else device.guid
        return guid, device.kind, device.description, device.lids, port.number

    return {(frozenset(map(end, (link.a, link.b))), link.rate) for link in fabric.links}
