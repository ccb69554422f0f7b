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
    """It accepted and did nothing: reported as such."""
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


NVIDIA = "/redfish/v1/Chassis/BMC_0/Actions/Oem/NvidiaChassis.AuxPowerReset"
LENOVO = f"{SYSTEM}/Actions/Oem/LenovoComputerSystem.SystemReset"


def nvidia(info: dict[str, Any] | None) -> Any:
    """An action at a chassis that no System links to, whose reset types stand in an ActionInfo (NVIDIA's bmcweb)."""
    tree = small()
    path = "/redfish/v1/Chassis/BMC_0"
    members = tree["/redfish/v1/Chassis"]["Members"]
    members.append({"@odata.id": path})
    tree["/redfish/v1/Chassis"]["Members@odata.count"] = len(members)
    place = f"{path}/Oem/Nvidia/AuxPowerResetActionInfo"
    action = {"target": NVIDIA, "@Redfish.ActionInfo": place}
    tree[path] = {"Id": "BMC_0", "Name": "BMC", "Actions": {"Oem": {"#NvidiaChassis.AuxPowerReset": action}}}
    if info is not None:
        tree[place] = {"Parameters": [info]}
    return tree


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ({"Name": "ResetType", "AllowableValues": ["AuxPowerCycle", "AuxPowerCycleForce"]}, "AuxPowerCycle"),
        ({"Name": "ResetType", "AllowableValues": ["AuxPowerCycleForce"]}, "AuxPowerCycleForce"),
        (None, "AuxPowerCycle"),
    ],
)
def test_a_reset_type_that_stands_in_an_action_info(info: dict[str, Any] | None, kind: str) -> None:
    """GB200: ComputerSystem.Reset has no such type; an ActionInfo that cannot be read leaves the usual one."""
    found = ask(read_ac_cycle, nvidia(info))
    assert (found.target, found.body) == (NVIDIA, {"ResetType": kind})


def test_lenovos_own_reset() -> None:
    """XCC: `ACPowerCycle` by an action of its own."""
    tree = small()
    action = {"target": LENOVO, "ResetType@Redfish.AllowableValues": ["ACPowerCycle"]}
    tree[SYSTEM].setdefault("Actions", {}).setdefault("Oem", {})["#LenovoComputerSystem.SystemReset"] = action
    found = ask(read_ac_cycle, tree)
    assert (found.target, found.body) == (LENOVO, {"ResetType": "ACPowerCycle"})
