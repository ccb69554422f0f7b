"""Taking all power from a machine: believed only when its BMC was away."""

from __future__ import annotations

from typing import Any

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.power import read_ac_cycle
from clusterctl.ports import BmcAddress, Deadline, Power
from tests.edges.redfish.replay import SESSIONS, Bmc, Handler
from tests.edges.redfish.trees import ask, recorded, small
from tests.faulty import Fault, drop, status

Served = tuple[Bmc, BmcAddress]
SYSTEM = "/redfish/v1/Systems/1"
ACTION = f"{SYSTEM}/Actions/Oem/Example.Reset"
SERIAL = Serial("EX00042")


@pytest.fixture
def server(served: Served) -> Bmc:
    """A machine whose vendor has an action for it."""
    action = {"target": ACTION, "ResetType@Redfish.AllowableValues": ["ColdBoot", "AuxCycle"]}
    served[0].tree[SYSTEM]["Oem"] = {"Example": {"Actions": {"#Example.Reset": action}}}
    served[0].faults["POST", ACTION] = [lose_power]
    return served[0]


def lose_power(handler: Handler) -> None:
    """No answer, no connection for a while, and the session is forgotten."""
    away: list[Fault] = [drop] * 6
    handler.server.faults["GET", "/redfish/v1/Systems"] = [*away, status(401), status(401)]
    drop(handler)


def cycle(bmcs: RedfishBmcs, served: Served) -> Power:
    with bmcs.open(served[1], Deadline.after(60)) as bmc:
        return bmc.ac_cycle(SERIAL, Deadline.after(60)).value


def test_away_and_back(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """Off first, the BMC goes and comes back, a new session, and on again."""
    assert cycle(bmcs, served) is Power.ON
    assert server.resets == ["GracefulShutdown", "ForceOff", "On"]
    assert server.asked.count(("POST", ACTION)) == 1
    assert server.asked.count(("POST", SESSIONS)) == 2


def test_a_bmc_that_never_went_away(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """It accepted and did nothing: said as such."""
    server.faults["POST", ACTION] = [status(202)]
    with pytest.raises(EdgeError, match="did not go away itself"):
        cycle(bmcs, served)


def test_refused(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """In the BMC's words."""
    server.faults["POST", ACTION] = [status(403)]
    with pytest.raises(EdgeError, match="refuses ResetType AuxCycle: HTTP 403"):
        cycle(bmcs, served)


def test_no_such_action(bmcs: RedfishBmcs, served: Served) -> None:
    """Nothing is done, and the remedy is a hand's."""
    with pytest.raises(EdgeError) as caught:
        cycle(bmcs, served)
    assert "power cables" in caught.value.remedy
    assert served[0].resets == []


def test_another_machine_comes_back(bmcs: RedfishBmcs, served: Served, server: Bmc) -> None:
    """It is not switched on."""

    def swapped(handler: Handler) -> None:
        server.tree[SYSTEM]["SerialNumber"] = "EX77777"
        lose_power(handler)

    server.faults["POST", ACTION] = [swapped]
    with pytest.raises(EdgeError, match="belongs to machine EX77777"):
        cycle(bmcs, served)
    assert "On" not in server.resets


def dell_chassis(tree: dict[str, Any]) -> None:
    """As Dell documents it for its chassis."""
    action = {"target": "/redfish/v1/Chassis/1/x", "ResetType@Redfish.AllowableValues": ["PowerCycle"]}
    tree["/redfish/v1/Chassis/1"]["Actions"] = {"Oem": {"#DellOemChassis.ExtendedReset": action}}


def standard(tree: dict[str, Any]) -> None:
    reset = tree[SYSTEM]["Actions"]["#ComputerSystem.Reset"]
    reset["ResetType@Redfish.AllowableValues"].append("FullPowerCycle")


@pytest.mark.parametrize(
    ("change", "body"),
    [
        (dell_chassis, {"ResetType": "PowerCycle", "FinalPowerState": "Off"}),
        (standard, {"ResetType": "FullPowerCycle"}),
        (dict.copy, {}),
    ],
)
def test_where_the_action_is(change: Any, body: dict[str, str]) -> None:
    """The standard's, the chassis's, or none."""
    tree = small()
    change(tree)
    assert ask(read_ac_cycle, tree).body == body


@pytest.mark.parametrize(("vendor", "kind"), [("hpe", "AuxCycle"), ("dell", None), ("supermicro", None)])
def test_recorded(vendor: str, kind: str | None) -> None:
    """Of the three recorded BMCs the iLO has one."""
    assert ask(read_ac_cycle, recorded(vendor)).body.get("ResetType") == kind
