"""What one machine gets: its boot files with a fresh token, and the documents that only it may fetch."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from clusterctl.edges.pxe.attempt import Attempt, AttemptState, BootFiles, Payload
from clusterctl.edges.pxe.desk import for_card, new_token
from clusterctl.edges.pxe.overlay import Guest, overlay
from clusterctl.edges.pxe.settings import Method, PxeSettings
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.ports import Clock, InstallTarget

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
class Armoury:
    """Prepares attempts as the site says."""

    settings: PxeSettings
    store: Store
    clock: Clock

    def check(self, target: InstallTarget | None = None) -> None:
        """Raise `UsageError` where what shall be installed is not there, or the machine cannot be given it."""
        if self.settings.method is not Method.IMAGE:
            raise UsageError(
                f"method {self.settings.method.value} is not served yet",
                where="provisioning.method",
                remedy="set method: image",
            )
        self.store.deployer()
        self.store.image(self.settings.image)
        if target is not None:
            self._documents(target)

    def arm(self, target: InstallTarget) -> tuple[Attempt, Mapping[str, bytes]]:
        """A fresh attempt and its documents; nothing is kept yet."""
        self.check()
        image, deployer = self.store.image(self.settings.image), self.store.deployer()
        token, documents = new_token(), self._documents(target)
        arguments = (
            f"clusterctl.server={self.settings.base} clusterctl.token={token} BOOTIF={{bootif}} ip=dhcp quiet "
            f"console={self.settings.console}"
        )
        attempt = Attempt(
            node=target.name,
            state=AttemptState.ARMED,
            serial=target.serial,
            macs=target.macs,
            disk=target.disk,
            id=secrets.token_hex(4),
            token=token,
            method=self.settings.method.value,
            boot=BootFiles(deployer.kernel_path, deployer.initrd_path, arguments),
            payload=Payload(image.path_below_files, image.digest, image.size),
            documents=tuple(documents),
            at=self.clock.now(),
        )
        return attempt, documents

    def _documents(self, target: InstallTarget) -> dict[str, bytes]:
        """The overlay; where the site says nothing of the network, one for each card: it asks by DHCP on the one that
        booted, and no other card takes its reservation away.
        """
        if target.network:
            return {OVERLAY: self._overlay(target, network_files(target))}
        cards = {for_card(OVERLAY, mac): self._overlay(target, by_dhcp(mac)) for mac in target.macs}
        return {OVERLAY: self._overlay(target, by_dhcp(*target.macs)), **cards}

    def _overlay(self, target: InstallTarget, network: Mapping[str, str]) -> bytes:
        said = self.settings
        servers = target.network.nameservers or said.nameservers
        return overlay(
            Guest(
                target.name,
                target.user,
                target.authorized_key,
                network,
                nameservers=servers,
                search=target.network.search,
                time_servers=said.time_servers,
                apt_proxy=said.apt_proxy,
            )
        )


def network_files(target: InstallTarget) -> Mapping[str, str]:
    """The host's network as the site wants it."""
    raise UsageError(
        "an image cannot be given the site's network yet", where=target.name, remedy="leave its network out"
    )


def by_dhcp(*macs: Mac) -> Mapping[str, str]:
    """An address by DHCP for any of these cards (systemd.network(5)); the MAC is the client's id, as the firmware's."""
    matches = " ".join(macs)
    return {
        "etc/systemd/network/20-clusterctl.network": (
            f"[Match]\nPermanentMACAddress={matches}\n\n[Network]\nDHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\n"
        )
    }
