"""The outside of a run, as ports: BMCs, installer, hosts, Ansible, fabric, pool. What a run is composed with."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from clusterctl.edges.ansible.run_folders import sweep
from clusterctl.edges.ansible.transports import AnsiblePlaybooks, Transport
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.edges.infiniband import IbnetdiscoverReader
from clusterctl.edges.installers import Backend, Installers
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.resources import resource
from clusterctl.edges.site import Site
from clusterctl.edges.ssh import ParamikoShell
from clusterctl.operations.context import CLOCK, state_dir
from clusterctl.operations.installing import backend_of, backends
from clusterctl.operations.pool import GoldPool, gold_pool
from clusterctl.operations.stagger import turns
from clusterctl.operations.trust import known_bmcs
from clusterctl.ports import Bmcs, FabricReader, Installer, Playbooks, Pool, Shell
from clusterctl.ports.accounts import AccountBmcs, PowerLogins


class AccountsOutside(Protocol):
    """What a change of BMCs' passwords acts on."""

    @property
    def accounts(self) -> AccountBmcs: ...
    @property
    def power_logins(self) -> PowerLogins: ...


class Outside(AccountsOutside, Protocol):
    """All that a run acts on besides its journal. Each is made when it is first asked for."""

    @property
    def bmcs(self) -> Bmcs: ...
    @property
    def installer(self) -> Installer: ...
    @property
    def shell(self) -> Shell: ...
    @property
    def playbooks(self) -> Playbooks: ...
    @property
    def fabric(self) -> FabricReader: ...
    @property
    def pool(self) -> Pool: ...
    def close(self) -> None:
        """Close what holds connections; nothing of it is used afterwards."""
        ...


class Edges:
    """Meets `Outside` with the real things, as the site names them. With `read_only` no BMC is changed, with `checking`
    no playbook changes a host: it says what it would change.
    """

    def __init__(self, site: Site, *, read_only: bool = False, checking: bool = False) -> None:
        self._site = site
        self._checking = checking
        self._read_only = read_only
        self._settings = site.settings
        self._origin = site.origin
        self._closing = contextlib.ExitStack()

    def close(self) -> None:
        self._closing.close()

    @cached_property
    def bmcs(self) -> RedfishBmcs:
        return RedfishBmcs(
            CLOCK,
            known=known_bmcs(self._site),
            turns=turns(self._site),
            read_only=self._read_only,
            origin=self._origin,
        )

    @property
    def accounts(self) -> RedfishBmcs:
        """The same, so that a login that was rejected is not tried again for another purpose."""
        return self.bmcs

    @cached_property
    def installer(self) -> Installers:
        return Installers(self._backend_of)

    @property
    def power_logins(self) -> Installers:
        return self.installer

    def _backend_of(self, node: str) -> Backend:
        return self._backends[backend_of(self._site, node)]

    @cached_property
    def _backends(self) -> Mapping[str, Backend]:
        """By name; each is made when the site has it."""
        return backends(self._site, self.bmcs, self._closing)

    @cached_property
    def shell(self) -> ParamikoShell:
        return self._closing.enter_context(ParamikoShell(CLOCK, self._origin))

    @cached_property
    def playbooks(self) -> AnsiblePlaybooks:
        work_dir = state_dir(self._site) / "ansible"
        sweep(work_dir)  # also where no play will be run: what a killed run left may hold secrets
        settings = RunSettings(
            work_dir=work_dir,
            playbooks_dir=resource("playbooks"),
            roles_dir=resource("roles"),
            limits=PlayLimits(self._settings.configure.forks),
            origin=self._origin,
            clock=CLOCK,
            check=self._checking,
            secrets=self._site.secret_variables(),
            silence_s=self._settings.claims.lease_s / 2,
        )
        bundles_dir = work_dir.with_name("ansible-for-hosts")
        return AnsiblePlaybooks(
            settings, bundles_dir=bundles_dir, transport=Transport(self._settings.configure.transport)
        )

    @cached_property
    def fabric(self) -> IbnetdiscoverReader:
        fabric = self._settings.fabric
        return IbnetdiscoverReader(CLOCK, self._origin, command=fabric.ibnetdiscover, sminfo=fabric.sminfo)

    @cached_property
    def pool(self) -> GoldPool:
        return gold_pool(self._site)
