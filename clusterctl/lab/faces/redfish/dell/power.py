"""Power supplies, fans and temperatures; recorded at Chassis/System.Embedded.1/{Power,PowerSubsystem,Thermal}.

The machine model has no power supplies or sensors of its own: an XE9680 has six supplies of 2800 W, and readings are
those of a healthy machine, idle or off.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.lab.faces.redfish.dell import paths
from clusterctl.lab.faces.redfish.resource import Resource, collection, counted, head, ref, status
from clusterctl.lab.faces.redfish.view import View

SUPPLIES = 6
SUPPLY_WATTS = 2800
SUPPLY_MODEL = "PWR SPLY,2800W,RDNT"
SUPPLY_FIRMWARE = "00.17.28"
FANS = 6
_POWER = f"{paths.CHASSIS}/Power"
_SUBSYSTEM = f"{paths.CHASSIS}/PowerSubsystem"
_THERMAL = f"{paths.CHASSIS}/Thermal"


def resources(view: View) -> Iterator[Resource]:
    supplies = [_supply(view, number) for number in range(SUPPLIES)]
    slots = f"{_SUBSYSTEM}/PowerSupplies"
    yield {
        **head(_POWER, "Power.v1_7_1.Power", "Power"),
        "Description": "Power",
        **counted("PowerSupplies", [_embedded(number, supply) for number, supply in enumerate(supplies)]),
    }
    yield {
        **head(_SUBSYSTEM, "PowerSubsystem.v1_0_0.PowerSubsystem", "Power Subsystem for Chassis"),
        "CapacityWatts": float(SUPPLIES * SUPPLY_WATTS),
        "PowerSupplies": ref(slots),
        "Status": status(),
    }
    members = []
    for number, supply in enumerate(supplies):
        path = f"{slots}/PSU.Slot.{number + 1}"
        members.append(path)
        yield {**head(path, "PowerSupply.v1_1_0.PowerSupply", f"PS{number + 1} Status"), **supply}
    yield collection(slots, "PowerSupplyCollection", "Power Supply Collection", members)
    yield _thermal(view)


def _supply(view: View, number: int) -> Resource:
    return {
        "FirmwareVersion": SUPPLY_FIRMWARE,
        "HotPluggable": True,
        "Manufacturer": "DELL",
        "Model": SUPPLY_MODEL,
        "PowerCapacityWatts": SUPPLY_WATTS,
        "PowerSupplyType": "AC",
        "SerialNumber": f"PSLAB{view.machine.index:06d}{number + 1:02d}",
        "Status": status(),
    }


def _embedded(number: int, supply: Resource) -> Resource:
    """A supply as the older Power resource embeds it."""
    return {
        "@odata.context": "/redfish/v1/$metadata#Power.Power",
        "@odata.id": f"{_POWER}#/PowerSupplies/{number}",
        "@odata.type": "#Power.v1_7_1.PowerSupply",
        "MemberId": str(number),
        "Name": f"PS{number + 1} Status",
        **supply,
    }


def _thermal(view: View) -> Resource:
    return {
        **head(_THERMAL, "Thermal.v1_7_1.Thermal", "Thermal"),
        "Description": "Represents the properties for Temperature and Cooling",
        **counted("Fans", [_fan(number, rpm=9600 if view.power else 0) for number in range(FANS)]),
        **counted("Temperatures", [_inlet_temperature()]),
    }


def _fan(number: int, rpm: int) -> Resource:
    name = f"System Board Fan{number + 1}A"
    return {
        "@odata.id": f"{_THERMAL}#/Fans/{number}",
        "@odata.type": "#Thermal.v1_7_1.Fan",
        "FanName": name,
        "HotPluggable": True,
        "MemberId": str(number),
        "Name": name,
        "PhysicalContext": "SystemBoard",
        "Reading": rpm,
        "ReadingUnits": "RPM",
        "Status": status(),
    }


def _inlet_temperature() -> Resource:
    return {
        "@odata.context": "/redfish/v1/$metadata#Thermal.Thermal",
        "@odata.id": f"{_THERMAL}#/Temperatures/0",
        "@odata.type": "#Thermal.v1_7_1.Temperature",
        "MemberId": "0",
        "Name": "System Board Inlet Temp",
        "PhysicalContext": "SystemBoard",
        "ReadingCelsius": 24,
        "Status": status(),
    }
