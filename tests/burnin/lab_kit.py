"""A few lab hosts with the stand-in tools, reached over SSH as the burn-in step reaches them. Needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.finding import Origin
from clusterctl.ports import Deadline, HostAddress
from clusterctl_burnin.loads.model import Answer, Round
from clusterctl_burnin.probe import parse_readings
from clusterctl_lab.emulators.host_tools import lower_files, machine_files
from clusterctl_lab.healthy import build
from clusterctl_lab.hosts.leftovers import erase_disks, sweep_leftovers
from clusterctl_lab.hosts.namespace_hosts import HostSettings, NamespaceHosts
from clusterctl_lab.image import ensure_image
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.loop_thread import LoopThread

LAB = "tburnin"
USER = "ops"
DRIVER = "550.127.08"
SSH = Path(f"/home/{USER}/.ssh")

needs_lab = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mmdebstrap") is None, reason="needs root and the mmdebstrap package"
)


class UtcClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True)
class Hosts:
    """Running hosts, by machine name, and the shell to them."""

    machines: Mapping[str, Machine]
    addresses: Mapping[str, HostAddress]
    shell: ParamikoShell
    faces: NamespaceHosts
    loop: LoopThread

    def sh(self, name: str, text: str, stdin: str = "") -> str:
        """Run a script; a secret is never in it, but on stdin."""
        ran = self.loop.run(self.faces.exec(name, ["sh", "-ec", text], stdin=stdin.encode()))
        assert ran.rc == 0, ran.stderr
        return ran.stdout.decode()

    def answer(self, one: Round) -> Mapping[str, Answer]:
        """What a step does with a round: all commands at once, each answer or the reason why there is none."""
        with ThreadPoolExecutor(len(one.commands)) as pool:
            runs = {name: pool.submit(self._run, one, name) for name in one.commands}
        return {name: run.result() for name, run in runs.items()}

    def _run(self, one: Round, name: str) -> Answer:
        command = one.commands[name]
        ran = self.shell.run(self.addresses[name], command.argv, command.stdin, Deadline.after(one.timeout)).value
        assert ran.exit_status == 0, ran.stderr
        return parse_readings(ran.stdout)


def key(folder: Path, name: str) -> tuple[str, str]:
    path = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)], check=True)
    return path.read_text(), path.with_suffix(".pub").read_text().strip()


@contextmanager
def lab_hosts(folder: Path, count: int) -> Iterator[Hosts]:
    """`count` booted hosts; nothing of them is left afterwards."""
    layout = Layout(IPv4Network("10.178.0.0/16"))
    machines = {m.name: m for m in (build(index, layout, "unused") for index in range(1, count + 1))}
    tools = folder / "tools"
    lay(tools, lower_files())
    settings = HostSettings(
        lab=LAB,
        layout=layout,
        image=ensure_image(print),
        state_dir=folder / "state",
        skeleton=machine_files,
        extra_lower=tools,
    )
    loop = LoopThread()
    loop.run(sweep_leftovers(LAB))
    faces = NamespaceHosts(settings)
    try:
        loop.run(faces.start())
        addresses = install(faces, machines, folder, loop)
        with ParamikoShell(UtcClock(), Origin.REAL) as shell:
            hosts = Hosts(machines, addresses, shell, faces, loop)
            for name in machines:
                prepare_host(hosts, name, folder)
            yield hosts
    finally:
        loop.run(faces.close())
        loop.close()
        erase_disks(settings.state_dir)


def lay(root: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Write the files below `root`, as the lab's daemon does."""
    for path, (content, mode) in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode)
    for directory in (root, *(p for p in root.rglob("*") if p.is_dir())):
        directory.chmod(0o755)


def install(
    faces: NamespaceHosts, machines: Mapping[str, Machine], folder: Path, loop: LoopThread
) -> dict[str, HostAddress]:
    _, public = key(folder, USER)
    addresses = {}
    for machine in machines.values():
        private, host_key = key(folder, f"host-{machine.name}")
        user = {"name": USER, "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "ssh_authorized_keys": [public]}
        config = {
            "hostname": machine.name,
            "users": [user],
            "ssh_keys": {"ed25519_private": private, "ed25519_public": host_key},
        }
        data = b"#cloud-config\n" + yaml.safe_dump(config).encode()
        loop.run(faces.install(machine, machine.drives[0].serial, data))
        loop.run(faces.boot(machine))
        addresses[machine.name] = HostAddress(machine.name, machine.address, USER, host_key, str(folder / USER))
    return addresses


def prepare_host(hosts: Hosts, name: str, folder: Path) -> None:
    """What the roles would have done: the driver's package, keys between the nodes."""
    known = "\n".join(f"{a.address} {a.host_key}" for a in hosts.addresses.values())
    hosts.sh(
        name,
        f"echo {DRIVER} > /usr/lib/clusterctl-lab/driver-version\n"
        "ln -sf /usr/lib/clusterctl-lab/nvidia-smi /usr/bin/nvidia-smi\n"
        f"(umask 077; cat > {SSH}/id_ed25519)\n"
        f"cat > {SSH}/known_hosts <<'END'\n{known}\nEND\n"
        f"chown {USER}: {SSH}/*; chmod 600 {SSH}/id_ed25519\n"
        "until [ -S /run/dbus/system_bus_socket ]; do sleep 0.1; done\n"
        "systemctl is-system-running --wait >/dev/null || true\n",
        stdin=(folder / USER).read_text(),
    )
