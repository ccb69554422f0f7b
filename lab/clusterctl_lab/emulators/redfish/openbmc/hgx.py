"""The HGX board as NVIDIA's OpenBMC reports it; recorded at Systems/HGX_Baseboard_0, Chassis/HGX_Chassis_0,
Chassis/HGX_GPU_SXM_1 and Managers/HGX_BMC_0, none of them with `@odata.context`.

It has no BIOS and no boot order. Each GPU's chassis has a log of its XIDs.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.openbmc import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, bare, collection, counted, head, ref
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Gpu

GPU_FIRMWARE = "96.00.89.00.01"
BMC_FIRMWARE = "HGX-22.10-1-rc57"
_OK = {"Conditions": [], "Health": "OK", "HealthRollup": "OK", "State": "Enabled"}
_SINCE_BOOT = "2020-06-16T21:12:42+00:00"
"""That BMC's clock restarts with its power, as recorded."""


def resources(view: View) -> Iterator[Resource]:
    return map(bare, _all(view))


def _all(view: View) -> Iterator[Resource]:
    machine = view.machine
    yield _system(view)
    processors = f"{paths.HGX_SYSTEM}/Processors"
    members = [paths.gpu(gpu) for gpu in machine.gpus]
    yield collection(processors, "ProcessorCollection", "Processor Collection", members)
    yield _manager()
    yield {
        **head(paths.HGX_CHASSIS, "Chassis.v1_17_0.Chassis", "HGX_Chassis_0"),
        "ChassisType": "Zone",
        "Links": {
            "ComputerSystems": [ref(paths.HGX_SYSTEM)],
            "Contains": [ref(paths.gpu_chassis(gpu)) for gpu in machine.gpus],
            "ManagedBy": [ref(paths.HGX_MANAGER)],
        },
        "Manufacturer": "NVIDIA",
        "Status": _OK,
    }
    for gpu in machine.gpus:
        yield _gpu(gpu)
        yield _module(gpu)
        yield from _xids(gpu)


def _system(view: View) -> Resource:
    return {
        **head(paths.HGX_SYSTEM, "ComputerSystem.v1_17_0.ComputerSystem", "HGX_Baseboard_0"),
        "Description": "Computer System",
        "Links": {"Chassis": [ref(paths.HGX_CHASSIS)], "ManagedBy": [ref(paths.HGX_MANAGER)]},
        "Manufacturer": "NVIDIA",
        "PowerState": "On" if view.power else "Off",
        "Processors": ref(f"{paths.HGX_SYSTEM}/Processors"),
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        "SystemType": "Physical",
        "UUID": identity.hgx_uuid(view.machine),
    }


def _manager() -> Resource:
    return {
        **head(paths.HGX_MANAGER, "Manager.v1_14_0.Manager", "OpenBmc Manager"),
        "Description": "Baseboard Management Controller",
        "FirmwareVersion": BMC_FIRMWARE,
        "Id": "bmc",
        "Links": {"ManagerForServers": [ref(paths.HGX_SYSTEM)]},
        "ManagerType": "BMC",
        "Model": "OpenBmc",
        "PowerState": "On",
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
    }


def _identity(gpu: Gpu) -> Resource:
    return {
        "Location": {"PartLocation": {"LocationType": "Embedded", "ServiceLabel": f"SXM{gpu.index + 1}"}},
        "Manufacturer": "NVIDIA",
        "Model": gpu.model.removeprefix("NVIDIA "),
        "PartNumber": "2330-885-A1",
        "SerialNumber": gpu.serial,
        "Status": _OK,
    }


def _gpu(gpu: Gpu) -> Resource:
    lanes = {"LanesInUse": gpu.pcie_width, "MaxLanes": 16, "MaxPCIeType": "Gen5", "PCIeType": "Gen5"}
    return {
        **head(paths.gpu(gpu), "Processor.v1_13_0.Processor", "Processor"),
        "FirmwareVersion": GPU_FIRMWARE,
        "Links": {"Chassis": ref(paths.gpu_chassis(gpu))},
        "MemorySummary": {"ECCModeEnabled": True},
        **_identity(gpu),
        "ProcessorType": "GPU",
        "SystemInterface": {"InterfaceType": "PCIe", "PCIe": lanes},
        "UUID": gpu.uuid.removeprefix("GPU-"),
        "Version": "A1",
    }


def _module(gpu: Gpu) -> Resource:
    path = paths.gpu_chassis(gpu)
    return {
        **head(path, "Chassis.v1_17_0.Chassis", paths.gpu_name(gpu)),
        "ChassisType": "Module",
        "Links": {
            "ComputerSystems": [ref(paths.HGX_SYSTEM)],
            "ContainedBy": ref(paths.HGX_CHASSIS),
            "ManagedBy": [ref(paths.HGX_MANAGER)],
            "Processors": [ref(paths.gpu(gpu))],
        },
        "LogServices": ref(f"{path}/LogServices"),
        "MaxPowerWatts": 700,
        **_identity(gpu),
    }


def _xids(gpu: Gpu) -> Iterator[Resource]:
    services = f"{paths.gpu_chassis(gpu)}/LogServices"
    path = f"{services}/XID"
    yield collection(services, "LogServiceCollection", "System Log Services Collection", [path])
    yield {
        **head(path, "LogService.v1_1_0.LogService", "XID Log Service"),
        "Description": "XID Log Service",
        "Entries": ref(f"{path}/Entries"),
        "OverWritePolicy": "WrapsWhenFull",
    }
    entries = [_xid(f"{path}/Entries/{number}", gpu, xid) for number, xid in enumerate(gpu.xids, start=1)]
    yield {
        **collection(f"{path}/Entries", "LogEntryCollection", "System Event Log Entries", ()),
        **counted("Members", entries),
    }
    yield from entries


def _xid(path: str, gpu: Gpu, xid: int) -> Resource:
    """Registry ResourceEvent 1.0, ResourceErrorsDetected."""
    part, error = f"{paths.gpu_name(gpu)} Driver Event Message", f"[{gpu.index}][00] XID {xid}"
    return {
        **head(path, "LogEntry.v1_9_0.LogEntry", "System Event Log Entry"),
        "Created": _SINCE_BOOT,
        "EntryType": "Event",
        "Links": {"OriginOfCondition": ref(paths.gpu_chassis(gpu))},
        "Message": f"The resource property {part} has detected errors of type '{error}'.",
        "MessageArgs": [part, error],
        "MessageId": "ResourceEvent.1.0.ResourceErrorsDetected",
        "Resolved": False,
        "Severity": "Critical",
    }
