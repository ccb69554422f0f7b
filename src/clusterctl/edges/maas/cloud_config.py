"""The cloud-init user-data of a node: its name, its user, and the host key that it shows at the first connection."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import yaml

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.formats.host.netplan import FILE, netplan_file
from clusterctl.formats.host.networkd import udev_rules
from clusterctl.ports import InstallTarget

HEADER = "#cloud-config\n"
INSTALL_LASTS_S = 86400
"""Longer than this after its user-data was made, no machine boots for the first time."""
SET_CLOCK = (
    'now=$(date +%s); if [ "$now" -lt {earliest} ] || [ "$now" -gt {latest} ]; then '
    'date -u -s "@{earliest}"; hwclock --utc --systohc; fi; true'
)


def cloud_config(target: InstallTarget, now: datetime) -> str:
    """Return the `#cloud-config` YAML for `target`, made at `now`. It holds the private host key: a secret.

    It uses cloud-init's modules bootcmd, set_hostname, users_groups and ssh, and write_files and runcmd where the site
    defines the host's network. Raises `UsageError` where a key is missing, since the host would then be unknown or
    unreachable.
    """
    if not target.host_key_private or not target.host_key_public:
        raise UsageError(
            "no SSH host key was made for the node", where=target.name, remedy="run the install step again"
        )
    if not target.authorized_key:
        raise UsageError(
            "no public key is given for logging in", where=target.name, remedy="set ssh.private_key in site.yml"
        )
    document: dict[str, Any] = {
        "bootcmd": [["cloud-init-per", "once", "clusterctl-clock", "sh", "-c", _set_clock(now)]],
        "hostname": target.name,
        "preserve_hostname": False,
        "users": [_user(target)],
        "disable_root": target.user != "root",
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": target.host_key_private, "ed25519_public": target.host_key_public},
        **network_config(target.network),
    }
    return HEADER + yaml.safe_dump(document, sort_keys=False, width=1000)


def _set_clock(now: datetime) -> str:
    """Return the command that sets a clock which is hours or years off, before anything uses TLS.

    The time is in the command, so that no network is needed. NTP, which MAAS's vendor-data points at its racks, does
    the rest. The command acts at the first boot only: `bootcmd` runs at each.
    """
    earliest = int(now.timestamp())
    return SET_CLOCK.format(earliest=earliest, latest=earliest + INSTALL_LASTS_S)


def _user(target: InstallTarget) -> dict[str, Any]:
    if target.user == "root":
        return {"name": "root", "ssh_authorized_keys": [target.authorized_key]}
    return {
        "name": target.user,
        "shell": "/bin/bash",
        "lock_passwd": True,
        "sudo": "ALL=(ALL) NOPASSWD:ALL",
        "ssh_authorized_keys": [target.authorized_key],
    }


MAAS_OWN = "/etc/netplan/50-cloud-init.yaml"
KEEP_OUT = "/etc/cloud/cloud.cfg.d/99-clusterctl-network.cfg"
"""Two files that name the same port contradict each other, so cloud-init must not write its own again."""


def network_config(network: HostNetwork) -> dict[str, Any]:
    """Return the keys of modules write_files and runcmd; none where the site defines no network."""
    if not network:
        return {}
    rules = udev_rules(network)
    files = {KEEP_OUT: "network: {config: disabled}\n", FILE: netplan_file(network), **rules}
    return {
        "write_files": [_file(path, content) for path, content in files.items()],
        "runcmd": [["rm", "-f", MAAS_OWN], *(_renaming() if rules else ()), ["netplan", "apply"]],
    }


def _renaming() -> list[list[str]]:
    """Return the commands that rename IPoIB interfaces, which came up before the rules that name them."""
    return [
        ["udevadm", "control", "--reload"],
        ["udevadm", "trigger", "--action=add", "--subsystem-match=net"],
        ["udevadm", "settle"],
    ]


def _file(path: str, content: str) -> dict[str, str]:
    return {"path": path, "content": content, "permissions": "0600" if path == FILE else "0644"}
