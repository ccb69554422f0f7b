"""A few lab hosts and their apt repository, for tests that configure real (if small) machines."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from clusterctl.ports import Deadline, HostAddress
from clusterctl_lab.emulators.apt import DRIVER_VERSION, ensure_repository, host_files, serve_apt, vendor_repository
from clusterctl_lab.emulators.apt.repository import DEBIAN
from clusterctl_lab.emulators.apt.vendors import VENDORS
from clusterctl_lab.emulators.host_tools.files import LIBRARY, lower_files, machine_files
from clusterctl_lab.healthy import build
from clusterctl_lab.hosts import Skeleton
from clusterctl_lab.hosts.leftovers import erase_disks, sweep_leftovers
from clusterctl_lab.hosts.namespace_hosts import HostSettings, NamespaceHosts
from clusterctl_lab.image import ensure_image
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.loop_thread import LoopThread
from tests.edges.ansible import nccl_archive
from tests.edges.ansible.support import key_pair

USER = "ops"
GPU_TOOLS = ("nvidia-smi", "lspci")
FABRIC_TOOLS = ("adapter-firmware.bin", "adapter-sysfs", "dmidecode", "ibstat", "mstconfig", "mstflint", "setpci")
STAND_INS = frozenset(GPU_TOOLS + FABRIC_TOOLS)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Running hosts, and what `configure.yml` needs to know of them.

    machines  what the hosts run on, in their order
    services  an address of the controller that the hosts reach
    change    shows a running host its changed machine, as `lab inject` and `lab heal` do
    """

    hosts: Sequence[HostAddress]
    variables: Mapping[str, Any]
    root: Path
    machines: Sequence[Machine]
    services: str
    change: Callable[[Machine], None]

    def read(self, name: str, path: str) -> str:
        """A file of a host, from outside."""
        return (self.root / "hosts" / name / "upper" / path.lstrip("/")).read_text()


@contextmanager
def rehearsal(
    state_dir: Path, *, lab: str, network: str, count: int, also: Callable[[Machine], Skeleton] = lambda _: {}
) -> Iterator[Rehearsal]:
    """`count` installed and booted hosts with sshd answering; nothing of them is left afterwards.

    `also`: further files of a host.
    """
    layout = Layout(IPv4Network(network))
    machines = [build(index, layout, "unused", rails=1) for index in range(1, count + 1)]
    image = ensure_image(print)
    root = ensure_repository(image, print)
    files = {**stand_in_tools(), **host_files(root, layout.apt)}
    files[nccl_archive.PATH] = (nccl_archive.nccl_archive(), 0o644)

    def skeleton(machine: Machine) -> Skeleton:
        return {**files, **machine_files(machine), **also(machine)}

    settings = HostSettings(lab, layout, image, state_dir, rails=1, skeleton=skeleton)
    loop = LoopThread()
    loop.run(sweep_leftovers(lab))
    hosts = NamespaceHosts(settings)
    try:
        loop.run(hosts.start())
        loop.run(hosts.add_addresses([layout.apt]))
        server = loop.run(serve_apt(root, layout.apt))
        try:
            addresses = [_install(hosts, machine, state_dir, loop) for machine in machines]
            serials = {"lab_serials": {machine.name: machine.serial for machine in machines}}
            variables = {**_variables(addresses, root, layout), **serials}
            yield Rehearsal(
                addresses, variables, state_dir, machines, layout.apt, lambda machine: loop.run(hosts.refresh(machine))
            )
        finally:
            loop.run(server.close())
    finally:
        loop.run(hosts.close())
        loop.close()
        erase_disks(state_dir)


def stand_in_tools() -> Skeleton:
    """Those that roles ask of GPUs, adapters and the PCI bus; the others would hide what roles install."""
    return {
        path: file for path, file in lower_files().items() if path.startswith(LIBRARY) or Path(path).name in STAND_INS
    }


def _install(hosts: NamespaceHosts, machine: Machine, state_dir: Path, loop: LoopThread) -> HostAddress:
    host_private, host_public = key_pair()
    private, public = key_pair()
    key_file = state_dir / f"{machine.name}.key"
    key_file.write_text(private)
    key_file.chmod(0o600)
    user = {"name": USER, "sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "ssh_authorized_keys": [public]}
    keys = {"ed25519_private": host_private, "ed25519_public": host_public}
    config = {"hostname": machine.name, "users": [user], "ssh_keys": keys}
    loop.run(hosts.install(machine, machine.drives[0].serial, b"#cloud-config\n" + yaml.safe_dump(config).encode()))
    loop.run(hosts.boot(machine))
    _await_ssh(machine.address)
    return HostAddress(machine.name, machine.address, USER, host_public, str(key_file))


def _await_ssh(address: str) -> None:
    deadline = Deadline.after(300)
    while True:
        try:
            with socket.create_connection((address, 22), timeout=30) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            deadline.sleep(0.1, f"waiting for sshd of {address}")


def _variables(hosts: Sequence[HostAddress], root: Path, layout: Layout) -> Mapping[str, Any]:
    """Return what the lab's site passes to `configure.yml`, and every vendor's repository."""
    repositories = {vendor: vendor_repository(vendor, root, layout.apt) for vendor in VENDORS}
    url, key = repositories["nvidia"]
    return {
        "base_hosts": {host.name: host.address for host in hosts},
        "base_sysctl": {"net.core.somaxconn": 4096, "net.ipv4.tcp_mtu_probing": 1, "vm.zone_reclaim_mode": 0},
        "ssh_access_nodes": {host.name: {"address": host.address, "host_key": host.host_key} for host in hosts},
        "ssh_access_node_users": ["root", USER],
        "ssh_access_authorized_keys": {USER: [key_pair()[1]]},
        "nvidia_driver_version": DRIVER_VERSION,
        "nvidia_repository_url": url,
        "nvidia_repository_key": key,
        "nvidia_driver_kernel_headers": [],
        "configure_roles": ["base", "ssh_access", "node_exporter", "nvidia_driver"],
        "lab_repositories": {vendor: vendor_url for vendor, (vendor_url, _) in repositories.items()},
        "lab_repository_key": key,
        "lab_distribution_url": vendor_repository(DEBIAN, root, layout.apt)[0],
        "lab_nccl_tests": {"path": nccl_archive.PATH, "sha256": nccl_archive.sha256()},
    }
