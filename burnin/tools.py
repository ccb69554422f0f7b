"""Which role brings the tool that a probe runs, for the person who reads that it is missing."""

from __future__ import annotations

from collections.abc import Mapping

ROLES: Mapping[str, str] = {
    "dmidecode": "base",
    "docker": "docker",
    "ibstat": "ib_tools",
    "lspci": "base",
    "nv-fabricmanager": "fabric_manager",
    "nvidia-smi": "nvidia_driver",
    "zpool": "zfs_pool",
}
"""Tools that one of our roles installs by its defaults."""
PACKAGES: Mapping[str, str] = {
    "turbostat": "linux-cpupower on Debian, linux-tools-$(uname -r) on Ubuntu; as base_extra_packages of the role base",
}
"""Tools that no role installs, and the packages that have them."""


def installation(tool: str) -> str:
    """What is to be done for a tool that is missing: `install ibstat on the node (role ib_tools)`."""
    if tool in ROLES:
        return f"install {tool} on the node (role {ROLES[tool]})"
    return f"install {tool} on the node" + (f" ({PACKAGES[tool]})" if tool in PACKAGES else "")
