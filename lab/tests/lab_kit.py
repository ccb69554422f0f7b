"""Whole labs for tests, started and removed as an operator would: through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from lab.tests.hosts.hosts_kit import leftovers as host_leftovers
from lab.tests.hosts.hosts_kit import needs_lab
from tests.paths import ROOT

__all__ = ["RunningLab", "clusterctl", "eventually", "leftovers", "needs_lab", "running_lab"]


def clusterctl(*argv: str, timeout_s: float = 1200) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    command = [sys.executable, "-m", "clusterctl_cli.main", *argv]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)


@dataclass(frozen=True)
class RunningLab:
    """A lab by name, and its site directory."""

    name: str
    site: Path

    def __call__(self, command: str, *argv: str) -> str:
        """Standard output of `clusterctl lab COMMAND … --name NAME`, which must succeed."""
        result = clusterctl("lab", command, *argv, "--name", self.name)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def machine(self, name: str) -> dict[str, Any]:
        """A machine's line of `lab status --json`."""
        (found,) = (m for m in json.loads(self("status", "--json"))["machines"] if m["name"] == name)
        return dict(found)

    def redfish(self, name: str, path: str) -> dict[str, Any]:
        """A resource of a machine's BMC, its certificate verified by the site's CA."""
        password = (self.site / "secrets/bmc-password").read_text().strip()
        answer = requests.get(
            f"https://{self.machine(name)['bmc']}{path}",
            auth=("root", password),
            verify=str(self.site / "lab-ca.pem"),
            timeout=600,
        )
        answer.raise_for_status()
        return dict(answer.json())

    def ssh(self, name: str, *command: str) -> str:
        """Run a command on an installed host, with the site's key and the host keys it knows."""
        argv = (
            *("ssh", "-F", "none", "-i", str(self.site / "secrets/ssh_ed25519"), "-o", "BatchMode=yes"),
            *("-o", f"UserKnownHostsFile={self.site / 'known_hosts'}", "-o", "StrictHostKeyChecking=yes"),
            *("-o", "ConnectTimeout=30", f"ops@{self.machine(name)['address']}", *command),
        )
        return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False).stdout.strip()

    def fabric(self) -> str:
        """What the site's ibnetdiscover reads."""
        tool = Path("/var/lib/clusterctl-lab", self.name, "bin/ibnetdiscover")
        return subprocess.run([tool], capture_output=True, text=True, timeout=600, check=True).stdout

    @property
    def daemon(self) -> int:
        return int(Path(f"/run/clusterctl-lab/{self.name}.lock").read_text())


@contextmanager
def running_lab(name: str, subnet: str, folder: Path, *options: str) -> Iterator[RunningLab]:
    """A lab with short delays, removed at the end whatever happens."""
    site = folder / name
    argv = ("--name", name, "--subnet", subnet, "--site", str(site), "--short", *options)
    result = clusterctl("lab", "up", *argv, timeout_s=1800)
    assert result.returncode == 0, result.stderr  # it has left nothing; a lab of that name may be another run's
    try:
        yield RunningLab(name, site)
    finally:
        assert clusterctl("lab", "down", "--name", name, timeout_s=1800).returncode == 0


def leftovers(lab: RunningLab) -> list[str]:
    """Whatever of a lab is on this machine: its hosts' things, its daemon, files, fabric, site directory."""
    found = host_leftovers(lab.name)
    places = (Path("/run/clusterctl-lab"), Path("/var/lib/clusterctl-lab"))
    found += [str(path) for place in places for path in place.glob(f"{lab.name}*")]
    found += [str(lab.site)] if lab.site.exists() else []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            folder = str((entry / "cwd").readlink())
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:  # what even root may not look into is not ours
            continue
        if f"/clusterctl-lab/{lab.name}/" in f"{command} {folder}/":
            found.append(f"{entry}: {command}")
    return found


def eventually(probe: Callable[[], bool], seconds: float = 600.0) -> bool:
    """Return True as soon as `probe` does; False after `seconds`."""
    give_up = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True
