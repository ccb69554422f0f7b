"""The site's credentials for BMCs, and which of them goes first. Secrets are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from clusterctl.edges.site.factory import FactoryList
from clusterctl.edges.site.kept_passwords import KeptPasswords
from clusterctl.edges.site.secrets import resolve
from clusterctl.fleet.bmc.observation import Greeting
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.site.yaml_document import Document
from clusterctl.ports.logins import Login
from clusterctl.site.bmc import BmcLogin, BmcSettings
from clusterctl.site.fields import SecretRef
from clusterctl.site.nodes import SiteNode

SHEET, FACTORY, EVERYWHERE, ROTATED = "the sheet", "bmc.factory", "bmc.password", "bmc.rotation"
"""Names of logins that have none of their own; those of `bmc.logins` have no dot or blank."""


def _unknown_serial(_name: str) -> str:
    """Return no serial: there is no journal."""
    return ""


@dataclass(frozen=True, slots=True)
class BmcLogins(NeverPickled):
    """`document` names fields of the site file in errors; `read` keeps what was resolved: a vault takes its time.

    `kept` are the passwords that clusterctl gave to BMCs; `serial_of` returns a node's machine, by the journal.
    """

    settings: BmcSettings
    factory: FactoryList
    folder: Path
    document: Document
    kept: KeptPasswords
    read: dict[str, str] = field(default_factory=dict, repr=False)
    serial_of: Callable[[str], str] = field(default=_unknown_serial, repr=False)

    def choose(
        self, host: str, node: SiteNode | None, *, serial: str = "", mac: Mac | None = None, vendor: str = ""
    ) -> Login | None:
        """Return the password that clusterctl gave to this machine; else the site's.

        While it is not proven that the BMC took it, the one before is the login's `former`.
        """
        known = serial or self.factory.serial_of(mac) or self._serial(node)
        generations = self.kept.of(known, node.name if node else "", host)
        if not generations:
            return self.given(host, node, serial=serial, mac=mac, vendor=vendor)
        last = generations[-1]
        login = Login(ROTATED, last.user, last.password)
        if last.proven:
            return login
        before = next((one for one in reversed(generations) if one.proven), None)
        if before is not None:
            return replace(login, former=Login(ROTATED, before.user, before.password))
        return replace(login, former=self.given(host, node, serial=serial, mac=mac, vendor=vendor))

    def _serial(self, node: SiteNode | None) -> str:
        """Return the serial of a node's machine: the journal's, which wins over the sheet's."""
        if node is None or self.kept.empty:
            return ""
        return self.serial_of(node.name) or node.serial

    def given(
        self, host: str, node: SiteNode | None, *, serial: str = "", mac: Mac | None = None, vendor: str = ""
    ) -> Login | None:
        """Return the login that the operator or the vendor gives, None where there is none. The first of these counts:
        the sheet's own password, the vendor's list, the login that the sheet names, the first login that applies, the
        site's.
        """
        row = node or SiteNode(where="", name="", bmc=host)
        user = row.user or self.settings.user
        if row.password:
            return Login(SHEET, user, row.password)
        listed = self.factory.login(serial or row.serial, mac or row.bmc_mac)
        if listed is not None:
            return Login(FACTORY, listed[0] or user, listed[1])
        if row.login:
            return self._named(row)
        return self._of_site(host, vendor, user)

    def _of_site(self, host: str, vendor: str, user: str) -> Login | None:
        """Return the site's first login that applies to the BMC, else the site's login for all BMCs."""
        for index, login in enumerate(self.settings.logins):
            if login.applies(host, vendor):
                return self._resolved(login, index)
        if self.settings.password is None:
            return None
        return Login(EVERYWHERE, user, self._secret(self.settings.password, "bmc", "password"))

    def check(self) -> None:
        """Resolve every reference once, so that a missing secret is found before a BMC is asked."""
        self.kept.all()
        if self.settings.password is not None:
            self._secret(self.settings.password, "bmc", "password")
        for index, login in enumerate(self.settings.logins):
            self._resolved(login, index)
        self.factory.check()

    def _named(self, node: SiteNode) -> Login:
        for index, login in enumerate(self.settings.logins):
            if login.name == node.login:
                return self._resolved(login, index)
        known = ", ".join(login.name for login in self.settings.logins) or "none"
        message = f"there is no login {node.login!r} in bmc.logins, only: {known}"
        raise UsageError(message, where=f"{node.where} bmc_login", remedy="name one of them, or leave it empty")

    def _resolved(self, login: BmcLogin, index: int) -> Login:
        return Login(login.name, login.user, self._secret(login.password, "bmc", "logins", index, "password"))

    def _secret(self, ref: SecretRef, *path: str | int) -> str:
        where = self.document.where(*path)
        if where not in self.read:
            self.read[where] = resolve(ref, self.folder, where)
        return self.read[where]


@dataclass(frozen=True, slots=True)
class SweepLogins:
    """Meets `Logins` for addresses of a sweep, known or not. `macs`: by address, from DHCP leases."""

    logins: BmcLogins
    nodes: tuple[SiteNode, ...]
    macs: Mapping[str, Mac] = field(default_factory=dict)

    def login(self, host: str, greeting: Greeting) -> Login | None:
        """Return the login by serial or BMC MAC where the BMC or DHCP reports them, by the sheet's line for the address
        unless it is of another machine, by vendor, by network.
        """
        mac = greeting.bmc_mac or self.macs.get(host)
        return self.logins.choose(
            host, self._node(host, greeting.serial, mac), serial=greeting.serial, mac=mac, vendor=greeting.vendor
        )

    def _node(self, host: str, serial: str, mac: Mac | None) -> SiteNode | None:
        """Return the site's machine at this address; None where the answer shows another one."""
        node = next((node for node in self.nodes if node.bmc == host), None)
        if node is None:
            return None
        other_serial = serial and node.serial and serial.lower() != node.serial.lower()
        other_mac = mac is not None and node.bmc_mac is not None and mac != node.bmc_mac
        return None if other_serial or other_mac else node
