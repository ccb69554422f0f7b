"""The journal's PostgreSQL fails over in the middle of a run: nothing is lost, no OS is written twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlalchemy import create_engine, select

from clusterctl.edges.journal import verification
from clusterctl.edges.journal.tables import event
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, open_site
from clusterctl.operations.runs import RunState
from lab.tests.lab_kit import eventually
from tests.two.conftest import NAMES, PATIENCE_S, Scene
from tests.two.patroni import Cluster, running_cluster
from tests.two.test_workers import ALL_INSTALLED, ONCE, order, start

pytestmark = pytest.mark.soak
CRASHES = 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as found:
        yield found


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.url()


def numbers(url: str, last: int) -> list[int]:
    """The numbers of the journal's events up to the last one."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(select(event.c.seq).where(event.c.seq <= last).order_by(event.c.seq)).scalars().all()
    engine.dispose()
    return list(found)


@pytest.mark.parametrize("number", range(CRASHES))
def test_the_server_that_leads_loses_its_power_while_machines_install(
    scene: Scene, cluster: Cluster, url: str, number: int
) -> None:
    """Two machines are being installed, two are installed at once. The standby takes over; the worker waits, goes on
    with the same run and ends it. All that was acknowledged before the crash is there, in the order of its numbers.
    """
    context = open_site(scene.site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        for name in NAMES[number % 2 :: 2]:
            scene.world.hold(name)
        run = order(context)
        worker = start(scene, "w1", "--once")
        scene.until_installing(*NAMES)
        acknowledged = context.journal.health().last_seq
        before = numbers(url, acknowledged)
        failed = cluster.leader()
        failed.crash()
        assert eventually(lambda: any(one.leads for one in cluster.servers if one is not failed), PATIENCE_S)
        for name in NAMES[number % 2 :: 2]:
            scene.world.let_go(name)
        assert eventually(lambda: runs.find(context, run).state is RunState.ENDED, PATIENCE_S)
        assert worker.wait() == 0, worker.err
        assert (runs.find(context, run).exit_code, scene.world.starts(), scene.stages()) == (0, ONCE, ALL_INSTALLED)
    assert numbers(url, acknowledged) == before
    assert verification.verify(url).damages == ()
    cluster.begin(failed)
    cluster.until_replicated()
