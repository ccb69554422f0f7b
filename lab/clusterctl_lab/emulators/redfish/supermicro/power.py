"""Power supplies; recorded at Chassis/1/Power: eight of 3000 W, all inside the one resource."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Psu

SUPPLY_FIRMWARE = "1.3"
_MODEL = "PWS-3K06G-2R"
_WATTS = 3000
_FIRST_SENSOR = 192
_POWER = f"{paths.CHASSIS}/Power"


def resources(view: View) -> Iterator[Resource]:
    yield {
        **head(_POWER, "Power.v1_6_1.Power", "Power"),
        "PowerSupplies": [_supply(place, psu) for place, psu in enumerate(view.machine.psus)],
    }


def _supply(place: int, psu: Psu) -> Resource:
    return {
        "@odata.id": f"{_POWER}#/PowerSupplies/{place}",
        "MemberId": str(place),
        "Name": f"Power Supply Bay {place + 1}",
        "Status": {"State": "Enabled", "Health": health.of_psu(psu)},
        "Oem": {
            "Supermicro": {
                "@odata.type": "#SmcPowerExtensions.v1_0_0.PowerSupply",
                "SensorNumber": _FIRST_SENSOR + place,
            }
        },
        "PowerSupplyType": "AC",
        "PowerCapacityWatts": _WATTS,
        "Model": _MODEL,
        "FirmwareVersion": SUPPLY_FIRMWARE,
        "SerialNumber": psu.serial,
        "PartNumber": _MODEL,
    }
