"""Workers are killed with SIGKILL, or frozen past their lease, at random moments of installs; afterwards the acts are
read back from the record of the machines themselves.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from functools import partial

import pytest

from clusterctl.edges.journal import verification
from clusterctl.fleet.event import Kind, Stream
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from tests.two.conftest import NAMES, SHORT_LEASE_S, Scene
from tests.two.losses import Losses, worker
from tests.two.test_workers import ALL_INSTALLED, ONCE, order, postgresql
from tests.two.worker import main

pytestmark = pytest.mark.soak
ROUNDS = 50


@pytest.fixture
def lease_s() -> int:
    return SHORT_LEASE_S


@pytest.fixture
def orderer(scene: Scene) -> Iterator[SiteContext]:
    context = open_site(scene.site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        yield context


def work(site: str, world: str, name: str) -> None:
    """Work until no run is free."""
    raise SystemExit(main([site, world, "--name", name, "--once"]))


@postgresql
@pytest.mark.parametrize("number", range(ROUNDS))
def test_each_os_is_written_once_whatever_becomes_of_workers(scene: Scene, orderer: SiteContext, number: int) -> None:
    """Workers of one run are lost; the next one ends it. No act is lost or done twice, a frozen worker does nothing
    when it wakes, the run ends once, and the journal is intact.
    """
    run = order(orderer)
    losses = Losses(
        orderer=orderer,
        start=partial(worker, work, str(scene.site), str(scene.world.folder)),
        events=12,
        pause_s=0.1,
        frozen=0.1,
        look=lambda: orderer.journal.health().last_seq,
        alone=scene.world.alone,
    )
    struck = losses.until_ended(run, random.Random(number))
    print(f"round {number}: {', '.join(struck)}")
    assert runs.find(orderer, run).exit_code == 0
    assert (scene.world.starts(), scene.stages()) == (ONCE, ALL_INSTALLED)
    assert {name for name, _ in scene.world.started_by()} == set(NAMES)
    kinds = [event.kind for event in orderer.journal.history(Stream.RUN, run)]
    assert kinds.count(Kind.RUN_ENDED) == 1
    assert Kind.RUN_FINISHED in kinds, "its steps; twice where its worker was lost right after them"
    assert verification.verify(scene.url).damages == ()
