"""Our own PXE, composed from what the site file says of it."""

from __future__ import annotations

import contextlib
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.os_images import BootFolder
from clusterctl.edges.os_images.initramfs import PROBE, script
from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.install_profiles import AnswerProfile, AttemptFactory, ImageProfile
from clusterctl.edges.pxe.installer import PxeInstaller
from clusterctl.edges.pxe.service import PxeService
from clusterctl.edges.pxe.settings import Dhcp, Method, PxeSettings
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.adapters import state_dir
from clusterctl.ports import Bmcs


def pxe_installer(site: Site, bmcs: Bmcs, closing: contextlib.ExitStack) -> PxeInstaller:
    settings = pxe_settings(site)
    attempts = AttemptStore(state_dir(site) / "pxe" / "machines")
    service = pxe_service(site, settings, attempts)
    closing.callback(service.close)
    return PxeInstaller(factory(settings), attempts, service, bmcs)


def factory(settings: PxeSettings) -> AttemptFactory:
    image = settings.method is Method.IMAGE
    profile = ImageProfile(settings, BootFolder(settings.boot_folder)) if image else AnswerProfile(settings, CLOCK)
    return AttemptFactory(settings, profile, CLOCK)


def pxe_service(site: Site, settings: PxeSettings, attempts: AttemptStore) -> PxeService:
    return PxeService(settings, state_dir(site) / "pxe", attempts, CLOCK, lambda: script(PROBE).decode())


def pxe_settings(site: Site) -> PxeSettings:
    said = site.settings.pxe
    if said is None:
        raise UsageError(
            "the site installs nothing through our own PXE",
            where=site.where("provisioning"),
            remedy="add backend: pxe (docs/how-to/pxe.md)",
        )
    return PxeSettings(
        interface=said.interface,
        address=said.address,
        boot_folder=Path(said.boot_folder),
        port=said.port,
        dhcp=Dhcp(said.dhcp),
        method=Method(said.method),
        image=said.image or "",
        kernel=said.kernel or "",
        initrd=said.initrd or "",
        iso=said.iso or "",
        series=said.series or "",
        loader=said.loader,
        announce=said.router_advertisements,
        console=said.console,
        gateway=said.gateway or "",
        nameservers=said.nameservers,
        time_servers=said.time_servers,
        apt_mirror=said.apt_mirror or "",
        apt_proxy=said.apt_proxy or "",
        packages=said.packages,
        silence_s=60 * said.silence_minutes,
        downloads_at_once=said.downloads_at_once,
        origin=site.origin,
    )
