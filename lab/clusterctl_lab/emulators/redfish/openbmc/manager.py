"""The BMC: service root, manager, update service with the firmware inventory, and logs.

ServiceRoot; recorded at /redfish/v1: the vendor is AMI.

The BMC itself; recorded at Managers/BMC.

Firmware inventory; recorded at UpdateService/FirmwareInventory: HostBIOS_0, HostBMC_0, HGX_FW_GPU_SXM_1, PSU_0.

The SEL and the audit log; recorded at Managers/BMC/LogServices, with whole entries, oldest first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish.openbmc import hgx, identity, paths, power
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, refs
from clusterctl_lab.emulators.redfish.view import LogRecord, View


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _service_resources(view)
    yield from _manager_resources(view)
    yield from _firmware_resources(view)
    yield from _logs_resources(view)


_SERVICES = ("Systems", "Chassis", "Managers", "SessionService", "AccountService", "UpdateService")


def _service_resources(view: View) -> Iterator[Resource]:
    """Return the root; `Oem.Clusterctl.Simulated` marks all evidence from this BMC as simulated."""
    yield {
        **head(paths.ROOT, "ServiceRoot.v1_13_0.ServiceRoot", "Root Service"),
        "Id": "RootService",
        "Description": "The service root for all Redfish requests on this host",
        **{name: ref(f"{paths.ROOT}/{name}") for name in _SERVICES},
        "Tasks": ref(f"{paths.ROOT}/TaskService"),
        "Links": {"Sessions": ref(f"{paths.ROOT}/SessionService/Sessions")},
        "Oem": {
            "Ami": {"@odata.type": "#AMIServiceRoot.v1_0_0.AMIServiceRoot", "RtpVersion": "13.03"},
            **markers.BMC_OEM,
        },
        "Product": "AMI Redfish Server",
        "ProtocolFeaturesSupported": {
            "DeepOperations": {"DeepPATCH": False, "DeepPOST": False},
            "ExcerptQuery": False,
            "ExpandQuery": {"ExpandAll": True, "Levels": True, "Links": True, "MaxLevels": 5, "NoLinks": True},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
        },
        "RedfishVersion": "1.11.0",
        "UUID": identity.uuid(view.machine),
        "Vendor": "AMI",
    }


RESET = f"{paths.MANAGER}/Actions/Manager.Reset"
_INFO = f"{paths.MANAGER}/ResetActionInfo"
_INTERFACES = f"{paths.MANAGER}/EthernetInterfaces"


def _manager_resources(view: View) -> Iterator[Resource]:
    bmc = view.machine.bmc
    managers = [paths.MANAGER, paths.HGX_MANAGER]
    yield collection(f"{paths.ROOT}/Managers", "ManagerCollection", "Manager Collection", managers)
    yield {
        **head(paths.MANAGER, "Manager.v1_14_0.Manager", "Manager"),
        "Actions": {"#Manager.Reset": {"@Redfish.ActionInfo": _INFO, "target": RESET}},
        "EthernetInterfaces": ref(_INTERFACES),
        "FirmwareVersion": bmc.firmware,
        "Links": {
            **refs("ManagerForChassis", [paths.CHASSIS]),
            **refs("ManagerForServers", [paths.SYSTEM]),
        },
        "LogServices": ref(f"{paths.MANAGER}/LogServices"),
        "ManagerType": "BMC",
        "PowerState": "On",
        "Status": {"Health": "OK", "State": "Enabled"},
        "VirtualMedia": ref(f"{paths.MANAGER}/VirtualMedia"),
    }
    parameter = {"AllowableValues": ["ForceRestart"], "DataType": "String", "Name": "ResetType", "Required": True}
    yield {**head(_INFO, "ActionInfo.v1_1_2.ActionInfo", "ResetAction"), "Parameters": [parameter]}
    members = [f"{_INTERFACES}/eth0"]
    yield collection(_INTERFACES, "EthernetInterfaceCollection", "Ethernet Interface Collection", members)
    yield {
        **head(members[0], "EthernetInterface.v1_6_2.EthernetInterface", "eth0"),
        "IPv4Addresses": [{"Address": bmc.address, "AddressOrigin": "Static"}],
        "InterfaceEnabled": True,
        "LinkStatus": "LinkUp",
        "MACAddress": bmc.mac,
        "Status": {"Health": "OK", "State": "Enabled"},
    }


MULTIPART_PUSH = f"{paths.UPDATE_SERVICE}/upload"
SIMPLE_UPDATE = f"{paths.UPDATE_SERVICE}/Actions/SimpleUpdate"


def _firmware_resources(view: View) -> Iterator[Resource]:
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


CLEAR_SEL = f"{paths.SEL}/Actions/LogService.ClearLog"
CLEAR_AUDIT = f"{paths.AUDIT_LOG}/Actions/LogService.ClearLog"


def _logs_resources(view: View) -> Iterator[Resource]:
    services = [paths.AUDIT_LOG, paths.SEL]
    yield collection(f"{paths.MANAGER}/LogServices", "LogServiceCollection", "Log Service Collection", services)
    yield from _log(paths.SEL, "IPMI SEL", "SEL", CLEAR_SEL, view.sel)
    yield from _log(paths.AUDIT_LOG, "Audit Log", "Event", CLEAR_AUDIT, view.lifecycle_log)


def login(at: str, user: str, client: str) -> LogRecord:
    """The wording is ours; that the audit log has logins is NVIDIA's user guide's."""
    return LogRecord(at=at, severity="OK", message=f"Login Success from IP: {client} user: {user} via REDFISH")


def _log(path: str, name: str, kind: str, clear: str, records: Sequence[LogRecord]) -> Iterator[Resource]:
    yield {
        **head(path, "LogService.v1_2_0.LogService", name),
        "Actions": {"#LogService.ClearLog": {"target": clear}},
        "Entries": ref(f"{path}/Entries"),
        "LogEntryType": kind,
        "OverWritePolicy": "WrapsWhenFull",
        "ServiceEnabled": True,
        "Status": {"Health": "OK", "State": "Enabled"},
    }
    entries = [_entry(f"{path}/Entries/{n}", kind, record) for n, record in enumerate(records, start=1)]
    yield {
        **collection(f"{path}/Entries", "LogEntryCollection", "Log Service Entries Collection", ()),
        **counted("Members", entries),
    }
    yield from entries


def _entry(path: str, kind: str, record: LogRecord) -> Resource:
    name = f"{kind} {path.rsplit('/', 1)[-1]}"
    return {
        **head(path, "LogEntry.v1_7_0.LogEntry", name),
        "Created": record.at,
        "Description": name,
        "EntryType": kind,
        "EventTimestamp": record.at,
        "Links": {"OriginOfCondition": ref(paths.MANAGER)},
        "Message": record.message,
        "Severity": record.severity,
    }
