"""Which role brings what a probe needs on the node, for the person who reads that it is missing."""

from __future__ import annotations

from collections.abc import Mapping

ROLES: Mapping[str, str] = {
    "dmidecode": "base",
    "docker": "docker",
    "ibstat": "ib_tools",
    "lspci": "base",
    "nv-fabricmanager": "fabric_manager",
    "nvidia-smi": "nvidia_driver",
    "turbostat": "burnin_tools",
    "zpool": "zfs_pool",
}
"""Tools that one of our roles installs by its defaults."""
PYTORCH = (
    "apply the role pytorch to the node (pytorch_version, pytorch_index_url), or name a Python on it that has PyTorch "
    "for CUDA in the limits file, methods.gpu_load.python (docs/explanation/gpu-loads.md)"
)
"""What is to be done where PyTorch is missing."""


def installation(tool: str) -> str:
    """What is to be done for a tool that is missing: `install ibstat on the node (role ib_tools)`."""
    role = f" (role {ROLES[tool]})" if tool in ROLES else ""
    return f"install {tool} on the node{role}"
