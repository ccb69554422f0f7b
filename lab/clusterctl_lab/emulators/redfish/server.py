"""Serves all BMCs of a lab from one asyncio loop: one TLS listener per machine, on that machine's BMC address."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.download import download
from clusterctl_lab.emulators.redfish.listener import Listener
from clusterctl_lab.emulators.redfish.profile import Profile
from clusterctl_lab.emulators.redfish.quirks import Certificate
from clusterctl_lab.emulators.redfish.services.update import Fetch
from clusterctl_lab.emulators.redfish.vendors import profile_of
from clusterctl_lab.machine import Machine
from clusterctl_lab.sockets import OpenSocket, plain
from clusterctl_lab.world import World

UNUSED_ADDRESS = "192.0.2.1"
"""The address in the certificate of another host (RFC 5737)."""
Issue = Callable[[str], ssl.SSLContext]
"""A server's context with a certificate for this address."""


@dataclass(frozen=True, slots=True)
class Serving:
    """How BMCs are served.

    profile_of  which vendor's BMC a machine has
    expired     as `tls`, with a certificate that is no longer valid; None: the lab has none to show
    fetch       what gets a firmware image for SimpleUpdate
    opened      what opens the socket for an address
    """

    profile_of: Callable[[Machine], Profile] = profile_of
    expired: Issue | None = None
    fetch: Fetch = download
    opened: OpenSocket = plain


class BmcServers:
    """The running BMCs of a lab, by machine name."""

    def __init__(self, listeners: Mapping[str, Listener]) -> None:
        self._listeners = listeners
        self._closed = False

    async def show(self, machine: Machine) -> None:
        """Take over the machine's state: its BMC dies, hangs or works again."""
        if not self._closed:
            await self._listeners[machine.name].show(machine)

    def rejected(self, name: str) -> int:
        """Return how many wrong logins the machine's BMC has seen."""
        return self._listeners[name].bmc.rejected

    async def close(self) -> None:
        """Stop listening, drop connections, abandon resets in progress."""
        self._closed = True
        await asyncio.gather(*(listener.close() for listener in self._listeners.values()))


async def serve_bmcs(world: World, tls: Issue, port: int = 443, serving: Serving | None = None) -> BmcServers:
    """Start the BMC of every machine in `world`, each on `machine.bmc.address` with the certificate that `tls` gives
    for that address; they follow their condition in `world` from then on. Returns once all that live listen; raises
    OSError, with none left listening, when one cannot.
    """
    how = serving or Serving()
    listeners: dict[str, Listener] = {}
    servers = BmcServers(listeners)
    try:
        for name, machine in world.machines.items():
            address = machine.bmc.address
            bmc = Bmc(world, name, how.profile_of(machine), fetch=how.fetch)
            own = tls(address)
            bmc.certificates.present = own.load_cert_chain
            shown = _certificates(own, address, tls, how.expired)
            listeners[name] = Listener(bmc, (address, port), shown, how.opened)
            await listeners[name].show(machine)
    except BaseException:
        await servers.close()
        raise
    world.on_change(servers.show)
    return servers


def _certificates(
    own: ssl.SSLContext, address: str, tls: Issue, expired: Issue | None
) -> Callable[[Certificate], ssl.SSLContext]:
    def shown(certificate: Certificate) -> ssl.SSLContext:
        if certificate is Certificate.OTHER:
            return tls(UNUSED_ADDRESS)
        if certificate is Certificate.EXPIRED and expired is not None:
            return expired(address)
        return own

    return shown
