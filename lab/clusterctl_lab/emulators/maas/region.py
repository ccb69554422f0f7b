"""MAAS's description of itself: settings, its rack controller, images, the range of its DHCP.

Shapes: settings' names, rack controller and images as recorded from MAAS 3.4.10; settings' values are its defaults
(maasserver/models/config.py); images' sets, the rack's images and ranges are from its source (maasserver/api), not
recorded.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

from clusterctl_lab.emulators.maas import render_parts as parts
from clusterctl_lab.emulators.maas.images import DEFAULT, Image, Images
from clusterctl_lab.emulators.maas.render import hardware_info
from clusterctl_lab.emulators.maas.render_parts import API, Json
from clusterctl_lab.layout import Layout

RACK = "rack01"
DYNAMIC_SHARE = 4
_SERVICES = ("ntp_rack", "dhcpd", "dhcpd6", "dns_rack", "tftp", "rackd", "syslog_rack", "http", "proxy_rack")
_TESTS = ("commissioning", "testing", "storage_test", "other_test", "interface_test", "memory_test", "cpu_test")
SETTINGS: Json = {
    "maas_name": RACK,
    "theme": "",
    "kernel_opts": None,
    "enable_http_proxy": True,
    "maas_proxy_port": 8000,
    "use_peer_proxy": False,
    "prefer_v4_proxy": False,
    "http_proxy": None,
    "default_dns_ttl": 30,
    "upstream_dns": None,
    "dnssec_validation": "auto",
    "maas_internal_domain": "maas-internal",
    "dns_trusted_acl": None,
    "ntp_servers": "ntp.ubuntu.com",
    "ntp_external_only": False,
    "remote_syslog": None,
    "maas_syslog_port": 5247,
    "network_discovery": "enabled",
    "active_discovery_interval": 10800,
    "default_osystem": DEFAULT.partition("/")[0],
    "default_distro_series": DEFAULT.partition("/")[2],
    "default_min_hwe_kernel": "",
    "default_storage_layout": "flat",
    "commissioning_distro_series": DEFAULT.partition("/")[2],
    "enable_third_party_drivers": True,
    "windows_kms_host": None,
    "enable_disk_erasing_on_release": False,
    "disk_erase_with_secure_erase": True,
    "disk_erase_with_quick_erase": False,
    "boot_images_auto_import": True,
    "boot_images_no_proxy": False,
    "curtin_verbose": True,
    "force_v1_network_yaml": False,
    "enable_analytics": True,
    "completed_intro": False,
    "max_node_commissioning_results": 10,
    "max_node_testing_results": 10,
    "max_node_installation_results": 3,
    "subnet_ip_exhaustion_threshold_count": 16,
    "release_notifications": True,
    "use_rack_proxy": True,
    "node_timeout": 30,
    "prometheus_enabled": False,
    "prometheus_push_gateway": None,
    "prometheus_push_interval": 60,
    "promtail_enabled": False,
    "promtail_port": 5238,
    "enlist_commissioning": True,
    "maas_auto_ipmi_user": "maas",
    "maas_auto_ipmi_user_privilege_level": "ADMIN",
    "maas_auto_ipmi_k_g_bmc_key": "",
    "maas_auto_ipmi_cipher_suite_id": "3",
    "maas_auto_ipmi_workaround_flags": None,
    "vcenter_server": "",
    "vcenter_username": "",
    "vcenter_password": "",
    "vcenter_datacenter": "",
    "hardware_sync_interval": "15m",
    "tls_cert_expiration_notification_enabled": False,
    "tls_cert_expiration_notification_interval": 30,
    "session_length": 1209600,
    "auto_vlan_creation": True,
}


def rack_controller(layout: Layout, *, connected: bool) -> Json:
    """Return the one rack controller; `connected`: it is connected to the region."""
    status = "running" if connected else "dead"
    return {
        "system_id": RACK,
        "hostname": RACK,
        "fqdn": f"{RACK}.maas",
        "node_type": 2,
        "node_type_name": "Rack controller",
        "version": None,
        "description": "",
        "architecture": "amd64/generic",
        "osystem": "",
        "distro_series": "",
        "cpu_count": 0,
        "cpu_speed": 0,
        "memory": 0,
        "swap_size": None,
        "power_type": "",
        "power_state": "unknown",
        "status_action": None,
        "hardware_uuid": None,
        "hardware_info": hardware_info(None),
        "tag_names": [],
        "domain": parts.DOMAIN,
        "zone": parts.zone("default", 1),
        "ip_addresses": [layout.maas],
        "interface_set": [],
        "service_set": [{"name": name, "status": status, "status_info": ""} for name in _SERVICES],
        **{f"{name}_status": -1 for name in (*_TESTS, "network_test")},
        **{f"{name}_status_name": "Unknown" for name in (*_TESTS, "network_test")},
        **{f"current_{name}_result_id": None for name in ("commissioning", "testing", "installation")},
        "resource_uri": f"{API}/rackcontrollers/{RACK}/",
    }


def rack_images(images: Images, unsynced: set[str], *, connected: bool) -> Json:
    """What the rack controller has of the region's images: `op=list_boot_images`."""
    if not connected:
        return {"images": [], "connected": False, "status": "unknown"}
    found = [
        {"name": image.shown, "architecture": "amd64", "subarches": ["generic", *image.kernels]}
        for image in images.all
        if image.series not in unsynced
    ]
    return {"images": found, "connected": True, "status": "syncing" if unsynced else "synced"}


def boot_resources(images: Images) -> list[tuple[Image, Json]]:
    """The region's, one for each image and kernel; custom ones last."""
    ordered = sorted(images.all, key=lambda image: image.osystem == "custom")
    pairs = [(image, kernel) for image in ordered for kernel in image.kernels]
    return [(image, _boot_resource(image, kernel, number)) for number, (image, kernel) in enumerate(pairs, start=1)]


def boot_resource_sets(image: Image, unsynced: set[str]) -> Json:
    """The versions of an image that the region has, or is fetching."""
    complete = image.series not in unsynced
    one = {"version": "20261101", "label": "stable", "size": 0, "complete": complete, "progress": 100.0 * complete}
    return {"20261101": {**one, "files": {}}}


def _boot_resource(image: Image, kernel: str, number: int) -> Json:
    custom = image.osystem == "custom"
    return {
        "id": number,
        "type": "Uploaded" if custom else "Synced",
        "name": image.shown,
        "architecture": "amd64/generic" if custom else f"amd64/{kernel}",
        "resource_uri": f"{API}/boot-resources/{number}/",
        "last_deployed": None,
        "title": "",
        "subarches": "generic",
        **({} if custom else {"platform": "generic", "supported_platforms": "generic"}),
    }


def dynamic_range(subnet: Json, layout: Layout) -> Json:
    """The last quarter of the network."""
    count = layout.network.num_addresses // DYNAMIC_SHARE
    last = layout.network.broadcast_address - 1
    user: dict[str, Any] = {"username": "admin", "is_superuser": True, "email": "admin@lab.invalid", "is_local": True}
    return {
        "subnet": subnet,
        "type": "dynamic",
        "start_ip": str(IPv4Address(int(last) - count + 1)),
        "end_ip": str(last),
        "user": user,
        "comment": "",
        "id": 1,
        "resource_uri": f"{API}/ipranges/1/",
    }
