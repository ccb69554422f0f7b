"""Firmware inventory; recorded at UpdateService/FirmwareInventory: numbered, distinguished by name and description."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.hpe import paths, power
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View

SIMPLE_UPDATE = f"{paths.UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"
HTTP_PUSH = "/cgi-bin/uploadFile"


def resources(view: View) -> Iterator[Resource]:
    installed = [_software(number, *found) for number, found in enumerate(_installed(view), start=1)]
    members = [software["@odata.id"] for software in installed]
    yield {
        **head(paths.UPDATE_SERVICE, "UpdateService.v1_2_1.UpdateService", "Update Service"),
        "Actions": {
            "#UpdateService.SimpleUpdate": {
                "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
                "target": SIMPLE_UPDATE,
            }
        },
        "Description": "iLO Update Service",
        "FirmwareInventory": ref(paths.FIRMWARE),
        "HttpPushUri": HTTP_PUSH,
        "ServiceEnabled": True,
    }
    yield collection(paths.FIRMWARE, "SoftwareInventoryCollection", "Firmware Inventory Collection", members)
    yield from installed


def _installed(view: View) -> Iterator[tuple[str, str, str]]:
    """Name, description, version."""
    machine = view.machine
    yield "iLO 5", "SystemBMC", machine.bmc.firmware.removeprefix("iLO 5 v")
    yield "System ROM", "SystemRomActive", machine.bios_version
    for hca in machine.hcas:
        yield hca.model, f"PCI-E Slot {hca.rail + 1}", hca.firmware
    for place in range(1, len(machine.psus) + 1):
        yield "Power Supply", f"Bay {place}", power.SUPPLY_FIRMWARE


def _software(number: int, name: str, description: str, version: str) -> Resource:
    return {
        **head(f"{paths.FIRMWARE}/{number}", "SoftwareInventory.v1_2_0.SoftwareInventory", name),
        "Description": description,
        "Status": {"Health": "OK", "State": "Enabled"},
        "Updateable": True,
        "Version": version,
    }
