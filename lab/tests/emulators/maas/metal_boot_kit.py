"""The lab's MAAS at the machines' side without sockets: two machines, a power driver that remembers, a made-up boot
folder.
"""

from __future__ import annotations

import asyncio
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path

from clusterctl_lab.emulators.maas.metal.boot_files import LOADER, BootFiles, read_boot_files
from clusterctl_lab.emulators.maas.metal.boot_service import BootService
from clusterctl_lab.emulators.maas.model import Interface, Node
from clusterctl_lab.emulators.maas.oauth import Keys
from clusterctl_lab.emulators.maas.service import Service
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.world import Delays, World
from tests.edges.maas.kit import PRIVATE, PUBLIC

BASE = "http://127.92.0.2:5248"
IMAGE, DEPLOYER = "5a" * 32, "de" * 32
USER_DATA = (
    b"#cloud-config\n"
    + json.dumps(
        {
            "hostname": "node001",
            "users": [{"name": "ops", "ssh_authorized_keys": [PUBLIC], "sudo": "ALL=(ALL) NOPASSWD:ALL"}],
            "ssh_keys": {"ed25519_private": PRIVATE, "ed25519_public": PUBLIC},
            "write_files": [{"path": "/etc/motd", "content": "rehearsal\n", "permissions": "0600"}],
        }
    ).encode()
)
ROOT = "BOSS0001"


def boot_folder(folder: Path) -> BootFiles:
    """With everything that a machine boots, empty."""
    for shelf, digest, names in (
        ("deployer", DEPLOYER, ("vmlinuz", "initrd")),
        ("images/small", IMAGE, ("rootfs.tar.zst",)),
    ):
        place = folder / shelf / digest
        place.mkdir(parents=True)
        for name in names:
            (place / name).touch()
        (place / "manifest.json").write_text(json.dumps({"digest": digest, "size": 4096}))
        (folder / shelf / "current").symlink_to(digest)
    (folder / "tftp").mkdir()
    (folder / "tftp" / LOADER).touch()
    return read_boot_files(folder, "small")


@dataclass
class Power:
    """Meets `PowerDriver`: reports that machines are on until it was asked `on_for` times."""

    on_for: int = 0
    did: list[str] = field(default_factory=list)

    async def on(self, parameters: Mapping[str, str]) -> None:
        self.did.append("on")

    async def off(self, parameters: Mapping[str, str]) -> None:
        self.did.append("off")

    async def restart(self, parameters: Mapping[str, str]) -> None:
        self.did.append("restart")

    async def query(self, parameters: Mapping[str, str]) -> str:
        self.on_for -= 1
        return "on" if self.on_for >= 0 else "off"


class Rack:
    """`boot_service` is the service that machines send requests to, `node` MAAS's first machine; use it within an asyncio loop."""

    def __init__(self, folder: Path) -> None:
        layout = Layout(IPv4Network("127.92.0.0/16"))
        machines = {machine.name: machine for machine in (build(number, layout, "") for number in (1, 2))}
        self.power = Power()
        self.world = World(layout, machines, Delays(netboot_timeout=60))
        self.service = Service(self.world, Keys([]), self.power)
        self.lifecycle = self.service.lifecycle
        self.files = boot_folder(folder / "boot")
        self.boot_service = BootService(self.lifecycle, self.files, BASE)
        self.machine = self.world.machines["node001"]
        port = Interface(1, "eth0", self.machine.boot_mac, 1)
        self.node = Node("abc123", "node001", "amd64/generic", "redfish", {}, [port], user_data=USER_DATA)
        self.service.store.nodes[self.node.system_id] = self.node

    def script(self) -> str:
        return self.boot_service.script(self.machine.boot_mac)

    def token(self) -> str:
        """Of the script that the machine gets now."""
        return self.script().partition("clusterctl.token=")[2].split()[0]

    async def settle(self) -> None:
        """Until MAAS has done what it began."""
        async with asyncio.timeout(600):
            await self.lifecycle.background.settle()

    async def commission(self, report: str | None = None) -> None:
        """From the operation to Ready."""
        self.lifecycle.commission(self.node, "admin", tests=False)
        await self.settle()
        assert self.boot_service.handle(self.token(), "report", report or report_text()).status == 409
        await self.settle()

    async def deploying(self) -> str:
        """Commissioned, with the root disk chosen and the deployment begun; the token of the machine's boot."""
        await self.commission()
        self.lifecycle.deploy(self.node, "admin")
        await self.settle()
        return self.token()

    async def close(self) -> None:
        await self.lifecycle.background.close()


def report_text(root: str = ROOT, *, readable: bool = True, twice: bool = False) -> str:
    """A machine's report: its root disk first, so that MAAS chooses it by itself."""
    word = "readable" if readable else ""
    disks = [("/dev/nvme1n1", root), ("/dev/nvme0n1", "S6XANX0"), *([("/dev/nvme2n1", root)] if twice else [])]
    return (
        "serial=LAB0001\nuuid=4C4C4544-0041-4210-8030-CCC04F303031\nmanufacturer=Dell Inc.\nproduct=PowerEdge XE9680\n"
        "bios=2022.11\ncpus=1\nmemory=1000000\nmac=02:1a:ee:00:00:01\n"
        + "".join(f"disk={path}\t{serial}\tnvme.8086\t480103981056\tQEMU NVMe Ctrl\t{word}\n" for path, serial in disks)
    )


def unpacked(tar: bytes | None) -> dict[str, tuple[str, int]]:
    """Path → content (or where a link leads) and mode."""
    assert tar is not None
    found = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for entry in archive.getmembers():
            file = archive.extractfile(entry) if entry.isfile() else None
            found[entry.name] = (file.read().decode() if file else entry.linkname, entry.mode)
    return found
