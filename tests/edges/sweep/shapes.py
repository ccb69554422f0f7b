"""Minimal trees of BMCs in several vendors' shapes, as their recordings or the DMTF schemas have them; all values ours."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]
ROOT = "/redfish/v1"
EXPAND = {"ExpandQuery": {"NoLinks": True, "Levels": True, "MaxLevels": 1}}


def links(*paths: str) -> list[dict[str, str]]:
    return [{"@odata.id": path} for path in paths]


def collection(*paths: str) -> Tree:
    return {"Members": links(*paths), "Members@odata.count": len(paths)}


def root(**more: Any) -> Tree:
    return {
        "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
        "RedfishVersion": "1.11.0",
        "Systems": {"@odata.id": f"{ROOT}/Systems"},
        "Managers": {"@odata.id": f"{ROOT}/Managers"},
        "Links": {"Sessions": {"@odata.id": f"{ROOT}/SessionService/Sessions"}},
        **more,
    }


def machine(system: str, manager: str, about: Tree, firmware: str, interfaces: dict[str, Tree], **more: Any) -> Tree:
    """Root, one system, one manager and its interfaces."""
    at, by = f"{ROOT}/Systems/{system}", f"{ROOT}/Managers/{manager}"
    ports = {f"{by}/EthernetInterfaces/{name}": reported for name, reported in interfaces.items()}
    return {
        ROOT: root(**more),
        f"{ROOT}/Systems": collection(at),
        at: {"BiosVersion": "1.2.3", "Links": {"ManagedBy": links(by)}, **about},
        f"{ROOT}/Managers": collection(by),
        by: {"FirmwareVersion": firmware, "EthernetInterfaces": {"@odata.id": f"{by}/EthernetInterfaces"}},
        f"{by}/EthernetInterfaces": collection(*ports),
        **ports,
    }


def port(address: str, mac: str) -> Tree:
    return {"MACAddress": mac, "IPv4Addresses": [{"Address": address}], "Status": {"State": "Enabled"}}


def dell(address: str, serial: str, mac: str) -> Tree:
    """The service tag is in `SKU`; the root shows it and the BMC's MAC without a login."""
    about = {"Manufacturer": "Dell Inc.", "Model": "PowerEdge R750", "SKU": serial, "SerialNumber": f"CN{serial}"}
    oem = {"Dell": {"ServiceTag": serial, "ManagerMACAddress": mac}}
    return machine(
        "System.Embedded.1", "iDRAC.Embedded.1", about, "6.10", {"NIC.1": port(address, mac)}, Vendor="Dell", Oem=oem
    )


def supermicro(address: str, serial: str, mac: str) -> Tree:
    """The root names no vendor; the manager lists its link to the host first."""
    about = {"Manufacturer": "Supermicro", "Model": "SYS-821GE", "SerialNumber": serial, "SKU": "0x1"}
    ports = {"ToHost": port("169.254.3.254", "be:b5:00:00:00:01"), "1": port(address, mac)}
    uuid = f"00000000-0000-0000-0000-{mac.replace(':', '')}"
    return machine("1", "1", about, "11.01", ports, UUID=uuid, Oem={"Supermicro": {}}, ProtocolFeaturesSupported=EXPAND)


def hpe(address: str, serial: str, mac: str) -> Tree:
    """A shared port that is switched off is listed with the BMC's own."""
    about = {"Manufacturer": "HPE", "Model": "ProLiant DL385", "SerialNumber": serial, "SKU": "P38411-B21"}
    off = {"MACAddress": "5c:ed:00:00:00:01", "Status": {"State": "Disabled"}, "IPv4Addresses": []}
    return machine(
        "1", "1", about, "iLO 5 v2.72", {"1": port(address, mac.upper()), "2": off}, Vendor="HPE", Oem={"Hpe": {}}
    )


def openbmc(address: str, serial: str, mac: str) -> Tree:
    """In addition to the host an HGX board is a system; interfaces are `eth0` and a link to the host. No `$expand`."""
    about = {"Manufacturer": "NVIDIA", "Model": "DGXH100", "SerialNumber": serial, "SKU": ""}
    ports = {"eth0": port(address, mac), "hostusb0": port("169.254.0.17", "be:b5:00:00:00:02")}
    tree = machine("DGX", "BMC", about, "23.11", ports, UUID=f"12345678-0000-4000-8000-{mac.replace(':', '')}")
    board = f"{ROOT}/Systems/HGX_Baseboard_0"
    tree[f"{ROOT}/Systems"] = collection(board, f"{ROOT}/Systems/DGX")
    tree[board] = {"Name": "HGX_Baseboard_0", "PowerState": "On"}
    return tree


SHAPES = {"Dell": dell, "Supermicro": supermicro, "HPE": hpe, "OpenBMC": openbmc}
