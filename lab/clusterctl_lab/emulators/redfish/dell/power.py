"""Power supplies; recorded at Chassis/System.Embedded.1/{Power,PowerSubsystem}.

An XE9680 has six supplies of 2800 W; all are present, so that a failed one is Critical, not absent.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Psu

SUPPLY_WATTS = 2800
SUPPLY_MODEL = "PWR SPLY,2800W,RDNT"
SUPPLY_FIRMWARE = "00.17.28"
_POWER = f"{paths.CHASSIS}/Power"
_SUBSYSTEM = f"{paths.CHASSIS}/PowerSubsystem"


def resources(view: View) -> Iterator[Resource]:
    psus = view.machine.psus
    slots = f"{_SUBSYSTEM}/PowerSupplies"
    yield {
        **head(_POWER, "Power.v1_7_1.Power", "Power"),
        "Description": "Power",
        **counted("PowerSupplies", [_embedded(number, psu) for number, psu in enumerate(psus)]),
    }
    yield {
        **head(_SUBSYSTEM, "PowerSubsystem.v1_0_0.PowerSubsystem", "Power Subsystem for Chassis"),
        "CapacityWatts": float(len(psus) * SUPPLY_WATTS),
        "PowerSupplies": ref(slots),
        "Status": status(health.rollups(view.machine).power),
    }
    members = []
    for number, psu in enumerate(psus):
        path = f"{slots}/PSU.Slot.{number + 1}"
        members.append(path)
        yield {**head(path, "PowerSupply.v1_1_0.PowerSupply", _name(psu)), **_supply(psu)}
    yield collection(slots, "PowerSupplyCollection", "Power Supply Collection", members)


def _name(psu: Psu) -> str:
    return f"{psu.slot} Status"


def _supply(psu: Psu) -> Resource:
    return {
        "FirmwareVersion": SUPPLY_FIRMWARE,
        "HotPluggable": True,
        "Manufacturer": "DELL",
        "Model": SUPPLY_MODEL,
        "PowerCapacityWatts": SUPPLY_WATTS,
        "PowerSupplyType": "AC",
        "SerialNumber": psu.serial,
        "Status": status(health.of_psu(psu)),
    }


def _embedded(number: int, psu: Psu) -> Resource:
    """A supply as the older Power resource embeds it."""
    return {
        "@odata.context": "/redfish/v1/$metadata#Power.Power",
        "@odata.id": f"{_POWER}#/PowerSupplies/{number}",
        "@odata.type": "#Power.v1_7_1.PowerSupply",
        "MemberId": str(number),
        "Name": _name(psu),
        **_supply(psu),
    }
