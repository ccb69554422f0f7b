"""A burn of 512 hosts with 8 rails and 20 bad links of five kinds, on tables that OpenSM made in ibsim."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from clusterctl.cabling.health.symptoms import HealthKind
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.finding import Verdict
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.infiniband.opensm import parse_dump_fts
from tests.cabling.generate.subnet import MISSING, sweep
from tests.soak.test_burn_plan import WANTED, tree
from tests.steps.fabric_burn.test_burn import STAGE_S, Diary, run
from tests.steps.fabric_burn.world import FabricWorld, bad_links

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0), pytest.mark.skipif(MISSING, reason="no ibsim or opensm")]
BAD, KINDS = 20, 5


def test_twenty_bad_links_of_512_hosts(tmp_path):
    """All 20 are found and named as what they are, and no other link is."""
    subnet = sweep(tree(), WANTED.radix, tmp_path)
    tables = parse_dump_fts((tmp_path / "opensm-lfts.dump").read_text().splitlines())
    slow = parse_ibnetdiscover(subnet.fabric)  # ibsim's links, which are to count as NDR
    fabric = Fabric(slow.devices, tuple(replace(link, width=4, speed="NDR") for link in slow.links))
    bad = bad_links(fabric, BAD, seed=20260131)
    world, diary = FabricWorld(fabric, tables, bad), Diary()
    began = time.process_time()
    stopped, report = run(world, diary)
    took = timedelta(seconds=STAGE_S * len(diary.stages))
    print(f"512 hosts, {len(report.directions)} directed links, {report.loaded} loaded, {report.at_goal} at the goal: "
          f"{len(diary.stages)} stages of {STAGE_S} s, {took} of a real burn; "
          f"{time.process_time() - began:.0f} s of a processor here, the simulated fabric among them")  # fmt: skip
    assert not stopped
    found = [finding for finding in report.health.findings if finding.verdict is Verdict.FAIL]
    names = {frozenset(map(str, finding.ends)) for finding in found}
    labels = {end: f"{world.routes.names[end]}" for link in fabric.links for end in (link.a, link.b)}
    links = {end: frozenset((labels[link.a], labels[link.b])) for link in fabric.links for end in (link.a, link.b)}
    assert names == {links[one.port] for one in bad}
    assert set(Counter(finding.kind for finding in found)) == {
        HealthKind.SLOW,
        HealthKind.BIT_ERRORS,
        HealthKind.PACKET_ERRORS,
        HealthKind.FLAPPING,
        HealthKind.LOST,
    }
