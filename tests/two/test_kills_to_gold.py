"""Workers are killed with SIGKILL, or frozen past their lease, at random moments of all six steps on PostgreSQL.

The machines keep a record of their own (`lasting_fleet`): who acted on each, and when its OS was written.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from benchmarks.worker_scaling import POOL, fleet_names, order, write
from clusterctl.edges.journal import verification
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import Stage
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.worker import Worker, WorkerRequest
from clusterctl_cli.stopping import stoppable
from tests.two.conftest import SHORT_LEASE_S
from tests.two.lasting_fleet import Record, opened
from tests.two.losses import Losses, worker
from tests.two.test_workers import postgresql

pytestmark = pytest.mark.soak
ROUNDS, NODES = 10, 6
SCALE = 200.0
"""Times true speed: 26 s from a BMC's address to gold."""
READS = ("cat", "lsblk", "findmnt", "true")
"""What proves which machine answers, and from which disk: a worker that wakes may look once more."""


def work(site: Path, began: float, name: str) -> None:
    """Work as `clusterctl worker --once` does."""
    context = open_site(site, Invocation(command="worker"))
    with stoppable() as stopping, closing(context.journal):
        request = WorkerRequest(name=name, pool=POOL, poll_s=0.2, once=True)
        raise SystemExit(Worker(context, request, partial(opened, site, SCALE, began), stopping).work())


@pytest.fixture
def site(tmp_path: Path, url: str) -> Path:
    folder = write(tmp_path, url, NODES, SCALE)
    with (folder / "site.yml").open("a") as settings:
        settings.write(f"claims: {{lease_s: {SHORT_LEASE_S}}}\n")
    return folder


@pytest.fixture
def orderer(site: Path) -> Iterator[SiteContext]:
    context = open_site(site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        yield context


@postgresql
@pytest.mark.parametrize("number", range(ROUNDS))
def test_all_become_gold_whatever_becomes_of_workers(site: Path, orderer: SiteContext, number: int) -> None:
    """Workers of one run are lost, the next one ends it: each OS is written once, and no worker acts on a machine any
    more once another one has acted on it, not even a frozen one that wakes.
    """
    names = sorted(fleet_names(site))
    run, acts = order(orderer, names), Record(site.parent / "acts")
    losses = Losses(
        orderer=orderer,
        start=partial(worker, work, site, time.time()),
        events=70,
        pause_s=1.0,
        frozen=0.2,
        look=lambda: dict(Counter(node.stage.value for node in orderer.nodes())),
        alone=acts.alone,
    )
    struck = losses.until_ended(run, random.Random(number))
    print(f"round {number}: {'; '.join(struck)}")
    assert runs.find(orderer, run).exit_code == 0
    assert {node.name: (node.stage, node.cause) for node in orderer.nodes()} == dict.fromkeys(names, (Stage.GOLD, ""))
    assert sorted(name for _, name, _ in Record(site.parent / "installs").lines()) == names
    for name in names:
        changes = [(pid, act) for pid, machine, act in acts.lines() if machine == name and act not in READS]
        turns = [(pid, [act for _, act in group]) for pid, group in itertools.groupby(changes, lambda one: one[0])]
        assert len(turns) == len({pid for pid, _ in turns}), f"{name}: {turns}"
    assert [event.kind for event in orderer.journal.history(Stream.RUN, run)].count(Kind.RUN_ENDED) == 1
    assert verification.verify(orderer.site.settings.journal).damages == ()
