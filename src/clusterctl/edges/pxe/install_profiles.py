"""The ways to install a machine: a prepared image, or the installer of a distribution; and new attempts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from clusterctl.edges.pxe import scripts
from clusterctl.edges.pxe.answers import AnswerJob, ReleaseSeries, debian, network_files, ubuntu
from clusterctl.edges.pxe.attempt import AttemptState, BootFiles, InstallAttempt, InstallPayload
from clusterctl.edges.pxe.attempt_store import for_card, new_token
from clusterctl.edges.pxe.overlay import OverlayHost, overlay
from clusterctl.edges.pxe.settings import Dhcp, Method, PxeSettings
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.formats.host import networkd
from clusterctl.ports import Clock, InstallTarget

NO_TOKEN = "0" * 64
"""The token of documents that are made only to check that they can be made."""


class InstallProfile(Protocol):
    """What a machine boots, and the documents that it may fetch."""

    def check(self) -> None:
        """Raise `UsageError` where the boot folder lacks what is installed."""
        ...

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, InstallPayload]: ...

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        """Return the documents by name, or by name and card (`for_card`). Raises `UsageError`."""
        ...


@dataclass(frozen=True, slots=True)
class AttemptFactory:
    """Prepares attempts, each with a token of its own."""

    settings: PxeSettings
    profile: InstallProfile
    clock: Clock

    def check(self, target: InstallTarget | None = None) -> None:
        """Raise `UsageError` where something is missing for installing, or for installing this machine."""
        self.profile.check()
        if target is not None:
            self.profile.documents(target, NO_TOKEN)

    def arm(self, target: InstallTarget) -> tuple[InstallAttempt, Mapping[str, bytes]]:
        """Return a new attempt and its documents; nothing is stored yet."""
        token = new_token()
        boot, payload = self.profile.boot(target, token)
        documents = self.profile.documents(target, token)
        attempt = InstallAttempt(
            node=target.name,
            state=AttemptState.ARMED,
            serial=target.serial,
            macs=target.macs,
            disk=target.disk,
            id=secrets.token_hex(4),
            token=token,
            method=self.settings.method.value,
            boot=boot,
            payload=payload,
            documents=tuple(documents),
            at=self.clock.now(),
            erase=target.erase,
            only_from=target.address if self.settings.dhcp is Dhcp.RESERVE else "",
        )
        return attempt, documents


OVERLAY = "overlay.tar"


class InstallImage(Protocol):
    """A root file system of the boot folder."""

    @property
    def path_below_files(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def size(self) -> int: ...


class Deployer(Protocol):
    """The system that writes the image: paths below `/files/`."""

    @property
    def kernel_path(self) -> str: ...
    @property
    def initrd_path(self) -> str: ...
    @property
    def stub_path(self) -> str: ...


class Store(Protocol):
    """The boot folder. Raises `UsageError` with the command that makes what is missing."""

    def image(self, name: str) -> InstallImage: ...
    def deployer(self) -> Deployer: ...


@dataclass(frozen=True, slots=True)
class ImageProfile:
    """Meets `InstallProfile`. A machine gets the image that the name stands for at the time of arming."""

    settings: PxeSettings
    store: Store

    def check(self) -> None:
        _deployer(self.settings, self.store)
        self.store.image(self.settings.image)

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, InstallPayload]:
        image, files = self.store.image(self.settings.image), _boot_files(self.settings, self.store, target, token)
        return files, InstallPayload(image.path_below_files, image.digest, image.size)

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        """Return the overlay; without network settings one for each card.

        The host then uses DHCP on the card that booted, and no other card takes its reservation.
        """
        del token
        if target.network:
            return {OVERLAY: self._overlay(target, networkd.files(target.network))}
        cards = {for_card(OVERLAY, mac): self._overlay(target, by_dhcp(mac)) for mac in target.macs}
        return {OVERLAY: self._overlay(target, by_dhcp(*target.macs)), **cards}

    def _overlay(self, target: InstallTarget, network: Mapping[str, str]) -> bytes:
        settings = self.settings
        return overlay(
            OverlayHost(
                target.name,
                target.user,
                target.authorized_key,
                network,
                nameservers=target.network.nameservers or settings.nameservers,
                search=target.network.search,
                time_servers=settings.time_servers,
                apt_proxy=settings.apt_proxy,
            )
        )


def _deployer(settings: PxeSettings, store: Store) -> Deployer:
    """Return the deployer. Raises `UsageError` where it cannot be booted as the site wants it."""
    found = store.deployer()
    if settings.tls is not None and not found.stub_path:
        raise UsageError(
            "the deployer was built by an earlier release, without what UEFI boots over HTTPS",
            where=str(settings.boot_folder),
            remedy=f"run: clusterctl image build {settings.image}",
        )
    return found


def _boot_files(settings: PxeSettings, store: Store, target: InstallTarget, token: str) -> BootFiles:
    deployer = _deployer(settings, store)
    card, key, stub = "{bootif}", "", ""
    if settings.tls is not None:  # firmware does not report by which card it boots
        card, key = ",".join(map(scripts.bootif, target.macs)), f"clusterctl.key={settings.tls.key_pin} "
        stub = deployer.stub_path
    arguments = (
        f"clusterctl.server={settings.base} clusterctl.token={token} {key}BOOTIF={card} ip=dhcp quiet "
        "mitigations=off "  # the deployer runs no foreign code; emulation is slow with mitigations
        f"console={settings.console}"
    )
    return BootFiles(deployer.kernel_path, deployer.initrd_path, arguments, stub)


@dataclass(frozen=True, slots=True)
class EraseProfile:
    """Meets `InstallProfile`: the deployer without an image, whichever way the site installs."""

    settings: PxeSettings
    store: Store

    def check(self) -> None:
        _deployer(self.settings, self.store)

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, InstallPayload]:
        return _boot_files(self.settings, self.store, target, token), InstallPayload()

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        del target, token
        return {}


def by_dhcp(*macs: Mac) -> Mapping[str, str]:
    """Return the files for DHCP on these cards (systemd.network(5)); the client id is the MAC, as in the firmware."""
    matches = " ".join(macs)
    return {
        f"{networkd.FOLDER}/20-clusterctl.network": (
            f"[Match]\nPermanentMACAddress={matches}\n\n[Network]\nDHCP=ipv4\n\n[DHCPv4]\nClientIdentifier=mac\n"
        )
    }


SERIES = {"jammy": ReleaseSeries.JAMMY, "noble": ReleaseSeries.NOBLE, "bookworm": ReleaseSeries.BOOKWORM}


@dataclass(frozen=True, slots=True)
class AnswerProfile:
    """Meets `InstallProfile`."""

    settings: PxeSettings
    clock: Clock

    def check(self) -> None:
        settings = self.settings
        for field, name in (("kernel", settings.kernel), ("initrd", settings.initrd), ("iso", settings.iso)):
            if name and not (settings.boot_folder / name).is_file():
                raise UsageError(
                    f"there is no file {name} in {settings.boot_folder}",
                    where=f"provisioning.{field}",
                    remedy="copy it there from the distribution (docs/how-to/pxe.md)",
                )

    def boot(self, target: InstallTarget, token: str) -> tuple[BootFiles, InstallPayload]:
        job = self._job(target, token, target.macs[0])
        arguments = debian.kernel_arguments(job) if self._by_preseed else ubuntu.kernel_arguments(job)
        return BootFiles(self.settings.kernel, self.settings.initrd, arguments), InstallPayload()

    def documents(self, target: InstallTarget, token: str) -> Mapping[str, bytes]:
        """Return the documents of each card, the only one that the installer uses; without a card: of the first one."""
        if not target.authorized_key:
            raise UsageError(
                "no public key is given for logging in", where=target.name, remedy="set ssh.private_key in site.yml"
            )
        found = self._documents(self._job(target, token, target.macs[0]))
        for mac in target.macs:
            own = self._documents(self._job(target, token, mac))
            found |= {for_card(name, mac): content for name, content in own.items()}
        return found

    @property
    def _by_preseed(self) -> bool:
        return self.settings.method is Method.PRESEED

    def _documents(self, job: AnswerJob) -> dict[str, bytes]:
        if self._by_preseed:
            return {"preseed.cfg": debian.preseed(job).encode()}
        return {
            "user-data": ubuntu.user_data(job).encode(),
            "meta-data": ubuntu.meta_data(job).encode(),
            "vendor-data": b"",
            "network-config": b"",  # asked for since cloud-init 24; without an answer it tries for seconds
        }

    def _job(self, target: InstallTarget, token: str, mac: Mac) -> AnswerJob:
        settings = self.settings
        series = SERIES[settings.series]
        return AnswerJob(
            name=target.name,
            server=settings.base,
            attempt=f"{settings.base}/t/{token}",
            boot_mac=mac,
            user=target.user,
            authorized_key=target.authorized_key,
            series=series,
            time=self.clock.now(),
            iso=settings.iso,
            console=settings.console,
            mirror=settings.apt_mirror,
            proxy=settings.apt_proxy,
            time_servers=settings.time_servers,
            packages=settings.packages,
            files=network_files(target.network, series),
        )
