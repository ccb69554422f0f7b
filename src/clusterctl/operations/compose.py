"""The only place where adapters meet steps: builds the steps of one run from the site."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.site import contents
from clusterctl.edges.site.host_networks import HostNetworks, host_networks
from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.hardware.disk_contract import DATA, ROOT
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import WavePolicy
from clusterctl.operations.accounts import rotator
from clusterctl.operations.adapters import Adapters, state_dir
from clusterctl.operations.cabling_hosts import fabric_hosts
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_readings import most_broken_percent
from clusterctl.operations.network_cables import with_neighbours
from clusterctl.operations.pool import publish
from clusterctl.operations.role_variables import driver_of, role_variables
from clusterctl.ports import Deadline, HostAddress
from clusterctl.site.configure import WaveSettings
from clusterctl.steps.admit import Admit
from clusterctl.steps.burnin.campaigns import CampaignStore
from clusterctl.steps.burnin.fleet_figures import FleetFigures
from clusterctl.steps.burnin.load_rounds import Concurrency
from clusterctl.steps.burnin.node_under_test import SkuLimits
from clusterctl.steps.burnin.step import Burnin
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.step import Cable, Wiring
from clusterctl.steps.configure.step import Configure
from clusterctl.steps.discover.step import Discover
from clusterctl.steps.executor.pipeline import Pipeline, Stopped, Watcher
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import StepRunner
from clusterctl.steps.install.confirm import HostAccess
from clusterctl.steps.install.job import TargetNetworks
from clusterctl.steps.install.step import Install
from clusterctl_burnin.suites.suite import Suite

INTRODUCE_S = 300.0


def policy(said: WaveSettings, batch: int) -> WavePolicy:
    """The waves of one step, as the site says them."""
    return WavePolicy(**(asdict(said) | {"at_once": said.at_once or batch}))


class StepFactory:
    """Builds the steps of a run, between the adapters and the journal."""

    def __init__(
        self,
        context: SiteContext,
        adapters: Adapters,
        cancelled: threading.Event,
        partners: Sequence[NodeState] = (),
        *,
        read_only: bool = False,
    ) -> None:
        self._context = context
        self._adapters = adapters
        self._site = context.site
        self._settings = context.site.settings
        self._cancelled = cancelled
        self._partners = partners
        self._read_only = read_only

    def pipeline(self, way: Sequence[Step], watch: Watcher, stopped: Stopped) -> Pipeline:
        """The steps of `way`, in order, under the site's policy, batch sizes, waves and deadlines."""
        build: Mapping[Step, Callable[[], StepRunner]] = {
            Step.DISCOVER: self._discover,
            Step.INSTALL: self._install,
            Step.CONFIGURE: self._configure,
            Step.CABLE: self._cable,
            Step.BURNIN: self._burnin,
            Step.ADMIT: Admit,
        }
        steps = [build[verb]() for verb in way]
        batch, deadlines = asdict(self._settings.batch), asdict(self._settings.deadlines)
        return Pipeline(
            steps,
            self._context.journal,
            Recorder(self._context.journal, self._policy(), CLOCK),
            sizes={verb: batch.get(verb.value, 4096) for verb in Step},
            deadlines={verb: float(deadlines.get(verb.value, 60)) for verb in Step},
            watch=watch,
            cancelled=self._cancelled,
            waves={
                Step.INSTALL: policy(self._settings.waves, self._settings.batch.install),
                Step.CONFIGURE: policy(self._settings.configure.waves, self._settings.batch.configure),
            },
            stopped=stopped,
        )

    def publish(self) -> None:
        """Write the gold pool for those who schedule on it."""
        publish(self._context, self._adapters.pool)

    def _policy(self) -> Policy:
        return Policy(
            required={
                Step.DISCOVER: frozenset({"bmc", "identity", "sku_model", "gpu_count", "hca_count", "root_disk"}),
                Step.INSTALL: frozenset({"install", ROOT, DATA}),
                Step.CONFIGURE: frozenset({"configure"}),
                Step.CABLE: frozenset({"cable", "link_rate"}),
                Step.BURNIN: self._suite.required,
                Step.ADMIT: frozenset({"admission"}),
            },
            attempts=self._settings.limits.attempts,
            simulated=self._settings.simulated,
            max_age=timedelta(days=self._settings.limits.max_evidence_age_days),
        )

    def _discover(self) -> Discover:
        rotation = self._settings.bmc.rotation
        at_discovery = rotation is not None and rotation.when == "discover" and not self._read_only
        return Discover(
            self._adapters.bmcs,
            self._site.bmc_address,
            self._site.skus,
            self._serials,
            self._settings.batch.discover,
            read_only=self._read_only,
            change_password=rotator(self._context, self._adapters).one if at_discovery else None,
        )

    def _install(self) -> Install:
        return Install(
            self._adapters.installer,
            self._adapters.shell,
            self._adapters.bmcs,
            self._site.bmc_address,
            access=self._access(),
            poll_s=self._settings.timing.install_poll_s,
            networks=TargetNetworks(self._networks.network, self._networks.address),
        )

    def _configure(self) -> Configure:
        said = self._settings.configure
        return Configure(
            self._adapters.playbooks, said.playbook, self._variables, self._reach, self._witness, reboots=said.reboots
        )

    def _cable(self) -> StepRunner:
        journal = self._context.journal
        skus = {sku.name: sku for sku in self._site.skus}
        plan = contents.wiring_plan(self._site)
        wiring = Wiring(plan, partial(fabric_hosts, journal), most_broken_percent())
        settle_s = self._settings.timing.link_training_s
        step = Cable(self._adapters.fabric, FabricRecord(journal), wiring, skus, settle_s)
        return with_neighbours(step, self._context, self._adapters.shell, self._reach, settle_s)

    def _burnin(self) -> Burnin:
        parallel = self._settings.parallel
        kinds = {sku.name: SkuLimits(sku, contents.limits(self._site, sku.limits)) for sku in self._site.skus}
        return Burnin(
            self._adapters.shell,
            self._suite,
            kinds,
            self._reach,
            self._introduce,
            witness=self._witness,
            clock=CLOCK,
            book=CampaignStore(self._context.journal, CLOCK),
            fleet=FleetFigures(self._context.journal, CLOCK),
            driver_of=partial(driver_of, wanted(self._site)),
            network_of=self._networks.network,
            known_lines=contents.known_lines(self._site),
            requirements=contents.host_requirements(self._site),
            partners=self._partners,
            pace=Concurrency(sweeps=parallel.checks, jobs=parallel.jobs, solo=parallel.loads),
        )

    @cached_property
    def _networks(self) -> HostNetworks:
        return host_networks(self._site)

    @cached_property
    def _suite(self) -> Suite:
        return contents.suite(self._site)

    @cached_property
    def _witness(self) -> BmcProbe:
        return BmcProbe(self._adapters.bmcs, self._site.bmc_address)

    @cached_property
    def _reach(self) -> SshAccess:
        return SshAccess(self._settings.ssh.user, self._site.path(self._settings.ssh.private_key))

    def _access(self) -> HostAccess:
        key_file, authorized_key = contents.ssh_key(self._site)
        keys = HostKeys(state_dir(self._site) / "host_keys")
        return HostAccess(
            user=self._settings.ssh.user,
            authorized_key=authorized_key,
            key_file=str(key_file),
            host_key=keys.get,
            new_host_key=keys.renew,
        )

    def _serials(self) -> Mapping[str, str]:
        """Whose serials are known, retired nodes' too: a machine comes back by a person's word only."""
        return {node.serial: node.name for node in self._context.journal.summaries() if node.serial}

    def _variables(self, hosts: Sequence[HostAddress]) -> Mapping[str, Any]:
        return role_variables(self._context, self._reach, hosts)

    def _introduce(self, hosts: Sequence[HostAddress], deadline: Deadline) -> Mapping[str, str]:
        plays = self._adapters.playbooks.run(
            "introduce.yml", hosts, self._variables(hosts), deadline.within(INTRODUCE_S)
        )
        return {play.value.host: play.value.message for play in plays if not play.value.ok}
