"""The only place where edges meet steps: builds the crew of one run from the site."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from clusterctl.burnin.limit import Limits, parse_limits, shipped_limits
from clusterctl.burnin.suite import Suite, shipped_suite
from clusterctl.cabling.names import Hosts
from clusterctl.cli.office import CLOCK, Office, state_dir
from clusterctl.edges.ansible.playbooks import RunnerPlaybooks
from clusterctl.edges.fabric import IbnetdiscoverReader
from clusterctl.edges.hostkeys import HostKeys, public_key
from clusterctl.edges.maas import MaasInstaller, MaasSettings
from clusterctl.edges.pool import FilePool
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.edges.resources import resource
from clusterctl.edges.site.secrets import private_text
from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import Stage, Verb
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.wiring import PortName, WiringPlan
from clusterctl.formats.wiring import decode_plan
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.admit import Admit
from clusterctl.steps.burnin import Burnin
from clusterctl.steps.cable import Cable
from clusterctl.steps.configure import Configure
from clusterctl.steps.discover import Discover
from clusterctl.steps.guests import Kind
from clusterctl.steps.hosts import Reach
from clusterctl.steps.install import HostAccess, Install
from clusterctl.steps.record import Recorder
from clusterctl.steps.run import Pipeline, Watcher
from clusterctl.steps.step import Step

INSTALL_POLL_S = {True: 1.0, False: 15.0}
"""Seconds between two looks at the installer, by whether the site is a rehearsal."""
SETTLE_S = {True: 5.0, False: 60.0}
"""Seconds that links may take to train after a boot, likewise."""
INTRODUCE_S = 300.0


class Crew:
    """Everything that a run works with. A context manager: what holds connections is closed at its end."""

    def __init__(self, office: Office, cancelled: threading.Event, partners: Sequence[NodeState] = ()) -> None:
        self._office = office
        self._site = office.site
        self._settings = office.site.settings
        self._cancelled = cancelled
        self._partners = partners
        self._origin = Origin.SIMULATED if self._settings.simulated else Origin.REAL
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._closing.close()

    def pipeline(self, way: Sequence[Verb], watch: Watcher) -> Pipeline:
        """The steps of `way`, in order, under the site's policy, batch sizes and deadlines."""
        build: Mapping[Verb, Callable[[], Step]] = {
            Verb.DISCOVER: self._discover,
            Verb.INSTALL: self._install,
            Verb.CONFIGURE: self._configure,
            Verb.CABLE: self._cable,
            Verb.BURNIN: self._burnin,
            Verb.ADMIT: Admit,
        }
        steps = [build[verb]() for verb in way]
        batch, deadlines = self._settings.batch.model_dump(), self._settings.deadlines.model_dump()
        return Pipeline(
            steps,
            self._office.journal,
            Recorder(self._office.journal, self._policy(), CLOCK),
            sizes={verb: batch.get(verb.value, 4096) for verb in Verb},
            deadlines={verb: float(deadlines.get(verb.value, 60)) for verb in Verb},
            watch=watch,
            cancelled=self._cancelled,
        )

    def publish(self) -> None:
        """Write the gold pool for those who schedule on it."""
        gold = {node.name: node.address for node in self._office.journal.summaries() if node.stage is Stage.GOLD}
        file = Path(self._site.path(self._settings.pool))
        FilePool(file, self._settings.name, self._settings.simulated, CLOCK).publish(gold)

    def _policy(self) -> Policy:
        return Policy(
            required={
                Verb.DISCOVER: frozenset({"bmc", "identity", "sku_model", "gpu_count", "hca_count", "root_disk"}),
                Verb.INSTALL: frozenset({"install"}),
                Verb.CONFIGURE: frozenset({"configure"}),
                Verb.CABLE: frozenset({"cable", "link_rate"}),
                Verb.BURNIN: self._suite.required,
                Verb.ADMIT: frozenset({"admission"}),
            },
            attempts=self._settings.limits.attempts,
            simulated=self._settings.simulated,
            max_age=timedelta(days=self._settings.limits.max_evidence_age_days),
        )

    def _discover(self) -> Discover:
        return Discover(
            self._bmcs, self._site.bmc_address, self._site.skus, self._serials, self._settings.batch.discover
        )

    def _install(self) -> Install:
        provisioning = self._settings.provisioning
        settings = MaasSettings(
            url=provisioning.url,
            api_key=self._site.maas_api_key(),
            series=provisioning.series,
            ca_file=self._site.path(provisioning.ca_file),
            pool=provisioning.pool,
            zone=provisioning.zone,
            origin=self._origin,
            allow_plain_http=provisioning.allow_plain_http,
        )
        poll_s = INSTALL_POLL_S[self._settings.simulated]
        installer = MaasInstaller(settings, CLOCK)
        access = self._access()
        return Install(installer, self._shell, self._bmcs, self._site.bmc_address, access=access, poll_s=poll_s)

    def _configure(self) -> Configure:
        return Configure(self._playbooks, self._settings.configure.playbook, self._variables, self._reach)

    def _cable(self) -> Cable:
        fabric = self._settings.fabric
        reader = IbnetdiscoverReader(CLOCK, self._origin, command=fabric.ibnetdiscover, sminfo=fabric.sminfo)
        skus = {sku.name: sku for sku in self._site.skus}
        return Cable(reader, self._plan(), self._fabric_hosts, skus, SETTLE_S[self._settings.simulated])

    def _burnin(self) -> Burnin:
        kinds = {sku.name: Kind(sku, self._limits(sku.limits)) for sku in self._site.skus}
        driver = str(self._settings.configure.variables.get("nvidia_driver_version", ""))
        return Burnin(
            self._shell,
            self._suite,
            kinds,
            self._reach,
            self._introduce,
            clock=CLOCK,
            driver_version=driver,
            partners=self._partners,
        )

    @cached_property
    def _bmcs(self) -> RedfishBmcs:
        return RedfishBmcs(CLOCK)

    @cached_property
    def _shell(self) -> ParamikoShell:
        return self._closing.enter_context(ParamikoShell(CLOCK, self._origin))

    @cached_property
    def _suite(self) -> Suite:
        return shipped_suite(self._settings.burnin)

    @cached_property
    def _reach(self) -> Reach:
        return Reach(self._settings.ssh.user, self._site.path(self._settings.ssh.private_key))

    @cached_property
    def _playbooks(self) -> RunnerPlaybooks:
        return RunnerPlaybooks(
            work_dir=state_dir(self._site) / "ansible",
            playbooks_dir=resource("playbooks"),
            roles_dir=resource("roles"),
            forks=self._settings.configure.forks,
            origin=self._origin,
            clock=CLOCK,
        )

    def _access(self) -> HostAccess:
        key_file = Path(self._site.path(self._settings.ssh.private_key))
        private = private_text(key_file, f"{self._site.folder / 'site.yml'} ssh.private_key")
        return HostAccess(
            user=self._settings.ssh.user,
            authorized_key=public_key(private + "\n", str(key_file)),
            key_file=str(key_file),
            host_key=HostKeys(state_dir(self._site) / "host_keys").get,
        )

    def _limits(self, name: str) -> Limits:
        """The site's own limits of that name, else the shipped ones."""
        own = self._site.folder / "limits" / f"{name}.yml"
        return parse_limits(own.read_text(encoding="utf-8"), where=str(own)) if own.exists() else shipped_limits(name)

    def _plan(self) -> WiringPlan:
        file = Path(self._site.path(self._settings.fabric.plan))
        try:
            return decode_plan(file.read_bytes(), file=str(file))
        except OSError as error:
            remedy = "name the wiring plan in fabric.plan"
            raise UsageError(f"cannot be read: {error.strerror}", where=str(file), remedy=remedy) from None

    def _serials(self) -> Mapping[str, Any]:
        return {node.serial: node.id for node in self._office.journal.summaries() if node.serial}

    def _fabric_hosts(self) -> Hosts:
        """Every adapter's GUID that a BMC told, and whose it is."""
        return {
            hca.guid: PortName(node.name, "")
            for node in self._office.journal.states()
            if node.inventory is not None
            for hca in node.inventory.hcas or ()
            if hca.guid
        }

    def _variables(self, hosts: Sequence[HostAddress]) -> Mapping[str, Any]:
        """The roles' variables: who the nodes are, then what the site says."""
        known = {node.name: self._reach.address(node) for node in self._office.journal.states()}
        known.update((host.name, host) for host in hosts)
        nodes = {
            name: {"address": host.address, "host_key": host.host_key}
            for name, host in known.items()
            if host is not None
        }
        users = [self._settings.ssh.user]
        return {"ssh_access_nodes": nodes, "ssh_access_node_users": users, **self._settings.configure.variables}

    def _introduce(self, hosts: Sequence[HostAddress], deadline: Deadline) -> Mapping[str, str]:
        plays = self._playbooks.run("introduce.yml", hosts, self._variables(hosts), deadline.within(INTRODUCE_S))
        return {play.value.host: play.value.message for play in plays if not play.value.ok}
