"""Power supplies; recorded at Chassis/DGX/PowerSubsystem (the older Power resource has none). Their Status is not
recorded: DMTF PowerSupply v1_3.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View

SUPPLY_FIRMWARE = "2.2-2.1-2.4"
_SUBSYSTEM = f"{paths.CHASSIS}/PowerSubsystem"


def resources(view: View) -> Iterator[Resource]:
    """Numbered from 0 there, from 1 on the machine's lid."""
    machine = view.machine
    slots = f"{_SUBSYSTEM}/PowerSupplies"
    members = [f"{slots}/PSU{place}" for place in range(len(machine.psus))]
    yield {
        **head(f"{paths.CHASSIS}/Power", "Power.v1_7_0.Power", "Power"),
        "Description": "Power of the chassis",
        "PowerControl": [],
    }
    yield {
        **head(_SUBSYSTEM, "PowerSubsystem.v1_1_0.PowerSubsystem", "PowerSubsytem"),
        "Id": "PowerSubsytem",
        "PowerSupplies": ref(slots),
        "Status": {"Health": health.rollups(machine).power, "State": "Enabled"},
    }
    yield collection(slots, "PowerSupplyCollection", "PowerSupplies Collection", members)
    for place, psu in enumerate(machine.psus):
        yield {
            **head(members[place], "PowerSupply.v1_3_0.PowerSupply", f"PSU{place}"),
            "Description": f"Power Supply Unit PSU{place}",
            "FirmwareVersion": SUPPLY_FIRMWARE,
            "Location": {"PartLocation": {"LocationType": "Embedded"}},
            "Manufacturer": "Delta",
            "Model": "01   ",
            "PartNumber": "ECD16020137",
            "SerialNumber": psu.serial,
            "Status": {"Health": health.of_psu(psu), "State": "Enabled"},
        }
