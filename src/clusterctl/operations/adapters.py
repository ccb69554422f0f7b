"""The adapters to the outside systems of a site: BMCs, installers, hosts, Ansible, fabric, scheduler, gold pool."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Protocol

from clusterctl.edges.ansible.run_folders import sweep
from clusterctl.edges.ansible.transports import AnsiblePlaybooks, Transport
from clusterctl.edges.ansible.workspace import PlayLimits, RunSettings
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.disk import disk_explained
from clusterctl.edges.firmware_images import ImageFiles
from clusterctl.edges.infiniband import CounterReader, IbnetdiscoverReader, IbPorts
from clusterctl.edges.installers import Backend, Installers
from clusterctl.edges.maas import MaasInstaller, MaasPowerLogins, MaasSettings, StateLimits
from clusterctl.edges.redfish import KnownBmcs, PowerOnStagger, RedfishBmcs
from clusterctl.edges.resources import resource
from clusterctl.edges.scheduler import CommandScheduler, ListedScheduler, SlurmScheduler
from clusterctl.edges.site import Site
from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.stagger import Stagger
from clusterctl.operations.gold_pool import GoldPool, gold_pool
from clusterctl.operations.selection import matching
from clusterctl.ports import Bmcs, FabricReader, Images, Installer, Playbooks, Pool, PortAdmin, Shell
from clusterctl.ports import CounterReader as FabricCounters
from clusterctl.ports.accounts import AccountBmcs, PowerLogins
from clusterctl.ports.scheduler import Scheduler
from clusterctl.site.scheduling import CommandSettings, ListSettings, SlurmSettings


class Access(enum.Enum):
    """What the adapters may change.

    FULL   everything
    READ   no BMC
    CHECK  no BMC, and playbooks run in check mode
    """

    FULL = "full"
    READ = "read"
    CHECK = "check"


class AccountAdapters(Protocol):
    """What a change of BMC passwords acts on."""

    @property
    def accounts(self) -> AccountBmcs: ...
    @property
    def power_logins(self) -> PowerLogins: ...


class Adapters(AccountAdapters, Protocol):
    """Everything that a run acts on besides its journal. Each is made at its first use."""

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
    def fabric_ports(self) -> PortAdmin: ...
    @property
    def counters(self) -> FabricCounters: ...
    @property
    def images(self) -> Images: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def scheduler(self) -> Scheduler | None:
        """None where the site names no scheduler."""
        ...

    def close(self) -> None:
        """Close the connections; no adapter is used afterwards."""
        ...


class SiteAdapters:
    """Meet `Adapters` with the real systems, as the site names them."""

    def __init__(self, site: Site, access: Access = Access.FULL) -> None:
        self._site = site
        self._access = access
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
            stagger=PowerOnStagger(stagger(self._site), stagger_group(self._site)),
            read_only=self._access is not Access.FULL,
            origin=self._origin,
        )

    @property
    def accounts(self) -> RedfishBmcs:
        """The same object as `bmcs`: a login that was rejected is not tried again for another purpose."""
        return self.bmcs

    @cached_property
    def installer(self) -> Installers:
        return Installers(lambda node: self._backends[backend_of(self._site, node)])

    @property
    def power_logins(self) -> Installers:
        return self.installer

    @cached_property
    def _backends(self) -> Mapping[str, Backend]:
        """By their names in the site file."""
        found: dict[str, Backend] = {}
        if self._settings.maas is not None:
            settings = maas_settings(self._site)
            maas = MaasInstaller(settings, CLOCK)
            found["maas"] = Backend(maas, maas, MaasPowerLogins(settings, CLOCK))
        if self._settings.pxe is not None:
            from clusterctl.operations.pxe import pxe_installer

            found["pxe"] = Backend(pxe_installer(self._site, self.bmcs, self._closing))
        return found

    @cached_property
    def shell(self) -> ParamikoShell:
        return self._closing.enter_context(ParamikoShell(CLOCK, self._origin))

    @cached_property
    def playbooks(self) -> AnsiblePlaybooks:
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
    def counters(self) -> CounterReader:
        return CounterReader(CLOCK, self._origin, command=self._settings.fabric.ibqueryerrors)

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


def counter_reader(command: tuple[str, ...]) -> CounterReader:
    """Return a reader of the fabric's error counters that needs no site."""
    return CounterReader(CLOCK, Origin.REAL, command)


def state_dir(site: Site) -> Path:
    """Return the site's folder for host keys and run directories, mode 0700; make it where it is missing."""
    path = site.folder / "state"
    with disk_explained("the state directory cannot be made", path):
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def backend_of(site: Site, node: str) -> str:
    """Return the name of the installer that installs the node. Raises `UsageError` where the site names none."""
    for item in site.settings.provisioning:
        if item.serves(node):
            return item.backend
    raise UsageError(
        f"no provisioning backend serves {node}",
        where=site.where("provisioning"),
        remedy="leave nodes out of the last backend, or add a pattern that fits",
    )


def maas_settings(site: Site) -> MaasSettings:
    """Return the MAAS edge's settings; reads the API key, a secret, now. Raises `UsageError` without a MAAS."""
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


def known_bmcs(site: Site) -> KnownBmcs:
    """Return the pins of BMC certificates; new ones are learnt only where the site says so."""
    return KnownBmcs(site.folder / "state" / "bmc_pins", learn=site.settings.bmc.first_use == "pin")


def stagger(site: Site) -> Stagger:
    """Return how many machines of one group may switch on at once, and at what distance."""
    setting = site.settings.power.stagger
    return Stagger(setting.at_once, setting.seconds)


def stagger_group(site: Site) -> Callable[[str], str]:
    """Return a function from a BMC's address to the rack or PDU of its machine; unknown ones are one group."""
    per = site.settings.power.stagger.per
    if per == "site":
        return lambda _host: ""
    groups = {node.bmc: node.pdu if per == "pdu" else node.rack for node in site.nodes}
    return lambda host: groups.get(host, "")


def require_scheduler(site: Site, scheduler: Scheduler | None) -> Scheduler:
    """Return the scheduler. Raises `UsageError` where the site names none: it is unknown which nodes are idle."""
    if scheduler is None:
        raise UsageError(
            "the site names no scheduler: it is unknown which nodes are idle",
            where=site.where("scheduler"),
            remedy="add scheduler: {kind: slurm}, or another kind (docs/how-to/nightly.md)",
        )
    return scheduler
