"""Recorded fabrics of 512 hosts × 8 adapters: 12,288 links (read where they lie, not part of the repository)."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from clusterctl.cabling.verify import verify
from clusterctl.formats.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.wiring import decode_plan

SAMPLES = Path(__file__).parents[2].parent / "shared/samples/fabric"
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


def test_six_causes_for_988_lines_in_3_seconds():
    """The broken fabric's causes are found, each once, in less than 3 s of CPU."""
    begin = time.process_time()
    verification = _verify("big.plan.csv.gz", "big.faults.ibnetdiscover.gz")
    assert time.process_time() - begin < 3
    found = {e.action.split(": ")[0] + ": " + e.kind.value: e for e in verification.explanations}
    assert sorted(found) == [
        "T2-P1-S1-R1 ports 11 and 12 (cages 6/1 and 6/2): swapped",
        "T2-P1-S1-R1 ports 37 and 38 (cages 19/1 and 19/2): swapped",
        "T2-P2-S1-R4: island",
        "T4-C03: absent_device",
        "node007 mlx5_0: missing_link",
        "node010: wrong_rail",
    ]
    island = found["T2-P2-S1-R4: island"]
    assert (len(island.nodes), len(island.ports)) == (32, 32)
    assert found["T2-P1-S1-R1 ports 37 and 38 (cages 19/1 and 19/2): swapped"].nodes == ()


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
