"""What several tests of this folder need: keys, addresses, a clock, the edge, and a way to see what is left behind."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from clusterctl.edges.ansible.controller_transport.playbooks import ControllerPlaybooks
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.edges.resources import resource
from clusterctl.fleet.finding import Origin
from clusterctl.ports import HostAddress
from tests.processes import inheriting

DATA = Path(__file__).parent / "data"
PINNED = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIrmHHgBnQf0i1JpNbyPBzrGlrXOAvJPmzaF6E0oEtHs"


class FixedClock:
    """Always the same moment."""

    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def key_pair() -> tuple[str, str]:
    """A fresh ed25519 key in OpenSSH's forms: private, public."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    return private, public


def host(name: str, *, port: int = 1, host_key: str = PINNED, key_file: str = "/nonexistent") -> HostAddress:
    """A host on loopback; port 1 is closed, which local playbooks do not notice."""
    user = os.environ.get("USER", "root")
    return HostAddress(name, "127.0.0.1", user, host_key, key_file, port)


def run_settings(work_dir: Path, playbooks_dir: Path = DATA) -> RunSettings:
    return RunSettings(
        work_dir=work_dir,
        playbooks_dir=playbooks_dir,
        roles_dir=resource("roles"),
        limits=PlayLimits(4),
        origin=Origin.SIMULATED,
        clock=FixedClock(),
        silence_s=600.0,
    )


def playbooks(
    work_dir: Path, playbooks_dir: Path = DATA, *, check: bool = False, silence_s: float = 600.0
) -> ControllerPlaybooks:
    return ControllerPlaybooks(replace(run_settings(work_dir, playbooks_dir), check=check, silence_s=silence_s))


def processes(work_dir: Path) -> dict[int, str]:
    """Command line by process id, of every process whose environment names `work_dir`: a run's children inherit it."""
    return {process.pid: process.command for process in inheriting(str(work_dir))}


def processes_of(work_dir: Path) -> list[str]:
    """Their command lines."""
    return list(processes(work_dir).values())
