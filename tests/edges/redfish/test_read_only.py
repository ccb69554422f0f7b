"""BMCs that are opened for reading only receive no other request, whichever caller asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress, BmcClient, Deadline, Power
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.replay import SESSIONS, Bmc

SERIAL = Serial("EX00042")
Change = Callable[[BmcClient, Deadline], object]


@pytest.fixture
def readers() -> RedfishBmcs:
    return RedfishBmcs(FixedClock(), QUICK, read_only=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda bmc, soon: bmc.set_power(Power.OFF, SERIAL, soon),
        lambda bmc, soon: bmc.cycle_power(SERIAL, soon),
        lambda bmc, soon: bmc.boot_once(BootOnce(BootSource.PXE), SERIAL, soon),
    ],
    ids=["off", "cycle", "boot-once"],
)
def test_changes_are_refused_before_they_are_sent(
    readers: RedfishBmcs, served: tuple[Bmc, BmcAddress], change: Change
) -> None:
    """With what was not sent and why; the session is closed as always."""
    server, address = served
    soon = Deadline.after(60)
    with readers.open(address, soon) as bmc, pytest.raises(EdgeError, match="only reads") as caught:
        change(bmc, soon)
    assert "--read-only" in caught.value.remedy
    assert {path for method, path in server.asked if method != "GET"} == {SESSIONS, f"{SESSIONS}/7"}
    assert server.open_sessions == 0


def test_reading_is_as_ever(readers: RedfishBmcs, served: tuple[Bmc, BmcAddress]) -> None:
    """Inventory, power and logs."""
    soon = Deadline.after(60)
    with readers.open(served[1], soon) as bmc:
        assert bmc.inventory(soon).value.serial == SERIAL
        assert bmc.power(soon).value is Power.ON
        bmc.event_log(soon)
