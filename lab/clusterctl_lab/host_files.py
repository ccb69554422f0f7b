"""The lab's files on hosts: emulated tools, package sources, facts of the machine, addresses of the rails.

Hosts in namespaces get them as an overlay; virtual machines on their disk and in the folder shared with the lab. A
virtual machine's processors, memory, drives, network, kernel and services are real, as are the tools that
show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from clusterctl_lab import markers
from clusterctl_lab.emulators.apt import host_files
from clusterctl_lab.emulators.host_tools import guest_tools, lower_files, machine_files
from clusterctl_lab.hosts.addresses import RAIL_MTU, rail_interface
from clusterctl_lab.hosts.running import Skeleton
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Hca, Machine
from clusterctl_lab.metal.disk_files import Lay
from clusterctl_lab.metal.share import TAG
from clusterctl_lab.metal.wires import rail_mac


def write_lower(folder: Path) -> Path:
    """Lay the stand-in tools out in `folder`, to be an overlay's lower layer; returns it."""
    folder.mkdir(mode=0o755)
    for path, (content, mode) in lower_files().items():
        target = folder / path.lstrip("/")
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode)
    return folder


def skeleton(packages: Path, address: str) -> Callable[[Machine], Skeleton]:
    """Renders a machine's own files; `packages` are the repositories that the lab serves on `address`."""
    apt = host_files(packages, address)

    def of(machine: Machine) -> Skeleton:
        return {**apt, **machine_files(machine)}

    return of


MOUNT = "/etc/clusterctl-lab"
_SERVICE = "/etc/systemd/system/clusterctl-lab.service"
_MOUNTS = f"""\
[Unit]
Description=Files of the rehearsal lab that describe this machine
Before=ssh.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/mount -t 9p -o trans=virtio,version=9p2000.L,ro {TAG} {MOUNT}

[Install]
WantedBy=multi-user.target
"""
"""Without a cache, which is 9p's default: each reader sees what stands there now."""
_MARKER = {markers.HOST_FILE: (markers.HOST_FILE_TEXT.encode(), 0o644)}
_MOUNT_POINT = {f"{MOUNT}/.keep": (b"", 0o644)}


def on_disk(packages: Path, layout: Layout) -> Callable[[Machine], Lay]:
    """What is laid on a machine's disk before its first boot; `packages` are the repositories that the lab serves."""
    apt = {**host_files(packages, layout.apt), "/etc/apt/sources.list": (b"", 0o644)}

    def of(machine: Machine) -> Lay:
        unit = {_SERVICE: (_MOUNTS.encode(), 0o644)}
        wanted = {f"/etc/systemd/system/multi-user.target.wants/{PurePosixPath(_SERVICE).name}": _SERVICE}
        return Lay({**guest_tools(), **apt, **unit, **_MARKER, **_MOUNT_POINT, **dict(_rails(machine, layout))}, wanted)

    return of


def in_share(machine: Machine) -> Skeleton:
    """The output of the tools on a machine, by file name."""
    files = machine_files(machine, own_kernel=True)
    return {PurePosixPath(path).name: content for path, content in files.items()}


def _rails(machine: Machine, layout: Layout) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """Name and address of each rail's network card (systemd.link(5), systemd.network(5))."""
    for hca in machine.hcas:
        match = f"[Match]\nPermanentMACAddress={rail_mac(machine, hca)}\n\n[Link]\n"
        place = f"/etc/systemd/network/10-clusterctl-lab-{_name(hca)}"
        yield f"{place}.link", (f"{match}Name={_name(hca)}\nMTUBytes={RAIL_MTU}\n".encode(), 0o644)
        address = rail_interface(layout, machine, hca.rail)
        network = f"{match}RequiredForOnline=no\n\n[Network]\nLinkLocalAddressing=no\nAddress={address}\n"
        yield f"{place}.network", (network.encode(), 0o644)


def _name(hca: Hca) -> str:
    return f"ib{hca.rail}"
