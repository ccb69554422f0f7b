"""Firmware inventory; recorded at UpdateService/FirmwareInventory as `Installed-<component>-<version>__<FQDD>`."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths, power
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, status
from clusterctl_lab.emulators.redfish.services.update import APPLY_TIMES
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    installed = [
        _installed("159", machine.bios_version, "BIOS.Setup.1-1", "BIOS"),
        _installed("25227", machine.bmc.firmware, "iDRAC.Embedded.1-1", "Integrated Dell Remote Access Controller"),
        *(_installed("0", hca.firmware, f"{paths.hca_fqdd(hca)}-1", hca.model) for hca in machine.hcas),
        *(
            _installed("108076", power.SUPPLY_FIRMWARE, f"PSU.Slot.{number + 1}", f"Power Supply {number + 1}")
            for number in range(len(view.machine.psus))
        ),
    ]
    members = [software["@odata.id"] for software in installed]
    yield {
        **head(paths.UPDATE_SERVICE, "UpdateService.v1_9_0.UpdateService", "Update Service"),
        "Actions": {
            "#UpdateService.SimpleUpdate": {
                "@Redfish.OperationApplyTimeSupport": {
                    "@odata.type": "#Settings.v1_3_3.OperationApplyTimeSupport",
                    "SupportedValues": list(APPLY_TIMES),
                },
                "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
                "target": paths.SIMPLE_UPDATE,
            }
        },
        "Description": "Represents the properties for the Update Service",
        "FirmwareInventory": ref(paths.FIRMWARE),
        "MultipartHttpPushUri": paths.MULTIPART_PUSH,
        "ServiceEnabled": True,
        "Status": status(),
    }
    yield collection(paths.FIRMWARE, "SoftwareInventoryCollection", "Firmware Inventory Collection", members)
    yield from installed


def _installed(component: str, version: str, fqdd: str, name: str) -> Resource:
    path = f"{paths.FIRMWARE}/Installed-{component}-{version}__{fqdd}"
    return {
        **head(path, "SoftwareInventory.v1_4_0.SoftwareInventory", name),
        "Description": "Represents Firmware Inventory",
        "SoftwareId": component,
        "Status": status(),
        "Updateable": True,
        "Version": version,
    }
