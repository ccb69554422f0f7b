"""A hundred hosts: how soon they run, and that discover and a sweep reach each of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import Site
from tests.e2e.sweeping import hosts_of, sweeper

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(3600)]

HOSTS = 100
UP_S = 60.0
"""On two cores that others use too; benchmarks/lab_up.py measures it on a quiet machine."""


@dataclass(frozen=True)
class Hundred:
    site: Site
    up_s: float


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hundred]:
    folder = tmp_path_factory.mktemp("h")
    began = time.monotonic()
    with running_lab("e2eh", "10.155.0.0/16", folder, "--hosts", str(HOSTS), "--installed") as lab:
        yield Hundred(Site(lab, folder / "runs"), time.monotonic() - began)


def test_they_are_up_soon(hundred: Hundred) -> None:
    """A hundred hosts boot, and their SSH servers answer, in less than a minute."""
    machines = json.loads(hundred.site.lab("status", "--json"))["machines"]
    assert [machine["boot"] for machine in machines] == ["running"] * HOSTS
    assert hundred.up_s < UP_S


def test_discover_reaches_all(hundred: Hundred) -> None:
    """Every BMC is read over Redfish and every machine matches its SKU."""
    run = hundred.site.run("discover", "--yes")
    assert run.wait() == 0, run.stderr + run.stdout
    stages = hundred.site.stages()
    assert len(stages) == HOSTS
    assert set(stages.values()) == {"discovered"}


def test_a_sweep_reaches_all(hundred: Hundred) -> None:
    """Every host is asked all that the burn-in's checks ask, over verified SSH, and answers to each question."""
    machines = json.loads(hundred.site.lab("status", "--json"))["machines"]
    hosts = hosts_of(hundred.site.folder, {machine["name"]: machine["address"] for machine in machines})
    with sweeper() as sweep:
        sessions = sweep(hosts)
    assert len(sessions) == HOSTS
    assert not [session for session in sessions if session.failure]
    assert {session.probes for session in sessions} == {sweep.probes}
