"""Installs of virtual metal through clusterctl's own PXE, and what is asked of the hosts afterwards."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterctl.fleet.state import NodeState
from lab.tests.lab_kit import RunningLab, running_lab
from tests.e2e.site_kit import Controller, Site
from tests.metal.drives_kit import digest, drives, fill
from tests.metal.metal_kit import console

NODES = ("node001", "node002")
INSTALL_S = 1500.0
"""On a machine ten times slower than a quiet one."""
TO_INSTALL = ("bootstrap", "--until", "install", "--yes")
TO_GOLD = ("bootstrap", "--yes")
GOLD_S = 3 * INSTALL_S
"""From power-off to gold."""
ANSWER_S = 300.0
ROOT = "BOSS"


@dataclass(frozen=True)
class MetalSite:
    """The site of a lab of virtual metal."""

    lab: RunningLab
    site: Site

    def install(self, *more: str) -> Controller:
        """From power-off to SSH, to the end of the run."""
        with self.site.start(*TO_INSTALL, *more) as run:
            run.wait(INSTALL_S)
        return run

    def node(self, name: str) -> NodeState:
        (found,) = (state for state in self.site.states() if state.name == name)
        return found

    def bootstrap(self) -> Controller:
        """From power-off to gold, to the end of the run."""
        with self.site.start(*TO_GOLD) as run:
            run.wait(GOLD_S)
        return run

    def ssh(self, name: str, *command: str, stdin: bytes = b"", seconds: float = ANSWER_S) -> str:
        """Standard output of a command on the host, whose key must be the one that the installer has pinned."""
        address = self.lab.machine(name)["address"]
        known = self.site.scratch / f"known_{name}"
        known.write_text(f"{address} {self.node(name).host_key}\n")
        argv = (
            *("ssh", "-F", "none", "-i", str(self.lab.site / "secrets/ssh_ed25519"), "-o", "BatchMode=yes"),
            *("-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=60"),
            *(f"ops@{address}", *command),
        )
        ran = subprocess.run(argv, input=stdin, capture_output=True, timeout=seconds, check=False)
        assert ran.returncode == 0, ran.stderr.decode(errors="replace")
        return ran.stdout.decode().strip()

    def fill_data_drives(self) -> None:
        """Write a user's data to every data drive of every machine; the machines must be off."""
        for serial, drive in self._data_drives().items():
            fill(drive, serial)

    def data(self) -> Mapping[str, str]:
        """The digest of every data drive, by its serial."""
        return {serial: digest(drive) for serial, drive in self._data_drives().items()}

    def _data_drives(self) -> dict[str, Path]:
        every = (drives(self.lab, row["name"]) for row in self.rows())
        return {serial: path for each in every for serial, path in each.items() if not serial.startswith(ROOT)}

    def rows(self) -> list[dict[str, Any]]:
        return list(json.loads(self.lab("status", "--json"))["machines"])

    def consoles(self) -> str:
        """Return the last console lines of all machines, to find the reason of a failure."""
        return "\n".join(f"== {row['name']}\n{console(self.lab, row['name'])[-4000:]}" for row in self.rows())


@dataclass(frozen=True)
class Installed:
    """After one run; `before` are the digests of the data drives before it."""

    metal: MetalSite
    run: Controller
    before: Mapping[str, str]


@contextmanager
def metal_site(name: str, subnet: str, folder: Path, hosts: int, *options: str) -> Iterator[MetalSite]:
    """A lab of virtual metal with data on its data drives, all machines off."""
    size = ("--hosts", str(hosts), "--rails", "1")
    with running_lab(name, subnet, folder, "--metal", "qemu", *size, *options) as lab:
        found = MetalSite(lab, Site(lab, folder / "runs"))
        found.site.scratch.mkdir()
        found.fill_data_drives()
        yield found
