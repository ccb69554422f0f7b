"""Checks what clusterctl's own PXE needs on the controller. Nothing is changed; a failed check does not hide others."""

from __future__ import annotations

import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from clusterctl.edges.pxe.accounts import HTTP_USER, account, diagnose, require_readable
from clusterctl.edges.pxe.addresses import announcing, listen, network_of
from clusterctl.edges.pxe.dnsmasq import PATH
from clusterctl.edges.pxe.install_profiles import AttemptFactory
from clusterctl.edges.pxe.service import PxeService
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.diagnosis import Diagnosis, broken, enumerated, not_measured, ok, warn
from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, ParseError
from clusterctl.formats.dhcp import DhcpOffer, discover, parse_offer

SERVER_PORT, CLIENT_PORT = 67, 68
ASKED_TIMES = 2
ANSWER_S = 2.0
"""Seconds in which servers answer one request; they may ping the address first, for a second."""
LARGEST = 65535
_LOCAL = 0x02


def offers(interface: str, *, answer_s: float = ANSWER_S) -> tuple[DhcpOffer, ...]:
    """Return one offer of each server that offers an address to an unknown card; no address is taken.

    Raises `EnvironmentBrokenError` where the network cannot be asked: no root, or no such interface.
    """
    mac = bytes((_LOCAL, *secrets.token_bytes(5)))
    try:
        with _client(interface) as client:
            found = [offer for _ in range(ASKED_TIMES) for offer in _ask(client, mac, answer_s)]
    except OSError as error:
        raise EnvironmentBrokenError(
            f"DHCP servers cannot be asked for: {error.strerror}", where=interface, remedy="run it as root (sudo)"
        ) from error
    return tuple({offer.server: offer for offer in found}.values())


def _client(interface: str) -> socket.socket:
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        client.bind(("", CLIENT_PORT))
    except OSError:
        client.close()
        raise
    return client


def _ask(client: socket.socket, mac: bytes, answer_s: float) -> Iterator[DhcpOffer]:
    transaction = secrets.randbits(32)
    client.sendto(discover(transaction, mac), ("255.255.255.255", SERVER_PORT))
    until = time.monotonic() + answer_s
    while (left := until - time.monotonic()) > 0:
        client.settimeout(left)
        try:
            offer = parse_offer(client.recv(LARGEST), transaction)
        except (TimeoutError, ParseError):  # no further answer, or another program's packet
            continue
        if offer is not None:
            yield offer


TOOLS = {"dnsmasq": "dnsmasq-base", "setpriv": "util-linux", "ip": "iproute2"}
"""Programs, and the packages that contain them."""
DHCP_PORT = 67
OTHER_DHCP = "other_dhcp"
ADVERTISEMENTS = "router_advertisements"
OWN_ADDRESS = "fd00:c1::1/64"
"""Of a unique local network (RFC 4193), for the remedy."""
BIOS_LOADER = "undionly.kpxe"


def examine(
    factory: AttemptFactory, service: PxeService, without_address: Sequence[str]
) -> tuple[tuple[Diagnosis, ...], ClusterctlError | None]:
    """Return all diagnoses and the first error. `without_address`: machines without an address in the sheet."""
    settings, trouble, found = factory.settings, None, []
    for name, check in _checks(factory, service, without_address):
        try:
            found.append(ok(name, check()))
        except ClusterctlError as error:
            trouble = trouble or error
            problem = f"{error.where}: {error.message}" if error.where else error.message
            found.append(broken(name, problem, error.remedy))
    found.append(diagnose())
    if settings.announce:
        found.append(router_advertisements(settings.interface, announcing(settings.interface)))
    try:
        found.append(dhcp_servers(settings, offers(settings.interface)))
    except EnvironmentBrokenError as error:
        found.append(not_measured(OTHER_DHCP, f"{error.where}: {error.message}", error.remedy))
    return tuple(found), trouble


def dhcp_servers(settings: PxeSettings, others: Sequence[DhcpOffer]) -> Diagnosis:
    """Judge the offers of other servers to an unknown card; clusterctl's own server answers no unknown card."""
    names = enumerated([str(offer.server) for offer in others])
    if settings.dhcp is Dhcp.PROXY:
        if others:
            return ok(OTHER_DHCP, f"{names} assigns addresses here")
        return not_measured(
            OTHER_DHCP, "no server offers an address to an unknown card", "check that it knows the machines"
        )
    if not others:
        return ok(OTHER_DHCP, "no other DHCP server offers an address here to an unknown card")
    booting = [f"{offer.server} sends it the boot file {offer.file}" for offer in others if offer.file]
    offers = "; ".join([f"{names} assigns addresses in this network, too", *booting])
    return warn(OTHER_DHCP, offers, "disable it in this network, or set provisioning.dhcp: proxy")


def router_advertisements(interface: str, address: str) -> Diagnosis:
    """Judge whether dnsmasq can send the advertisements that the site asks for."""
    if address:
        return ok(ADVERTISEMENTS, f"router advertisements are sent from {interface}, which has {address}")
    remedy = f"give it one, such as: ip address add {OWN_ADDRESS} dev {interface}"
    return warn(ADVERTISEMENTS, f"none is sent: {interface} has no IPv6 address but its link-local one", remedy)


def _checks(
    factory: AttemptFactory, service: PxeService, without_address: Sequence[str]
) -> Iterator[tuple[str, Callable[[], str]]]:
    settings = factory.settings
    yield "tools", _tools
    yield "interface", lambda: f"{settings.interface} is in {network_of(settings.interface, settings.address)}"
    yield "service", lambda: _service(settings, service)
    yield "install", lambda: _install(factory)
    if settings.tls is None:
        yield "loaders", lambda: _loaders(settings)
    if settings.dhcp is Dhcp.RESERVE:
        yield "addresses", lambda: _addresses(without_address)


def _tools() -> str:
    missing = [name for name in TOOLS if shutil.which(name, path=PATH) is None]
    if missing:
        packages = " ".join(TOOLS[name] for name in missing)
        raise EnvironmentBrokenError(f"not installed: {', '.join(missing)}", remedy=f"apt-get install {packages}")
    return f"{', '.join(TOOLS)} are installed"


def _service(settings: PxeSettings, service: PxeService) -> str:
    """Return which process serves, or that the address is free."""
    holder = service.holder
    if holder is not None:
        return f"process {holder.pid} serves at {holder.base}"
    listen(settings.address, settings.port).close()
    return f"{settings.address}:{settings.port} is free"


def _install(factory: AttemptFactory) -> str:
    factory.check()
    require_readable(factory.settings.boot_folder, account(HTTP_USER))
    what = factory.settings.image or factory.settings.series
    return f"{factory.settings.method.value} {what} is in {factory.settings.boot_folder}"


def _loaders(settings: PxeSettings) -> str:
    folder: Path = settings.boot_folder / "tftp"
    missing = [name for name in (settings.loader, BIOS_LOADER) if not (folder / name).is_file()]
    if missing:
        raise EnvironmentBrokenError(
            f"missing: {', '.join(missing)}",
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
    return "each machine has an address to reserve"
