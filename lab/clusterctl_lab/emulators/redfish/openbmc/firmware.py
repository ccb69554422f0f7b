"""Firmware inventory; recorded at UpdateService/FirmwareInventory: HostBIOS_0, HostBMC_0, HGX_FW_GPU_SXM_1, PSU_0."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.openbmc import hgx, paths, power
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View

MULTIPART_PUSH = f"{paths.UPDATE_SERVICE}/upload"
SIMPLE_UPDATE = f"{paths.UPDATE_SERVICE}/Actions/SimpleUpdate"


def resources(view: View) -> Iterator[Resource]:
    installed = [_software(name, version) for name, version in _installed(view)]
    members = [software["@odata.id"] for software in installed]
    yield {
        **head(paths.UPDATE_SERVICE, "UpdateService.v1_11_0.UpdateService", "Update Service"),
        "Actions": {"#UpdateService.SimpleUpdate": {"target": SIMPLE_UPDATE}},
        "Description": "Redfish Update Service",
        "FirmwareInventory": ref(paths.FIRMWARE),
        "MultipartHttpPushUri": MULTIPART_PUSH,
        "ServiceEnabled": True,
        "Status": {"Health": "OK", "State": "Enabled"},
    }
    yield collection(paths.FIRMWARE, "SoftwareInventoryCollection", "Firmware Inventory Collection", members)
    yield from installed


def _installed(view: View) -> Iterator[tuple[str, str]]:
    machine = view.machine
    yield "HostBIOS_0", machine.bios_version
    yield "HostBMC_0", machine.bmc.firmware
    yield "HGX_FW_BMC_0", hgx.BMC_FIRMWARE
    for gpu in machine.gpus:
        yield f"HGX_FW_{paths.gpu_name(gpu)}", hgx.GPU_FIRMWARE
    for place in range(len(machine.psus)):
        yield f"PSU_{place}", power.SUPPLY_FIRMWARE


def _software(name: str, version: str) -> Resource:
    return {
        **head(f"{paths.FIRMWARE}/{name}", "SoftwareInventory.v1_2_3.SoftwareInventory", name),
        "Updateable": True,
        "Version": version,
    }
