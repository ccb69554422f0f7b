"""What to do where a tool that a probe or a load needs is missing on the node."""

from __future__ import annotations

PYTORCH = (
    "apply the role pytorch to the node (pytorch_version, pytorch_index_url), or name a Python on it that has PyTorch "
    "for CUDA in the limits file, methods.gpu_load.python (docs/explanation/gpu-loads.md)"
)
"""What is to be done where PyTorch is missing."""


def installation(tool: str, role: str) -> str:
    """Return what to do for a missing tool: `install ibstat on the node (role ib_tools)`."""
    return f"install {tool} on the node" + (f" (role {role})" if role else "")
