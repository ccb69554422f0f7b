"""The host's own network within cloud-init's user-data.

MAAS lays the network that it knows (the port that it booted, as its subnet says). Bonds, VLANs and rails of the site
would have to be modelled in MAAS a second time, as fabrics and subnets; so the host gets the site's netplan file
instead, in place of the one that MAAS had cloud-init write, once MAAS has seen the machine come up.
"""

from __future__ import annotations

from typing import Any

from clusterctl.fleet.host_network import HostNetwork
from clusterctl.formats.host.netplan import FILE, netplan_file
from clusterctl.formats.host.networkd import udev_rules

MAAS_OWN = "/etc/netplan/50-cloud-init.yaml"
KEEP_OUT = "/etc/cloud/cloud.cfg.d/99-clusterctl-network.cfg"
"""Two files that name the same port contradict each other, so cloud-init must not write its own again."""


def network_config(network: HostNetwork) -> dict[str, Any]:
    """Keys of a cloud-config (modules write_files and runcmd); none where the site says nothing of the network."""
    if not network:
        return {}
    rules = udev_rules(network)
    files = {KEEP_OUT: "network: {config: disabled}\n", FILE: netplan_file(network), **rules}
    return {
        "write_files": [_file(path, content) for path, content in files.items()],
        "runcmd": [["rm", "-f", MAAS_OWN], *(_renaming() if rules else ()), ["netplan", "apply"]],
    }


def _renaming() -> list[list[str]]:
    """IPoIB interfaces came up before the rules that name them."""
    return [
        ["udevadm", "control", "--reload"],
        ["udevadm", "trigger", "--action=add", "--subsystem-match=net"],
        ["udevadm", "settle"],
    ]


def _file(path: str, content: str) -> dict[str, str]:
    return {"path": path, "content": content, "permissions": "0600" if path == FILE else "0644"}
