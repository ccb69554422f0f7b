"""Image deploy: a small system writes a prepared root file system, and lays the host's own files over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from clusterctl.edges.pxe.attempt import BootFiles, Payload
from clusterctl.edges.pxe.desk import for_card
from clusterctl.edges.pxe.overlay import Guest, overlay
from clusterctl.edges.pxe.settings import PxeSettings
from clusterctl.fleet.node import Mac
from clusterctl.formats.host import networkd
from clusterctl.ports import InstallTarget

OVERLAY = "overlay.tar"


class Image(Protocol):
    """A root file system of the boot folder."""

    @property
    def path_below_files(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def size(self) -> int: ...


class Deployer(Protocol):
    """The system that writes it: paths below `/files/`."""

    @property
    def kernel_path(self) -> str: ...
    @property
    def initrd_path(self) -> str: ...


class Store(Protocol):
    """The boot folder. Raises `UsageError` naming the command that makes what is not there."""

    def image(self, name: str) -> Image: ...
    def deployer(self) -> Deployer: ...


@dataclass(frozen=True, slots=True)
class ImageOutfit:
    """Meets `Outfit`. The image that the name stands for when a machine is armed is the one that it gets."""

    settings: PxeSettings
    store: Store

    def check(self) -> None:
        self.store.deployer()
        self.store.image(self.settings.image)

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, Payload]:
        del target
        image, deployer = self.store.image(self.settings.image), self.store.deployer()
        arguments = (
            f"clusterctl.server={self.settings.base} clusterctl.token={token} BOOTIF={{bootif}} ip=dhcp quiet "
            "mitigations=off "  # the deployer runs nothing of others; emulation pays dearly for guards
            f"console={self.settings.console}"
        )
        files = BootFiles(deployer.kernel_path, deployer.initrd_path, arguments)
        return files, Payload(image.path_below_files, image.digest, image.size)

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        """The overlay; where the site says nothing of the network, one for each card: the host asks by DHCP on the one
        that booted, and no other card takes its reservation away.
        """
        del token
        if target.network:
            return {OVERLAY: self._overlay(target, networkd.files(target.network))}
        cards = {for_card(OVERLAY, mac): self._overlay(target, by_dhcp(mac)) for mac in target.macs}
        return {OVERLAY: self._overlay(target, by_dhcp(*target.macs)), **cards}

    def _overlay(self, target: InstallTarget, network: Mapping[str, str]) -> bytes:
        said = self.settings
        return overlay(
            Guest(
                target.name,
                target.user,
                target.authorized_key,
                network,
                nameservers=target.network.nameservers or said.nameservers,
                search=target.network.search,
                time_servers=said.time_servers,
                apt_proxy=said.apt_proxy,
            )
        )


def by_dhcp(*macs: Mac) -> Mapping[str, str]:
    """An address by DHCP for any of these cards (systemd.network(5)); the MAC is the client's id, as the firmware's."""
    matches = " ".join(macs)
    return {
        f"{networkd.FOLDER}/20-clusterctl.network": (
            f"[Match]\nPermanentMACAddress={matches}\n\n[Network]\nDHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\n"
        )
    }
