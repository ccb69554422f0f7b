"""Lays the lab's stand-in tools out in a folder and runs them there, as a lab host would, without being root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from clusterctl_lab.emulators.host_tools import EXPORTER, lower_files, machine_files
from clusterctl_lab.machine import Machine

DRIVER = "550.127.08"


class ToolBox:
    """A host's root with the stand-ins in it; `run("ibstat")` runs one."""

    def __init__(self, root: Path, machine: Machine, *, driver: bool = True) -> None:
        self.root = root
        for path, (content, mode) in {**lower_files(), **machine_files(machine)}.items():
            target = root / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.replace(b"/usr/lib/clusterctl-lab", bytes(root / "usr/lib/clusterctl-lab")))
            target.chmod(mode)
        if driver:
            (root / "usr/lib/clusterctl-lab/driver-version").write_text(f"{DRIVER}\n")
        (root / "run").mkdir(exist_ok=True)
        self.boot("1")
        self.boots_from(next((drive.serial for drive in machine.drives if drive.boot), ""))

    def boots_from(self, serial: str) -> None:
        """The OS that runs was written to this drive."""
        (self.root / "etc/clusterctl-lab/root-disk").write_text(f"{serial}\n")

    def boot(self, boot_id: str) -> None:
        """The OS restarts: the content of its memory and of the bridges' registers is gone."""
        (self.root / "run/boot_id").write_text(f"{boot_id}\n")
        (self.root / "run/acs.json").unlink(missing_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/bin:/bin",
            "CLUSTERCTL_LAB_FACTS": str(self.root / "etc/clusterctl-lab/machine.json"),
            "CLUSTERCTL_LAB_FLASH": str(self.root / "var/lib/clusterctl-lab/adapters.json"),
            "CLUSTERCTL_LAB_BOOT_ID": str(self.root / "run/boot_id"),
            "CLUSTERCTL_LAB_ACS": str(self.root / "run/acs.json"),
            "CLUSTERCTL_LAB_DOCKER": str(self.root / "run/clusterctl-lab-docker"),
            "CLUSTERCTL_LAB_PACKAGED_DOCKER": str(self.root / "usr/bin/docker-ce"),
            "CLUSTERCTL_LAB_ROOT_DISK": str(self.root / "etc/clusterctl-lab/root-disk"),
            "CLUSTERCTL_LAB_LOADED": str(self.root / "run"),
            "CLUSTERCTL_LAB_SAMPLER": str(self.root),
            "CLUSTERCTL_REQUIREMENTS": json.dumps({"dcgm_exporter": EXPORTER}),
            "CLUSTERCTL_LAB_DRIVER": str(self.root / "usr/lib/clusterctl-lab/driver-version"),
        }

    def path(self, tool: str) -> Path:
        (found,) = (p for p in self.root.rglob(tool) if os.access(p, os.X_OK) and p.is_file())
        return found

    def flags(self, tool: str) -> str:
        """As its first line has them: without packages it is the program that was laid out here which runs."""
        return self.path(tool).read_text().splitlines()[0].split()[1]

    def run(self, tool: str, *argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, self.flags(tool), str(self.path(tool)), *argv]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=600, check=False)

    def start(self, tool: str, *argv: str) -> subprocess.Popen[str]:
        command = [sys.executable, self.flags(tool), str(self.path(tool)), *argv]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=pipe, text=True)
