"""One real Slurm for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.edges.slurm.cluster import SET_UP, SlurmCluster, missing, running_slurm


@pytest.fixture(scope="session")
def cluster() -> Iterator[SlurmCluster]:
    """Only where nothing was set up may it be missing."""
    if lacking := missing():
        if SET_UP.exists():
            pytest.fail(f"set-up ran, but {', '.join(lacking)} is not installed: run make setup again")
        pytest.skip(f"{', '.join(lacking)} is not installed: run make setup")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    before = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
    with running_slurm() as found:
        os.environ.update(found.environment)
        yield found
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@pytest.fixture
def slurm(cluster: SlurmCluster) -> SlurmCluster:
    """The same, with every node idle."""
    cluster.reset()
    return cluster
