"""The PXE installer: compose it from the site file, serve it in the foreground, examine what it lacks."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.os_images import BootFolder
from clusterctl.edges.os_images.initramfs import PROBE, script
from clusterctl.edges.pxe.accounts import diagnose
from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.boot_certificate import BootCertificate, boot_certificate
from clusterctl.edges.pxe.checks import examine
from clusterctl.edges.pxe.install_profiles import AnswerProfile, AttemptFactory, EraseProfile, ImageProfile
from clusterctl.edges.pxe.installer import PxeInstaller
from clusterctl.edges.pxe.service import PxeService
from clusterctl.edges.pxe.settings import Dhcp, Method, PxeSettings
from clusterctl.edges.site import Site, load_site
from clusterctl.fleet.diagnosis import Diagnosis, Health
from clusterctl.fleet.errors import InstallerUnavailableError, UsageError
from clusterctl.operations.operation import Control, Event
from clusterctl.operations.site_facts import backend_of, state_dir
from clusterctl.ports import Bmcs
from clusterctl.site.provisioning import PxeProvisioning


def pxe_installer(site: Site, bmcs: Bmcs, stack: contextlib.ExitStack) -> PxeInstaller:
    """Return the installer of a run; `stack` closes its service."""
    settings = pxe_settings(site)
    attempts = AttemptStore(state_dir(site) / "pxe" / "machines")
    service = pxe_service(site, settings, attempts)
    stack.callback(service.close)
    erasing = AttemptFactory(settings, EraseProfile(settings, BootFolder(settings.boot_folder)), CLOCK)
    return PxeInstaller(factory(settings), attempts, service, bmcs, erasing)


def rename_records(site: Site, former: str, name: str, pinned: str) -> None:
    """Give a node's install record and its host key, `pinned`, to its new name; called again, finish it."""
    AttemptStore(state_dir(site) / "pxe" / "machines").rename(former, name)
    HostKeys(state_dir(site) / "host_keys").rename(former, name, pinned)


def factory(settings: PxeSettings) -> AttemptFactory:
    image = settings.method is Method.IMAGE
    profile = ImageProfile(settings, BootFolder(settings.boot_folder)) if image else AnswerProfile(settings, CLOCK)
    return AttemptFactory(settings, profile, CLOCK)


def pxe_service(site: Site, settings: PxeSettings, attempts: AttemptStore) -> PxeService:
    return PxeService(settings, state_dir(site) / "pxe", attempts, CLOCK, lambda: script(PROBE).decode())


def pxe_settings(site: Site) -> PxeSettings:
    pxe = site.settings.pxe
    if pxe is None:
        raise UsageError(
            "the site installs nothing through our own PXE",
            where=site.where("provisioning"),
            remedy="add backend: pxe (docs/how-to/pxe.md)",
        )
    return PxeSettings(
        interface=pxe.interface,
        address=pxe.address,
        boot_folder=Path(pxe.boot_folder),
        port=pxe.port,
        dhcp=Dhcp(pxe.dhcp),
        method=Method(pxe.method),
        image=pxe.image or "",
        kernel=pxe.kernel or "",
        initrd=pxe.initrd or "",
        iso=pxe.iso or "",
        series=pxe.series or "",
        loader=pxe.loader,
        announce=pxe.router_advertisements,
        console=pxe.console,
        gateway=pxe.gateway or "",
        nameservers=pxe.nameservers,
        time_servers=pxe.time_servers,
        apt_mirror=pxe.apt_mirror or "",
        apt_proxy=pxe.apt_proxy or "",
        packages=pxe.packages,
        silence_s=60 * pxe.silence_minutes,
        downloads_at_once=pxe.downloads_at_once,
        origin=site.origin,
        tls=_tls(site, pxe),
        enroll=pxe.https is None or pxe.https.enroll == "bmc",
    )


def _tls(site: Site, pxe: PxeProvisioning) -> BootCertificate | None:
    if pxe.https is None:
        return None
    certificate, key, ca = (
        Path(site.path(name)) for name in (pxe.https.certificate, pxe.https.private_key, pxe.https.ca)
    )
    return boot_certificate(certificate, key, ca, pxe.address, CLOCK.now())


LOOK_S = 2.0
"""Seconds between two checks that every part of the service runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PxeCheck:
    """The diagnoses. `exit_code`: that of the first error; else 1 where something was not measured or is doubtful."""

    found: tuple[Diagnosis, ...]
    exit_code: int


def serve(folder: Path, control: Control) -> None:
    """Serve until cancelled, and report as which users where those are not the services' own."""
    site = load_site(folder)
    settings = pxe_settings(site)
    service = pxe_service(site, settings, AttemptStore(state_dir(site) / "pxe" / "machines"))
    with contextlib.closing(service):
        service.serve()
        control.on_event(Event(text=f"serving {site.settings.name} at {settings.base} on {settings.interface}"))
        accounts = diagnose()
        if accounts.health is not Health.OK:
            control.on_event(Event(text=f"{accounts.found}: {accounts.remedy}"))
        lost = ""
        while not control.cancelled.wait(LOOK_S):
            lost = _looked(service, control, lost)


def _looked(service: PxeService, control: Control, lost: str) -> str:
    """Report that the installer service is lost, or back; return why it is lost, empty where it serves."""
    try:
        service.ensure()
    except InstallerUnavailableError as error:
        if error.message != lost:
            control.on_event(Event(text=f"{error.message}; {error.remedy}"))
        return error.message
    if lost:
        control.on_event(Event(text="the installer service serves again"))
    return ""


def check(folder: Path) -> PxeCheck:
    """Return what is missing before machines can be installed."""
    site = load_site(folder)
    settings = pxe_settings(site)
    service = pxe_service(site, settings, AttemptStore(state_dir(site) / "pxe" / "machines"))
    found, trouble = examine(factory(settings), service, _without_address(site))
    doubtful = any(item.health in (Health.NOT_MEASURED, Health.WARN) for item in found)
    return PxeCheck(found=tuple(found), exit_code=trouble.exit_code if trouble is not None else int(doubtful))


def _without_address(site: Site) -> list[str]:
    ours = [node for node in site.nodes if backend_of(site, node.name) == "pxe"]
    return [node.name for node in ours if not node.address]
