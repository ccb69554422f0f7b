"""What the client's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.edges.redfish import RedfishBmcs, Timing
from clusterctl.ports import BmcAddress
from tests.edges.redfish.replay import Bmc, serve
from tests.edges.redfish.sushy_kit import Sushy
from tests.edges.redfish.sushy_kit import served as serve_sushy
from tests.edges.redfish.trees import small

QUICK = Timing(
    busy=0.01,
    busy_max=0.05,
    asked_max=0.05,
    expand=60.0,
    poll=0.01,
    settle=0.2,
    refused=0.01,
    refused_max=0.05,
    unknown=0.2,
    grace=0.1,
    rest=0.01,
    switch_off=0.2,
    logout=60.0,
)


class FixedClock:
    """Always the same moment."""

    def now(self) -> datetime:
        return datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def bmcs() -> RedfishBmcs:
    return RedfishBmcs(FixedClock(), QUICK)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Bmc, BmcAddress]]:
    """A BMC that answers from the small tree."""
    with serve(small(), tmp_path) as both:
        yield both


@pytest.fixture(scope="session")
def sushy_tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sushy, BmcAddress]]:
    """One for all: it can be configured once in a process. Each user calls `reset` first."""
    with serve_sushy(tmp_path_factory.mktemp("sushy")) as both:
        yield both
