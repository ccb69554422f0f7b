"""What our own PXE needs of the controller, looked at one by one; nothing is changed, and one that fails
hides none.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clusterctl.edges.pxe.arming import Armoury
from clusterctl.edges.pxe.dhcp_servers import offers
from clusterctl.edges.pxe.dnsmasq_process import PATH
from clusterctl.edges.pxe.interface import network_of
from clusterctl.edges.pxe.server import listen
from clusterctl.edges.pxe.service import PxeService
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError
from clusterctl.formats.dhcp import DhcpOffer

TOOLS = {"dnsmasq": "dnsmasq-base", "setpriv": "util-linux", "ip": "iproute2"}
"""Programs, and the packages that have them."""
DHCP_PORT = 67
OTHER_DHCP = "other_dhcp"
BIOS_LOADER = "undionly.kpxe"


def examine(
    armoury: Armoury, service: PxeService, without_address: Sequence[str]
) -> tuple[tuple[Diagnosis, ...], ClusterctlError | None]:
    """All diagnoses, and the first error. `without_address`: machines that the sheet gives no address."""
    settings, trouble, found = armoury.settings, None, []
    for name, check in _checks(armoury, service, without_address):
        try:
            found.append(ok(name, check()))
        except ClusterctlError as error:
            trouble = trouble or error
            said = f"{error.where}: {error.message}" if error.where else error.message
            found.append(broken(name, said, error.remedy))
    try:
        found.append(dhcp_servers(settings, offers(settings.interface)))
    except EnvironmentBrokenError as error:
        found.append(not_measured(OTHER_DHCP, f"{error.where}: {error.message}", error.remedy))
    return tuple(found), trouble


def dhcp_servers(settings: PxeSettings, others: Sequence[DhcpOffer]) -> Diagnosis:
    """Of what other servers offered to a card that nobody knows: our own answers none such."""
    names = enumerated([str(offer.server) for offer in others])
    if settings.dhcp is Dhcp.PROXY:
        if others:
            return ok(OTHER_DHCP, f"{names} gives addresses here")
        return not_measured(
            OTHER_DHCP, "no server offers an address to an unknown card", "look whether it knows the machines"
        )
    if not others:
        return ok(OTHER_DHCP, "no other DHCP server offers an address here to an unknown card")
    booting = [f"{offer.server} tells it to boot {offer.file}" for offer in others if offer.file]
    said = "; ".join([f"{names} gives addresses in this network, too", *booting])
    return warn(OTHER_DHCP, said, "keep it from answering there, or set provisioning.dhcp: proxy")


def _checks(
    armoury: Armoury, service: PxeService, without_address: Sequence[str]
) -> Iterator[tuple[str, Callable[[], str]]]:
    settings = armoury.settings
    yield "tools", _tools
    yield "interface", lambda: f"{settings.interface} is in {network_of(settings.interface, settings.address)}"
    yield "service", lambda: _service(settings, service)
    yield "install", lambda: _install(armoury)
    yield "loaders", lambda: _loaders(settings)
    if settings.dhcp is Dhcp.RESERVE:
        yield "addresses", lambda: _addresses(without_address)


def _tools() -> str:
    missing = [name for name in TOOLS if shutil.which(name, path=PATH) is None]
    if missing:
        packages = " ".join(TOOLS[name] for name in missing)
        raise EnvironmentBrokenError(f"there is no {', '.join(missing)}", remedy=f"apt-get install {packages}")
    return f"{', '.join(TOOLS)} are there"


def _service(settings: PxeSettings, service: PxeService) -> str:
    """Somebody serves, or we could."""
    holder = service.holder
    if holder is not None:
        return f"process {holder.pid} serves at {holder.base}"
    listen(settings.address, settings.port).close()
    return f"{settings.address}:{settings.port} is free"


def _install(armoury: Armoury) -> str:
    armoury.check()
    what = armoury.settings.image or armoury.settings.series
    return f"{armoury.settings.method.value} {what} is in {armoury.settings.boot_folder}"


def _loaders(settings: PxeSettings) -> str:
    folder: Path = settings.boot_folder / "tftp"
    missing = [name for name in (settings.loader, BIOS_LOADER) if not (folder / name).is_file()]
    if missing:
        raise EnvironmentBrokenError(
            f"no {' and no '.join(missing)} there",
            where=str(folder),
            remedy="run clusterctl image build, which copies them from the package ipxe",
        )
    return f"{settings.loader} and {BIOS_LOADER} are in {folder}"


def _addresses(without: Sequence[str]) -> str:
    if without:
        raise EnvironmentBrokenError(
            f"no address to reserve for {enumerated(list(without))}",
            remedy="give the sheet a column address, or set provisioning.dhcp: proxy",
        )
    return "each machine has one to reserve"
