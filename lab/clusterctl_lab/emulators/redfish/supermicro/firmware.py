"""Firmware inventory; recorded at UpdateService/FirmwareInventory: BIOS, BMC, GPU1, HGX_FW_GPU_SXM_1, NIC1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import network, paths, pcie, power
from clusterctl_lab.emulators.redfish.view import View

MULTIPART_PUSH = f"{paths.UPDATE_SERVICE}/upload"
SIMPLE_UPDATE = f"{paths.UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"


def resources(view: View) -> Iterator[Resource]:
    installed = list(_installed(view))
    members = [software["@odata.id"] for software in installed]
    yield {
        **head(paths.UPDATE_SERVICE, "UpdateService.v1_8_4.UpdateService", "Update Service"),
        "Description": "Service for updating firmware and includes inventory of firmware",
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        "ServiceEnabled": True,
        "MultipartHttpPushUri": MULTIPART_PUSH,
        "FirmwareInventory": ref(paths.FIRMWARE),
        "Actions": {"#UpdateService.SimpleUpdate": {"target": SIMPLE_UPDATE}},
    }
    yield collection(paths.FIRMWARE, "SoftwareInventoryCollection", "Firmware Inventory Collection", members)
    yield from installed


def _installed(view: View) -> Iterator[Resource]:
    machine = view.machine
    yield _software("BIOS", "BIOS", f"BIOS Date: 08/04/2023 Ver {machine.bios_version}", updateable=True)
    yield _software("BMC", "BMC", machine.bmc.firmware, updateable=True)
    for gpu in machine.gpus:
        number = gpu.index + 1
        yield _software(f"GPU{number}", f"GPU{number} System Slot{number}", pcie.GPU_FIRMWARE)
        yield _software(f"HGX_FW_GPU_SXM_{number}", "Software Inventory", pcie.GPU_FIRMWARE, updateable=True)
    for hca in machine.hcas:
        number = paths.hca_number(hca)
        yield _software(f"NIC{number}", f"NIC{number} System Slot{number} {hca.model}", hca.firmware)
    onboard = f"NIC{paths.ONBOARD}"
    yield _software(onboard, f"{onboard} RISER 0 slot 1 {network.ONBOARD_MODEL}", network.ONBOARD_FIRMWARE)
    for place in range(1, len(machine.psus) + 1):
        yield _software(f"PowerSupply{place}", f"Power supply {place}", power.SUPPLY_FIRMWARE)


def _software(name: str, title: str, version: str, *, updateable: bool = False) -> Resource:
    return {
        **head(f"{paths.FIRMWARE}/{name}", "SoftwareInventory.v1_3_0.SoftwareInventory", title),
        "Updateable": updateable,
        "Version": version,
        "Status": {"State": "Enabled", "Health": "OK"},
    }
