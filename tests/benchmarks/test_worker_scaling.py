"""The fake fleet of the benchmark of workers passes all six steps, or its figures would be those of failures."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from benchmarks.worker_scaling import fleet_names, opened, write
from clusterctl.fleet.node import Stage, Step
from clusterctl.operations import bootstrap
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, open_site
from clusterctl.operations.gold_pool import gold_pool
from clusterctl.operations.operation import Control
from tests.fake_fleet import FakeFleet

FAST = 10_000.0
"""Times true speed."""


def test_machines_of_the_fake_fleet_become_gold(tmp_path: Path) -> None:
    """Each OS is written once, and each machine is rebooted once for its driver."""
    site = write(tmp_path, "sqlite:///state/journal.db", 2, FAST)
    fleet = FakeFleet(fleet_names(site), (site / "topology.txt").read_text(), gold_pool(open_site(site).site), FAST)
    context = opened(site, fleet, Invocation(command="bootstrap"))
    with closing(context.journal):
        result = bootstrap.run(context, RunRequest(steps=tuple(Step)), Control())
        causes = {node.name: node.cause for node in result.nodes if node.cause}
    assert {node.stage for node in result.nodes} == {Stage.GOLD}, causes
    assert fleet.installs.keys() == fleet.machines.keys()
    assert fleet.boots == dict.fromkeys(fleet.machines, 1)
