"""Power supplies; recorded at Chassis/1/Power: all with the same name, distinguished by `Oem.Hpe.BayNumber` only."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import paths
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Psu

SUPPLY_FIRMWARE = "2.00"
_WATTS = 1600
_POWER = f"{paths.CHASSIS}/Power"


def resources(view: View) -> Iterator[Resource]:
    yield {
        **head(_POWER, "Power.v1_3_0.Power", "PowerMetrics"),
        "PowerSupplies": [_supply(place, psu) for place, psu in enumerate(view.machine.psus)],
    }


def _supply(place: int, psu: Psu) -> Resource:
    return {
        "@odata.id": f"{_POWER}#PowerSupplies/{place}",
        "FirmwareVersion": SUPPLY_FIRMWARE,
        "Manufacturer": "LTEON",
        "MemberId": str(place),
        "Model": "P38997-B21",
        "Name": "HpeServerPowerSupply",
        "Oem": {
            "Hpe": {
                "@odata.context": "/redfish/v1/$metadata#HpeServerPowerSupply.HpeServerPowerSupply",
                "@odata.type": "#HpeServerPowerSupply.v2_0_0.HpeServerPowerSupply",
                "BayNumber": place + 1,
                "HotplugCapable": True,
                "PowerSupplyStatus": {"State": "Failed" if psu.failed else "Ok"},
            }
        },
        "PowerCapacityWatts": _WATTS,
        "PowerSupplyType": "AC",
        "SerialNumber": psu.serial,
        "Status": {"Health": health.of_psu(psu), "State": "Enabled"},
    }
