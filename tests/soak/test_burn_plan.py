"""A burn of 512 hosts with 8 rails, on tables that OpenSM made in ibsim: every directed link, or its name."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.cabling.burn.plan import BurnPlan, plan_burn
from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.infiniband.opensm import parse_dump_fts, parse_opensm_log
from tests.cabling.generate.subnet import MISSING, sweep

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0), pytest.mark.skipif(MISSING, reason="no ibsim or opensm")]
WANTED = FabricSize(512, 8, 64, 3)


def tree() -> WiringPlan:
    return generate(shape_of(WANTED), PortNaming(tuple(f"mlx5_{n}" for n in range(8)), twin_cages=True), RackLayout())


def burn(plan: WiringPlan, folder: Path) -> BurnPlan:
    subnet = sweep(plan, WANTED.radix, folder)
    log = parse_opensm_log(subnet.log.splitlines())
    tables = (folder / "opensm-lfts.dump").read_text()  # dump_fts leaves out the last of these 4,416 LIDs
    return plan_burn(parse_ibnetdiscover(subnet.fabric), parse_dump_fts(tables.splitlines()), log)


def hold(found: BurnPlan) -> None:
    """No two flows on a link in any stage; what is loaded and what is named are all links."""
    for stage in found.stages.stages:
        links = [link for flow in stage.flows for link in flow.way]
        assert len(links) == len(set(links))
    loaded = frozenset().union(*(stage.links for stage in found.stages.stages))
    assert loaded.isdisjoint(found.stages.unreached)
    assert len(loaded) + len(found.unreached) == len(found.routes.links)


def test_one_stage_for_512_hosts(tmp_path):
    """ftree: 24,576 of 24,576 directed links in one stage, one flow on each."""
    found = burn(tree(), tmp_path)
    hold(found)
    assert found.balanced, found.routing
    assert (len(found.stages.stages), found.reached, found.routing.worst) == (1, 24_576, 1)


def test_511_hosts(tmp_path):
    """One host less: every link but those that cannot be loaded, in few stages."""
    plan = tree()
    gone = max(plan.hosts)
    cables = tuple(cable for cable in plan.cables if gone not in {end.device for end in cable.ends})
    found = burn(replace(plan, cables=cables, hosts=plan.hosts - {gone}), tmp_path)
    hold(found)
    print(f"511 hosts, {found.routing.engine}: {found.reached} of {len(found.routes.links)} directed links loaded "
          f"in {len(found.stages.stages)} stages, {len(found.unreached)} named")  # fmt: skip
    assert found.routing.engine == "ftree"
    assert found.reached >= 0.99 * len(found.routes.links)


def test_twenty_cut_cables(tmp_path):
    """20 of 8,192 cables between switches cut: the fall-back is reported, and every link that no route uses is named."""
    plan = tree()
    trunks = [cable for cable in plan.cables if not {end.device for end in cable.ends} & plan.hosts]
    cut = set(random.Random(20260131).sample(trunks, 20))
    found = burn(replace(plan, cables=tuple(cable for cable in plan.cables if cable not in cut)), tmp_path)
    hold(found)
    print(f"20 cables cut, {found.routing.engine}: {found.reached} of {len(found.routes.links)} directed links loaded "
          f"in {len(found.stages.stages)} stages, {len(found.unreached)} named")  # fmt: skip
    assert found.routing.problem.startswith("the subnet manager fell back to minhop")
    assert found.unreached
