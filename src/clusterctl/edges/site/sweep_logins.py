"""Which of the site's credentials a BMC is shown: one, chosen by what is known of it before the login."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.edges.site.load import Site
from clusterctl.fleet.bmc.observation import Greeting
from clusterctl.fleet.node import Mac
from clusterctl.ports.logins import Login
from clusterctl.site.nodes import SiteNode


@dataclass(frozen=True, slots=True)
class SweepLogins:
    """Meets `Logins` for addresses that may be anybody's. `macs`: by address, as DHCP has given them out."""

    site: Site
    macs: Mapping[str, Mac] = field(default_factory=dict)

    def login(self, host: str, greeting: Greeting) -> Login | None:
        """By serial or BMC MAC where the BMC or DHCP tells them, by the sheet's line for the address unless it is of
        another machine, by vendor, by network.
        """
        mac = greeting.bmc_mac or self.macs.get(host)
        return self.site.logins.choose(
            host, self._node(host, greeting.serial, mac), serial=greeting.serial, mac=mac, vendor=greeting.vendor
        )

    def _node(self, host: str, serial: str, mac: Mac | None) -> SiteNode | None:
        """The site's machine at this address; None where what answers says that it is another."""
        node = next((node for node in self.site.nodes if node.bmc == host), None)
        if node is None:
            return None
        other_serial = serial and node.serial and serial.lower() != node.serial.lower()
        other_mac = mac is not None and node.bmc_mac is not None and mac != node.bmc_mac
        return None if other_serial or other_mac else node
