"""The BMC: manager, virtual media, lifecycle controller, jobs and firmware inventory.

The iDRAC itself; recorded at Managers/iDRAC.Embedded.1.

Virtual drives; recorded at Managers/iDRAC.Embedded.1/VirtualMedia.

The Lifecycle Controller's readiness; the service is recorded at Managers/iDRAC.Embedded.1/Oem/Dell/DellLCService,
the answer to its question is as Dell's iDRAC Redfish API guide has it.

Tasks, and Dell's job queue over them; recorded at TaskService and Managers/iDRAC.Embedded.1/Oem/Dell/Jobs.

Firmware inventory; recorded at UpdateService/FirmwareInventory as `Installed-<component>-<version>__<FQDD>`.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths, power
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, refs, status
from clusterctl_lab.emulators.redfish.services.media import device_resource
from clusterctl_lab.emulators.redfish.services.tasks import task_collection, task_resource, task_service
from clusterctl_lab.emulators.redfish.services.update import APPLY_TIMES
from clusterctl_lab.emulators.redfish.view import TaskState, TaskView, View


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _manager_resources(view)
    yield from _media_resources(view)
    yield from _lifecycle_resources(view)
    yield from _jobs_resources(view)
    yield from _firmware_resources(view)


def _manager_resources(view: View) -> Iterator[Resource]:
    yield collection(f"{paths.ROOT}/Managers", "ManagerCollection", "Manager", [paths.MANAGER])
    yield _manager(view)
    interfaces = f"{paths.MANAGER}/EthernetInterfaces"
    members = [f"{interfaces}/NIC.1"]
    yield collection(interfaces, "EthernetInterfaceCollection", "Ethernet Network Interface Collection", members)
    yield _interface(members[0], view)


def _manager(view: View) -> Resource:
    return {
        **head(paths.MANAGER, "Manager.v1_12_0.Manager", "Manager"),
        "Actions": {
            "#Manager.Reset": {
                "ResetType@Redfish.AllowableValues": ["GracefulRestart"],
                "target": paths.MANAGER_RESET,
            }
        },
        "Description": "BMC",
        "EthernetInterfaces": ref(f"{paths.MANAGER}/EthernetInterfaces"),
        "FirmwareVersion": view.machine.bmc.firmware,
        "Links": {
            **refs("ManagerForChassis", [paths.CHASSIS]),
            **refs("ManagerForServers", [paths.SYSTEM]),
            "ManagerInChassis": ref(paths.CHASSIS),
        },
        "LogServices": ref(f"{paths.MANAGER}/LogServices"),
        "ManagerType": "BMC",
        "Model": "16G Monolithic",
        "PowerState": "On",
        "Status": status(),
        "NetworkProtocol": ref(paths.NETWORK_PROTOCOL),
        "VirtualMedia": ref(paths.VIRTUAL_MEDIA),
    }


def _interface(path: str, view: View) -> Resource:
    """Return the BMC's own port: its MAC address is in lower case, the host's in upper case, both as recorded."""
    bmc = view.machine.bmc
    return {
        **head(path, "EthernetInterface.v1_6_4.EthernetInterface", "Manager Ethernet Interface"),
        "Description": "Management Network Interface",
        "EthernetInterfaceType": "Physical",
        "HostName": f"idrac-{view.machine.serial}",
        **counted("IPv4Addresses", [{"Address": bmc.address, "AddressOrigin": "Static"}]),
        "InterfaceEnabled": True,
        "Links": {"Chassis": ref(paths.CHASSIS)},
        "MACAddress": bmc.mac,
        "PermanentMACAddress": bmc.mac,
        "Status": status(),
    }


_DRIVES = {paths.CD: (("CD", "DVD"), "Virtual CD"), paths.REMOVABLE_DISK: (("USBStick",), "Virtual Removable Disk")}


def _media_resources(view: View) -> Iterator[Resource]:
    yield collection(paths.VIRTUAL_MEDIA, "VirtualMediaCollection", "Virtual Media Services", paths.MEDIA)
    for path, (types, name) in _DRIVES.items():
        yield device_resource(path, view, types, name)


def _lifecycle_resources(_: View) -> Iterator[Resource]:
    yield {
        **head(paths.LC_SERVICE, "DellLCService.v1_3_0.DellLCService", "DellLCService"),
        "Actions": {
            "#DellLCService.GetRemoteServicesAPIStatus": {"target": paths.LC_STATUS},
            "#DellLCService.ExportServerScreenShot": {
                "FileType@Redfish.AllowableValues": ["LastCrashScreenShot", "Preview", "ServerScreenShot"],
                "target": paths.LC_SCREEN,
            },
        },
    }


def screen(view: View) -> Resource:
    """DellLCService.ExportServerScreenShot: a picture in Base64; here a grey one, whose shade shows the state.

    Nothing where it is off.
    """
    if not view.power:
        return {"ServerScreenShotFile": ""}
    shade = 60 if view.posting else 120 if view.running else 180
    return {"ServerScreenShotFile": base64.b64encode(_png(shade)).decode()}


_WIDTH, _HEIGHT = 64, 40


def _png(shade: int) -> bytes:
    """Return a picture of one shade (W3C, Portable Network Graphics: 8 bits of grey a pixel)."""
    rows = (b"\0" + bytes([shade]) * _WIDTH) * _HEIGHT
    head = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def remote_services(view: View) -> Resource:
    """DellLCService.GetRemoteServicesAPIStatus: not ready while the machine is in POST."""
    server = "PoweredOff" if not view.power else "InPOST" if view.posting else "OutOfPOST"
    ready = "NotReady" if view.posting else "Ready"
    return {
        "LCStatus": "InUse" if view.posting else "Ready",
        "RTStatus": ready,
        "ServerStatus": server,
        "Status": ready,
    }


_STATES = {
    TaskState.SCHEDULED: "Scheduled",
    TaskState.RUNNING: "Running",
    TaskState.COMPLETED: "Completed",
    TaskState.FAILED: "Failed",
}
_MESSAGES = {
    TaskState.SCHEDULED: "JCP001",
    TaskState.RUNNING: "RED027",
    TaskState.COMPLETED: "PR19",
    TaskState.FAILED: "RED007",
}
"""Recorded: PR19. The others from Dell's Event and Error Message Reference."""


def _jobs_resources(view: View) -> Iterator[Resource]:
    yield task_service(paths.TASK_SERVICE, paths.TASKS)
    yield task_collection(paths.TASKS, view.tasks)
    members = [f"{paths.JOBS}/{task.id}" for task in view.tasks]
    yield collection(paths.JOBS, "DellJobCollection", "JobQueue", members)
    yield {
        **head(paths.JOB_SERVICE, "DellJobService.v1_2_0.DellJobService", "DellJobService"),
        "Actions": {"#DellJobService.DeleteJobQueue": {"target": paths.DELETE_JOBS}},
        "CurrentNumberOfJobs": len(view.tasks),
        "MaximumNumberOfJobs": 256,
    }
    for task in view.tasks:
        yield task_resource(f"{paths.TASKS}/{task.id}", task)
        yield _job(task)


def _job(task: TaskView) -> Resource:
    return {
        **head(f"{paths.JOBS}/{task.id}", "DellJob.v1_2_0.DellJob", f"{task.kind}: {task.target}"),
        "CompletionTime": task.ended or None,
        "Description": "Job Instance",
        "JobState": _STATES[task.state],
        "JobType": task.kind,
        "Message": task.message,
        **counted("MessageArgs", []),
        "MessageId": _MESSAGES[task.state],
        "PercentComplete": task.percent,
        "StartTime": task.started,
        "TargetSettingsURI": None,
    }


def _firmware_resources(view: View) -> Iterator[Resource]:
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
