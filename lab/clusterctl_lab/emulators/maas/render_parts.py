"""The parts of a machine as MAAS's JSON: drives, interfaces, pool, zone, domain, subnet."""

from __future__ import annotations

from typing import Any

from clusterctl_lab.emulators.maas.model import Disk, Interface, Node, Partition, Pool
from clusterctl_lab.layout import Layout

Json = dict[str, Any]
API = "/MAAS/api/2.0"
GPT_OVERHEAD = 6 * 1024 * 1024
DOMAIN: Json = {
    "authoritative": True,
    "ttl": None,
    "resource_record_count": 0,
    "is_default": True,
    "id": 0,
    "name": "maas",
    "resource_uri": f"{API}/domains/0/",
}


def pool(item: Pool) -> Json:
    return {
        "name": item.name,
        "description": item.description,
        "id": item.id,
        "resource_uri": f"{API}/resourcepool/{item.id}/",
    }


def zone(name: str, number: int) -> Json:
    return {"name": name, "description": "", "id": number, "resource_uri": f"{API}/zones/{name}/"}


def vlan(*, managed: bool) -> Json:
    """Return the provisioning network's VLAN, or the VLAN of a port on another network."""
    number = 1 if managed else 2
    return {
        "vid": 0,
        "mtu": 1500,
        "dhcp_on": managed,
        "external_dhcp": None,
        "relay_vlan": None,
        "space": "space-1" if managed else "undefined",
        "secondary_rack": None,
        "primary_rack": "rack01" if managed else None,
        "id": number,
        "fabric_id": number - 1,
        "fabric": f"fabric-{number - 1}",
        "name": "untagged",
        "resource_uri": f"{API}/vlans/{number}/",
    }


def subnet(layout: Layout) -> Json:
    """The provisioning network."""
    return {
        "name": "pxe",
        "description": "",
        "vlan": vlan(managed=True),
        "cidr": str(layout.network),
        "rdns_mode": 2,
        "gateway_ip": layout.gateway,
        "dns_servers": [layout.gateway],
        "allow_dns": True,
        "allow_proxy": True,
        "active_discovery": False,
        "managed": True,
        "disabled_boot_architectures": [],
        "space": "space-1",
        "id": 1,
        "resource_uri": f"{API}/subnets/1/",
    }


def interface(node: Node, item: Interface, layout: Layout) -> Json:
    """An Ethernet port: bare before commissioning, with VLAN and links after."""
    known = node.hardware is not None
    managed = bool(item.address)
    links: list[Json] = []
    if managed:
        address = {"ip_address": item.address} if node.addressed else {}
        links = [{"id": item.link, "mode": "auto", **address, "subnet": subnet(layout)}]
    elif known:
        links = [{"id": item.link, "mode": "link_up"}]
    return {
        "numa_node": 0,
        "vendor": "Broadcom Inc. and subsidiaries" if known else None,
        "link_speed": 10000 if known else 0,
        "link_connected": True,
        "vlan": vlan(managed=managed) if known else None,
        "params": {},
        "firmware_version": "22.31.6" if known else None,
        "links": links,
        "mac_address": item.mac,
        "id": item.id,
        "system_id": node.system_id,
        "sriov_max_vf": 0,
        "interface_speed": 10000 if known else 0,
        "children": [],
        "type": "physical",
        "enabled": True,
        "discovered": [{"subnet": subnet(layout), "ip_address": item.address}] if managed else None,
        "effective_mtu": 1500,
        "product": "BCM57416 NetXtreme-E Dual-Media 10G RDMA Ethernet Controller" if known else None,
        "parents": [],
        "tags": [],
        "name": item.name,
        "resource_uri": f"{API}/nodes/{node.system_id}/interfaces/{item.id}/",
    }


def disk(node: Node, item: Disk) -> Json:
    """A physical block device."""
    return {
        "firmware_version": "1.0",
        "numa_node": 0,
        "serial": item.serial,
        "available_size": item.usable - (item.root.size if item.root else 0),
        "partitions": [_partition(node, item, item.root)] if item.root else [],
        "size": item.size,
        "id_path": f"/dev/disk/by-id/{'nvme' if item.nvme else 'ata'}-{item.model.replace(' ', '_')}_{item.serial}",
        "id": item.id,
        "system_id": node.system_id,
        "used_for": "GPT partitioned with 1 partition" if item.root else "Unused",
        "model": item.model,
        "filesystem": None,
        "type": "physical",
        "path": f"/dev/disk/by-dname/{item.name}",
        "block_size": 512,
        "used_size": item.root.size + GPT_OVERHEAD if item.root else 0,
        "tags": ["ssd"] if item.nvme else ["ssd", "sata"],
        "storage_pool": None,
        "uuid": None,
        "partition_table_type": "GPT" if item.root else None,
        "name": item.name,
        "resource_uri": f"{API}/nodes/{node.system_id}/blockdevices/{item.id}/",
    }


def _partition(node: Node, item: Disk, root: Partition) -> Json:
    return {
        "uuid": root.uuid,
        "size": root.size,
        "bootable": False,
        "tags": [],
        "filesystem": {
            "fstype": "ext4",
            "label": "root" if root.mount_point == "/" else "",
            "uuid": root.filesystem_uuid,
            "mount_point": root.mount_point,
            "mount_options": None,
        },
        "type": "partition",
        "path": f"/dev/disk/by-dname/{item.name}-part2",
        "id": root.id,
        "system_id": node.system_id,
        "device_id": item.id,
        "used_for": f"ext4 formatted filesystem mounted at {root.mount_point}",
        "resource_uri": f"{API}/nodes/{node.system_id}/blockdevices/{item.id}/partition/{root.id}",
    }
