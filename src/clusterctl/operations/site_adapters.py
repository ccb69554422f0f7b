"""The adapters to the outside systems of a site: BMCs, installers, hosts, Ansible, fabric, scheduler, gold pool."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.firmware_images import ImageFiles
from clusterctl.edges.infiniband import CounterReader, IbnetdiscoverReader, IbPorts, TableReader, TelemetryReader
from clusterctl.edges.installers import Backend, Installers, NoInstaller
from clusterctl.edges.resources import resource
from clusterctl.edges.scheduler import CommandScheduler, ListedScheduler, SlurmJobs, SlurmScheduler
from clusterctl.edges.scheduler.slurm_reboots import SlurmReboots
from clusterctl.edges.site import Site, contents
from clusterctl.edges.ssh import HostKeyScanner, ParamikoShell
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.selectors import matching
from clusterctl.operations.adapters import Access
from clusterctl.operations.gold_pool import GoldPool, gold_pool
from clusterctl.operations.shared_limits import SharedLimits
from clusterctl.operations.site_facts import backend_of, erasing_backend, known_bmcs, stagger, stagger_group, state_dir
from clusterctl.ports.jobs import Jobs
from clusterctl.ports.scheduler import Reboots, Scheduler
from clusterctl.site.scheduling import CommandSettings, ListSettings, SlurmSettings

if TYPE_CHECKING:  # what asks no BMC and no MAAS, and runs no playbook, starts 0.2 s sooner
    from clusterctl.edges.ansible.transports import AnsiblePlaybooks
    from clusterctl.edges.maas import MaasSettings, MaasTurn
    from clusterctl.edges.redfish import PowerOnStagger, RedfishBmcs


class SiteAdapters:
    """Meet `Adapters` with the real systems, as the site names them."""

    def __init__(self, site: Site, access: Access = Access.FULL, limits: SharedLimits | None = None) -> None:
        """Without `limits` those of the site hold for this run alone."""
        self._site = site
        self._limits = limits
        self._access = access
        self._settings = site.settings
        self._origin = site.origin
        self._closing = contextlib.ExitStack()

    def close(self) -> None:
        self._closing.close()

    @cached_property
    def bmcs(self) -> RedfishBmcs:
        from clusterctl.edges.redfish import RedfishBmcs

        return RedfishBmcs(
            CLOCK,
            known=known_bmcs(self._site),
            stagger=self._stagger(),
            read_only=self._access is not Access.FULL,
            origin=self._origin,
        )

    def _stagger(self) -> PowerOnStagger:
        from clusterctl.edges.redfish import PowerOnStagger

        spread, group_of = stagger(self._site), stagger_group(self._site)
        if self._limits is None:
            return PowerOnStagger(spread, group_of)
        return PowerOnStagger(spread, group_of, self._limits.power_on(spread))

    def _maas_turn(self, at_most: int) -> MaasTurn:
        from clusterctl.edges.redfish import at_once

        return at_once if self._limits is None else self._limits.maas(at_most)

    @property
    def accounts(self) -> RedfishBmcs:
        """The same object as `bmcs`: a login that was rejected is not tried again for another purpose."""
        return self.bmcs

    @property
    def services(self) -> RedfishBmcs:
        return self.bmcs

    @property
    def certificates(self) -> RedfishBmcs:
        return self.bmcs

    @cached_property
    def installer(self) -> Installers:
        return Installers(lambda node: self._backends[backend_of(self._site, node)])

    @cached_property
    def eraser(self) -> Installers:
        return Installers(lambda node: self._backends[erasing_backend(self._site, node)])

    @property
    def power_logins(self) -> Installers:
        return self.installer

    @cached_property
    def _backends(self) -> Mapping[str, Backend]:
        """By their names in the site file."""
        found: dict[str, Backend] = {}
        if self._settings.maas is not None:
            from clusterctl.edges.maas import MaasInstaller, MaasPowerLogins

            settings, turn = maas_settings(self._site), self._maas_turn(self._settings.maas.requests_at_once)
            maas = MaasInstaller(settings, CLOCK, turn=turn)
            found["maas"] = Backend(maas, maas, MaasPowerLogins(settings, CLOCK, turn))
        if self._settings.pxe is not None:
            from clusterctl.operations.pxe import pxe_installer

            pxe = pxe_installer(self._site, self.bmcs, self._closing)
            found["pxe"] = Backend(pxe, pxe)
        found["existing"] = Backend(NoInstaller())
        return found

    @cached_property
    def host_keys(self) -> HostKeyScanner:
        return HostKeyScanner(contents.host_authorities(self._site))

    @cached_property
    def shell(self) -> ParamikoShell:
        return self._closing.enter_context(ParamikoShell(CLOCK, self._origin))

    @cached_property
    def playbooks(self) -> AnsiblePlaybooks:
        from clusterctl.edges.ansible.run_folders import sweep
        from clusterctl.edges.ansible.transports import AnsiblePlaybooks, Transport
        from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings

        work_dir = state_dir(self._site) / "ansible"
        sweep(work_dir)  # a killed run may have left secrets there
        settings = RunSettings(
            work_dir=work_dir,
            playbooks_dir=resource("playbooks"),
            roles_dir=resource("roles"),
            limits=PlayLimits(self._settings.configure.forks),
            origin=self._origin,
            clock=CLOCK,
            check=self._access is Access.CHECK,
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
    def fabric_ports(self) -> IbPorts:
        fabric = self._settings.fabric
        return IbPorts(CLOCK, self._origin, ibportstate=fabric.ibportstate, smpquery=fabric.smpquery)

    @cached_property
    def tables(self) -> TableReader:
        return TableReader(CLOCK, self._origin, command=self._settings.fabric.dump_fts)

    @cached_property
    def counters(self) -> CounterReader:
        return CounterReader(CLOCK, self._origin, command=self._settings.fabric.ibqueryerrors)

    @cached_property
    def telemetry(self) -> TelemetryReader | None:
        command = self._settings.fabric.telemetry
        return TelemetryReader(CLOCK, self._origin, command) if command else None

    @property
    def images(self) -> ImageFiles:
        """The firmware images that baselines name."""
        return ImageFiles()

    @cached_property
    def pool(self) -> GoldPool:
        return gold_pool(self._site)

    @cached_property
    def scheduler(self) -> Scheduler | None:
        match self._settings.scheduler:
            case SlurmSettings(ssh=ssh):
                return SlurmScheduler(CLOCK, self._origin, ssh)
            case CommandSettings() as commands:
                return CommandScheduler(
                    CLOCK, self._origin, commands.idle, commands.take, commands.give_back, commands.held
                )
            case ListSettings(nodes=patterns):
                where = self._site.where("scheduler", "nodes")
                return ListedScheduler(frozenset(matching((node.name for node in self._site.nodes), patterns, where)))
            case None:
                return None

    @property
    def reboots(self) -> Reboots | None:
        match self._settings.scheduler:
            case SlurmSettings(ssh=ssh):
                return SlurmReboots(ssh)
            case _:
                return None

    @property
    def jobs(self) -> Jobs | None:
        match self._settings.scheduler:
            case SlurmSettings(ssh=ssh):
                return SlurmJobs(ssh)
            case _:
                return None


def counter_reader(command: tuple[str, ...]) -> CounterReader:
    """Return a reader of the fabric's error counters that needs no site."""
    return CounterReader(CLOCK, Origin.REAL, command)


def maas_settings(site: Site) -> MaasSettings:
    """Return the MAAS edge's settings; reads the API key, a secret, now. Raises `UsageError` without a MAAS."""
    from clusterctl.edges.maas import MaasSettings, StateLimits

    maas = site.settings.maas
    if maas is None:
        raise UsageError("the site has no MAAS", where=site.where("provisioning"), remedy="add backend: maas")
    return MaasSettings(
        url=maas.url,
        api_key=site.maas_api_key(),
        series=maas.series,
        ca_file=site.path(maas.ca_file),
        tls_fingerprint=maas.tls_fingerprint,
        pool=maas.pool,
        move_from_pools=maas.move_from_pools,
        zone=maas.zone,
        tags=maas.tags,
        limits=StateLimits(**asdict(maas.deadlines)),
        origin=site.origin,
        allow_plain_http=maas.allow_plain_http,
    )
