"""What a virtual machine's OS may read of its machine while it runs: a folder of ours that it mounts read-only (9p).

What is written here is seen inside at once: that is how a fault reaches the tools of a running virtual machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.machine import Machine

TAG = "clusterctl-lab"
"""The name under which the virtual machine finds it."""


@dataclass(frozen=True, slots=True)
class Shares:
    """One folder per machine, next to its drives in `folder`."""

    folder: Path

    def path(self, machine: Machine) -> Path:
        return self.folder / machine.name / "share"

    def write(self, machine: Machine, files: Mapping[str, tuple[bytes, int]]) -> None:
        """File name → content and mode; each file is the old one or the new one at any moment."""
        folder = self.path(machine)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for name, (content, mode) in files.items():
            draft = folder.with_name("share.new")
            draft.write_bytes(content)
            draft.chmod(mode)
            draft.replace(folder / name)
