"""A machine as MAAS's JSON: the 78 fields of `GET /machines/<id>/`, in the shape recorded from MAAS 3.4.10."""

from __future__ import annotations

from clusterctl_lab.emulators.maas import render_parts as parts
from clusterctl_lab.emulators.maas.model import LEVELS, Event, Hardware, Node, Store
from clusterctl_lab.emulators.maas.render_parts import API, Json
from clusterctl_lab.layout import Layout

SCRIPT_STATES = {-1: "Unknown", 0: "Pending", 2: "Passed", 3: "Failed"}
UNKNOWN = "Unknown"


def machine(node: Node, store: Store, layout: Layout) -> Json:
    """The whole object."""
    return {**_identity(node), **_placement(node, store), **_operation(node), **_hardware(node, layout), **_tests(node)}


def enlisted(node: Node) -> Json:
    """Return the 14 fields that a caller without a key may read."""
    hidden = ("resource_uri",)
    return {
        "status_name": node.status.label,
        "status_action": None,
        "power_type": node.power_type,
        "power_state": node.power_state,
        "status": int(node.status),
        "architecture": node.architecture,
        "system_id": node.system_id,
        "node_type": 0,
        "domain": {key: value for key, value in parts.DOMAIN.items() if key not in hidden},
        "status_message": None,
        "hostname": node.hostname,
        "zone": {key: value for key, value in parts.zone(node.zone, 1).items() if key not in hidden},
        "fqdn": f"{node.hostname}.{node.domain}",
        "resource_uri": f"{API}/machines/{node.system_id}/",
    }


def event(item: Event) -> Json:
    """One event; `created` has no time zone (it is UTC) and a dot after the month, as recorded."""
    return {
        "username": "unknown",
        "node": item.system_id,
        "hostname": item.hostname,
        "id": item.id,
        "level": item.level,
        "created": item.at.strftime("%a, %d %b. %Y %H:%M:%S"),
        "type": item.type,
        "description": item.description,
    }


def _identity(node: Node) -> Json:
    return {
        "system_id": node.system_id,
        "hostname": node.hostname,
        "fqdn": f"{node.hostname}.{node.domain}",
        "node_type": 0,
        "node_type_name": "Machine",
        "architecture": node.architecture,
        "description": node.description,
        "hardware_uuid": node.hardware.uuid if node.hardware else None,
        "parent": None,
        "pod": None,
        "virtualmachine_id": None,
        "resource_uri": f"{API}/machines/{node.system_id}/",
    }


def _placement(node: Node, store: Store) -> Json:
    return {
        "pool": parts.pool(store.pools[node.pool]),
        "zone": parts.zone(node.zone, store.zones[node.zone]),
        "domain": parts.DOMAIN,
        "tag_names": sorted(node.tags),
        "owner": node.owner or None,
        "owner_data": dict(node.annotations),
        "workload_annotations": dict(node.annotations),
        "locked": node.locked,
    }


def _operation(node: Node) -> Json:
    last = next((item for item in reversed(node.events) if LEVELS[item.level] >= LEVELS["INFO"]), None)
    message = None if last is None else last.type + (f" - {last.description}" if last.description else "")
    return {
        "status": int(node.status),
        "status_name": node.status.label,
        "status_message": message,
        "status_action": None if last is None else last.action,
        "power_type": node.power_type,
        "power_state": node.power_state,
        "netboot": node.netboot,
        "osystem": node.osystem,
        "distro_series": node.series,
        "hwe_kernel": node.kernel or None,
        "min_hwe_kernel": "",
        "ephemeral_deploy": node.ephemeral,
        "enable_hw_sync": False,
        "sync_interval": None,
        "next_sync": None,
        "last_sync": None,
        "bios_boot_method": None,
        "disable_ipv4": False,
        "address_ttl": None,
        "swap_size": None,
        "current_commissioning_result_id": node.commissioning_id,
        "current_testing_result_id": node.testing_id,
        "current_installation_result_id": node.installation_id,
    }


def _hardware(node: Node, layout: Layout) -> Json:
    known = node.hardware
    disks = [parts.disk(node, item) for item in node.disks]
    interfaces = [parts.interface(node, item, layout) for item in node.interfaces]
    cores = list(range(known.cpu_count)) if known else []
    memory = known.memory_mib if known else 0
    return {
        "cpu_count": len(cores),
        "cpu_speed": 0,
        "memory": memory,
        "storage": sum(item.size for item in node.disks) / 1e6,
        "hardware_info": hardware_info(known),
        "numanode_set": [{"index": 0, "memory": memory, "cores": cores, "hugepages_set": []}],
        "interface_set": interfaces,
        "boot_interface": interfaces[0] if interfaces else None,
        "ip_addresses": [item.address for item in node.interfaces if item.address],
        "default_gateways": {
            "ipv4": {"gateway_ip": layout.gateway if known else None, "link_id": None},
            "ipv6": {"gateway_ip": None, "link_id": None},
        },
        "boot_disk": parts.disk(node, node.boot_disk) if node.boot_disk else None,
        "blockdevice_set": disks,
        "physicalblockdevice_set": disks,
        "virtualblockdevice_set": [],
        "special_filesystems": [],
        "volume_groups": [],
        "cache_sets": [],
        "bcaches": [],
        "raids": [],
    }


def hardware_info(known: Hardware | None) -> Json:
    info = dict.fromkeys(
        (
            *(f"system_{field}" for field in ("vendor", "product", "family", "version", "sku", "serial")),
            "cpu_model",
            *(f"mainboard_{field}" for field in ("vendor", "product", "serial", "version")),
            *(f"mainboard_firmware_{field}" for field in ("vendor", "date", "version")),
            *(f"chassis_{field}" for field in ("vendor", "type", "serial", "version")),
        ),
        UNKNOWN,
    )
    if known is not None:
        info.update(
            system_vendor=known.vendor,
            system_product=known.product,
            system_serial=known.serial,
            mainboard_vendor=known.vendor,
            mainboard_firmware_vendor=known.vendor,
            mainboard_firmware_version=known.bios_version,
            chassis_vendor=known.vendor,
            chassis_serial=known.serial,
        )
    return info


def _tests(node: Node) -> Json:
    """The script states. MAAS's default tests exercise the drives: `storage` follows `testing`."""
    states = {
        "commissioning": node.commissioning,
        "testing": node.testing,
        "storage_test": node.testing,
        **dict.fromkeys(("cpu_test", "memory_test", "network_test", "interface_test", "other_test"), -1),
    }
    body: Json = {}
    for kind, state in states.items():
        body[f"{kind}_status"] = state
        body[f"{kind}_status_name"] = SCRIPT_STATES[state]
    return body
