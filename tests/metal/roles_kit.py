"""Roles on virtual metal: packages from the lab's repository, each run's outcome, and checks asked of the guest."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clusterctl.fleet.finding import Finding
from clusterctl.ports import Deadline, HostAddress, PlayOutcome
from clusterctl_burnin.probe import argv_for, parse_readings, script
from clusterctl_burnin.registry import CHECKS
from clusterctl_lab.emulators.apt import host_files, serve_apt
from clusterctl_lab.metal.os_image import os_image_name
from clusterctl_lab.metal.packages import metal_packages_with_zfs
from lab.tests.loop_thread import LoopThread
from tests.burnin.kit import expected
from tests.edges.ansible.support import playbooks
from tests.lab_data import lab_limits
from tests.metal.image_kit import image
from tests.metal.install_kit import MetalSite

PORT = 8090
RUN_S = 2400.0
"""On a machine ten times slower than a quiet one."""
TRIAL = "/var/tmp/trial-image.tar"


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did: its outcome, and the titles of the tasks that changed something."""

    outcome: PlayOutcome
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Guest:
    """One installed virtual machine."""

    metal: MetalSite
    name: str

    def address(self) -> HostAddress:
        node = self.metal.node(self.name)
        key = self.metal.lab.site / "secrets/ssh_ed25519"
        return HostAddress(self.name, self.metal.lab.machine(self.name)["address"], "ops", node.host_key, str(key))

    def apply(self, role: str, variables: Mapping[str, Any], *, check: bool = False) -> Run:
        """One role, with what a site would set."""
        return self._play("apply.yml", {**variables, "apply_roles": {self.name: [role]}}, check=check)

    def place(self, files: Mapping[str, Path]) -> None:
        placed = self._play("place.yml", {"placed_files": {path: str(source) for path, source in files.items()}})
        assert placed.outcome.ok, placed.outcome

    def sudo(self, *command: str) -> str:
        return self.metal.ssh(self.name, "sudo", *command)

    def check(self, name: str) -> tuple[Finding, ...]:
        """Return a burn-in check's findings on the guest, over one SSH session, as the burn-in asks it."""
        check = CHECKS[name]
        address = self.metal.lab.machine(self.name)["address"]
        argv = (
            *("ssh", "-F", "none", "-i", str(self.metal.lab.site / "secrets/ssh_ed25519"), "-o", "BatchMode=yes"),
            *("-o", f"UserKnownHostsFile={self.metal.site.scratch / f'known_{self.name}'}", f"ops@{address}"),
            *argv_for("ops", privileged=True),
        )
        sent = datetime.now(UTC)
        ran = subprocess.run(argv, input=script(check.probes), capture_output=True, timeout=600, check=False)
        assert ran.returncode == 0, ran.stderr
        limits = lab_limits()
        return check.findings(
            parse_readings(ran.stdout.decode()), expected(limits=limits, sent=sent, received=datetime.now(UTC))
        )

    def _play(self, playbook: str, variables: Mapping[str, Any], *, check: bool = False) -> Run:
        with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
            runner = playbooks(Path(work_dir), check=check, silence_s=RUN_S)
            (run,) = runner.run(playbook, [self.address()], variables, Deadline.after(RUN_S))
        return Run(run.value, tuple(_changed(run.evidence[0].content)))


def _changed(transcript: bytes) -> Iterator[str]:
    tasks: Sequence[Mapping[str, str]] = [json.loads(line) for line in transcript.splitlines()]
    return (task["task"] for task in tasks if task["status"] == "changed")


@contextmanager
def with_packages(metal: MetalSite, name: str, folder: Path) -> Iterator[Guest]:
    """The guest, with the lab's packages as its only source, and an image for a trial container."""
    guest = Guest(metal, name)
    root = metal_packages_with_zfs(os_image_name(), print)
    gateway = metal.lab.machine(name)["address"].rsplit(".", 2)[0] + ".0.1"
    loop = LoopThread()
    server = loop.run(serve_apt(root, gateway, PORT))
    try:
        guest.place(dict(_files(root, gateway, folder)))
        yield guest
    finally:
        loop.run(server.close())
        loop.close()


def _files(root: Path, gateway: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for number, (path, (content, _)) in enumerate(host_files(root, gateway, PORT).items()):
        source = folder / f"placed-{number}"
        source.write_bytes(content)
        yield path, source
    trial = folder / "trial.tar"
    trial.write_bytes(image())
    yield TRIAL, trial
