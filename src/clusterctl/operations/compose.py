"""The only place where adapters meet steps: builds the steps of one run from the site."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from clusterctl.cabling.ethernet.verify import without_management
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.hostkeys import HostKeys
from clusterctl.edges.infiniband import SminfoReader
from clusterctl.edges.object_store import LONGEST_S, presigned
from clusterctl.edges.site import contents
from clusterctl.edges.site.host_networks import HostNetworks, host_networks
from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import WiringPlan, leaves_of_hosts
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.hardware.disk_contract import DATA, ROOT
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import WavePolicy
from clusterctl.operations.accounts import rotator
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.fabric_files import limits_for
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.host_configuration import driver_of, role_variables
from clusterctl.operations.known_hosts import KnownHosts
from clusterctl.operations.known_serials import KnownSerials
from clusterctl.operations.site_facts import never_installed, state_dir
from clusterctl.ports import BmcAddress, BmcClient, Deadline, HostAddress
from clusterctl.site.configure import WaveSettings
from clusterctl.steps.admit import Admit
from clusterctl.steps.burnin.campaigns import CampaignStore
from clusterctl.steps.burnin.fleet_figures import FleetFigures
from clusterctl.steps.burnin.node_checks import NodeChecker
from clusterctl.steps.burnin.node_under_test import SkuLimits
from clusterctl.steps.burnin.plan import BurninPlan, BurninServices, Concurrency
from clusterctl.steps.burnin.step import Burnin
from clusterctl.steps.cable.ethernet import CableWithEthernet
from clusterctl.steps.cable.fabric_record import FabricRecord
from clusterctl.steps.cable.link_health import LinkCollector
from clusterctl.steps.cable.lldp import LldpReader
from clusterctl.steps.cable.roce import CableByFabric, RoceLinks
from clusterctl.steps.cable.step import Cable, Wiring
from clusterctl.steps.configure.hardware import HardwareProbe
from clusterctl.steps.configure.step import Configure, ConfigureServices
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.discover.without_bmc import HostMachines
from clusterctl.steps.executor.pace import SubnetManagerPace
from clusterctl.steps.executor.permits import PermitPool, install_pool, reboot_pool
from clusterctl.steps.executor.pipeline import Observer, Pipeline
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import StepRunner
from clusterctl.steps.executor.step_queue import StepLimits
from clusterctl.steps.fabric_burn import BurnServices
from clusterctl.steps.install.adopt import Adopt, AdoptServices, InstallOrAdopt
from clusterctl.steps.install.confirm import HostAccess
from clusterctl.steps.install.job import TargetNetworks
from clusterctl.steps.install.step import Install, InstallServices
from clusterctl.steps.job_collection import JobCollector
from clusterctl.steps.job_tail import TailReader
from clusterctl.steps.storage_clients import StorageReader
from clusterctl_burnin.host_requirements import HostRequirements, StorageSource
from clusterctl_burnin.suites.suite import Suite

INTRODUCE_S = 300.0
BURNINS_SIGNED = 4
"""A signed URL holds for so many burn-ins of the longest kind: batches, and one confirming run."""


def policy(settings: WaveSettings, batch: int) -> WavePolicy:
    """Return the waves of one step by the site's settings."""
    return WavePolicy(**(asdict(settings) | {"at_once": settings.at_once or batch}))


def reboot_cap(context: SiteContext) -> PermitPool:
    """Return the cap on hosts of the site that reboot at once; smaller while its subnet manager is busy.

    Its activity is read where the site names `fabric.sminfo`.
    """
    pace, reboots = subnet_manager_pace(context), context.site.settings.fabric.reboots
    if pace is None:
        return reboot_pool(context.journal, reboots, context.on_wait)
    return reboot_pool(context.journal, reboots, context.on_wait, pace)


def subnet_manager_pace(context: SiteContext) -> SubnetManagerPace | None:
    """Return what slows work down while the subnet manager is busy; None where the site names no `fabric.sminfo`."""
    fabric = context.site.settings.fabric
    if not fabric.sminfo:
        return None
    return SubnetManagerPace(SminfoReader(fabric.sminfo), fabric.sm_busy, context.on_wait)


@dataclass(frozen=True, slots=True)
class _BmcsAtFirstUse:
    """Meets `Bmcs`. The Redfish client takes 0.1 s to load, and checks of healthy nodes ask no BMC."""

    adapters: Adapters

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient:
        return self.adapters.bmcs.open(address, deadline)


class StepFactory:
    """Builds the steps of a run from the site, the adapters and the journal."""

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

    def pipeline(self, way: Sequence[Step], observer: Observer) -> Pipeline:
        """Return the steps of `way`, in order, with the site's policy, batch sizes, waves and deadlines."""
        build: Mapping[Step, Callable[[], StepRunner]] = {
            Step.DISCOVER: self._discover,
            Step.INSTALL: self._install,
            Step.CONFIGURE: self._configure,
            Step.CABLE: self._cable,
            Step.BURNIN: self._burnin,
            Step.ADMIT: Admit,
        }
        batch, deadlines = asdict(self._settings.batch), asdict(self._settings.deadlines)
        waves = {
            Step.INSTALL: policy(self._settings.waves, self._settings.batch.install),
            Step.CONFIGURE: policy(self._settings.configure.waves, self._settings.batch.configure),
        }
        permits = {Step.INSTALL: install_pool(self._context.journal, waves[Step.INSTALL].at_once)}
        limits = {
            step: StepLimits(
                size=batch.get(step.value, 4096),
                deadline_s=float(deadlines.get(step.value, 60)),
                waves=waves.get(step),
                permits=permits.get(step),
            )
            for step in Step
        }
        recorder = Recorder(self._context.journal, self._policy(), CLOCK)
        return Pipeline([build[step]() for step in way], recorder, limits, self._cancelled, observer)

    def publish(self) -> None:
        """Publish the gold pool for schedulers."""
        publish(self._context.journal, self._adapters.pool)

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
        change_password = rotator(self._context, self._adapters).one if at_discovery else None
        hosts = HostMachines(self._adapters.shell, self._ssh)
        services = DiscoverServices(
            self._adapters.bmcs, self._site.bmc_address, KnownSerials(self._context.journal), change_password, hosts
        )
        plan = DiscoverPlan(
            self._site.skus,
            self._settings.batch.discover,
            self._read_only,
            installed_elsewhere=partial(never_installed, self._site),
        )
        return Discover(services, plan)

    def _install(self) -> InstallOrAdopt:
        """Return the step: nodes that were adopted, or that the site never installs, are verified only."""
        adopt = Adopt(AdoptServices(self._adapters.shell, self._ssh))
        return InstallOrAdopt(self._installs(), adopt, partial(never_installed, self._site))

    def _installs(self) -> Install:
        adapters = self._adapters
        services = InstallServices(adapters.installer, adapters.shell, adapters.bmcs, self._site.bmc_address)
        networks = TargetNetworks(self._networks.network, self._networks.address)
        return Install(services, self._access(), networks, poll_s=self._settings.timing.install_poll_s)

    def _configure(self) -> Configure:
        settings = self._settings.configure
        known = contents.known_lines(self._site)
        hardware = HardwareProbe(self._adapters.shell, CLOCK, self._bmc_probe, self._limits, known)
        permits = reboot_cap(self._context).taken
        services = ConfigureServices(self._adapters.playbooks, self._ssh, self._bmc_probe, hardware, permits)
        return Configure(services, settings.playbook, self._variables, reboots=settings.reboots)

    def _cable(self) -> StepRunner:
        """Return the step; where a SKU's fabric is Ethernet, one that gives each node the step of its fabric."""
        skus = {sku.name: sku for sku in self._site.skus}
        if all(sku.hca_link_layer == "InfiniBand" for sku in skus.values()):
            return self._cable_of_infiniband()
        ethernet = contents.ethernet_plan(self._site)
        roce = RoceLinks(self._adapters.shell, self._ssh, ethernet, skus, self._settings.parallel.lldp)
        proven = roce if ethernet is None else self._with_ethernet(roce, ethernet)
        return CableByFabric(self._cable_of_infiniband, proven, skus)

    def _cable_of_infiniband(self) -> StepRunner:
        """Return the step, together with that for the Ethernet cables where the site has a plan of them."""
        journal = self._context.journal
        skus = {sku.name: sku for sku in self._site.skus}
        plan = contents.wiring_plan(self._site)
        wiring = Wiring(plan, self._known_hosts.adapters, limits_for(self._site).value("broken_links_max"))
        settle_s = self._settings.timing.link_training_s
        step = Cable(self._adapters.fabric, FabricRecord(journal), wiring, skus, settle_s, self.link_collector())
        ethernet = contents.ethernet_plan(self._site)
        return step if ethernet is None else self._with_ethernet(step, ethernet)

    def link_collector(self) -> LinkCollector:
        """Return what keeps the counters of the fabric's ports, and judges its links over a day."""
        adapters, plan = self._adapters, contents.wiring_plan(self._site)
        return LinkCollector(self._context.journal, adapters.fabric, adapters.counters, limits_for(self._site), plan)

    def _with_ethernet(self, step: StepRunner, plan: WiringPlan) -> CableWithEthernet:
        lldp = LldpReader(self._adapters.shell, self._settings.parallel.lldp)
        settle_s = self._settings.timing.link_training_s
        return CableWithEthernet(step, plan, lldp, self._ssh, self._named, settle_s)

    def _named(self, names: Iterable[str]) -> Sequence[NodeState]:
        wanted = set(names)
        known = self._context.journal.summaries() if wanted else ()
        return [self._context.journal.state(node.id) for node in known if node.name in wanted]

    def _burnin(self) -> Burnin:
        plan = replace(self._burnin_plan(self._suite), leaf_of=self._leaves, partners=self._partners)
        return Burnin(self._burnin_services(), plan)

    def node_checker(self, suite: Suite) -> NodeChecker:
        """Return what runs the checks of `suite` on one node after another, outside of any step."""
        return NodeChecker(self._burnin_services(), self._burnin_plan(suite))

    def job_collector(self) -> JobCollector:
        """Return what reads the evidence of a job from its nodes."""
        return JobCollector(
            shell=self._adapters.shell,
            bmcs=self._adapters.bmcs,
            bmc_address=self._site.bmc_address,
            access=self._ssh,
            states={state.name: state for state in self._context.journal.states()},
            workers=self._settings.parallel.checks,
        )

    def job_tail(self) -> TailReader:
        """Return what reads the logs of running jobs."""
        states = {state.name: state for state in self._context.journal.states()}
        return TailReader(self._adapters.shell, self._ssh, states)

    def storage_reader(self) -> StorageReader:
        """Return what reads the storage clients of nodes."""
        states = {state.name: state for state in self._context.journal.states()}
        return StorageReader(self._adapters.shell, self._ssh, states, self._settings.parallel.checks)

    def leaves(self) -> Mapping[str, str]:
        """Return the leaf switches of each node by the wiring plans; none without a plan."""
        return self._leaves

    def fabric_burn(self) -> BurnServices:
        """Return what a burn of the fabric works with."""
        adapters = self._adapters
        return BurnServices(
            shell=adapters.shell,
            fabric=adapters.fabric,
            tables=adapters.tables,
            counters=adapters.counters,
            journal=self._context.journal,
            access=self._ssh,
            profiles=self._limits,
        )

    def _burnin_services(self) -> BurninServices:
        return BurninServices(
            shell=self._adapters.shell,
            access=self._ssh,
            bmcs=self._bmc_probe,
            clock=CLOCK,
            campaigns=CampaignStore(self._context.journal, CLOCK),
            fleet=FleetFigures(self._context.journal, CLOCK),
            introduce=self._introduce,
        )

    def _burnin_plan(self, suite: Suite) -> BurninPlan:
        parallel = self._settings.parallel
        return BurninPlan(
            suite=suite,
            limits=self._limits,
            driver_of=partial(driver_of, wanted(self._site)),
            network_of=self._networks.network,
            known_lines=contents.known_lines(self._site),
            requirements=self._requirements(),
            concurrency=Concurrency(checks=parallel.checks, jobs=parallel.jobs, loads=parallel.loads),
            sample_s=self._settings.timing.load_sample_s,
        )

    def _requirements(self) -> HostRequirements:
        """Return what the site wants of its hosts, and the storage to read; a signed URL holds for the burn-in."""
        found, storage = contents.host_requirements(self._site), self._settings.storage
        if storage is None or self._read_only:
            return found
        url, key = storage.url, self._site.store_key()
        if key is not None:
            url = presigned(url, key, CLOCK.now(), min(LONGEST_S, self._settings.deadlines.burnin * BURNINS_SIGNED))
        return replace(found, storage=StorageSource(url=url, path=storage.path, gbps=storage.gbps))

    @cached_property
    def _leaves(self) -> Mapping[str, str]:
        """Return the leaf switches of each node, of RoCE nodes by the Ethernet plan; none without a plan."""
        roce = any(sku.hca_link_layer == "Ethernet" for sku in self._site.skus)
        ethernet = contents.ethernet_plan(self._site) if roce else None
        leaves = leaves_of_hosts(without_management(ethernet)) if ethernet else {}
        try:
            return {**leaves, **leaves_of_hosts(contents.wiring_plan(self._site))}
        except UsageError:
            return leaves

    @cached_property
    def _limits(self) -> Mapping[str, SkuLimits]:
        return {sku.name: SkuLimits(sku, contents.limits(self._site, sku.limits)) for sku in self._site.skus}

    @cached_property
    def _networks(self) -> HostNetworks:
        return host_networks(self._site)

    @cached_property
    def _suite(self) -> Suite:
        return contents.suite(self._site)

    @cached_property
    def _bmc_probe(self) -> BmcProbe:
        return BmcProbe(_BmcsAtFirstUse(self._adapters), self._site.bmc_address)

    @cached_property
    def _known_hosts(self) -> KnownHosts:
        return KnownHosts(self._context.journal)

    @cached_property
    def _ssh(self) -> SshAccess:
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

    def _variables(self, hosts: Sequence[HostAddress]) -> Mapping[str, Any]:
        return role_variables(self._context, self._known_hosts(), hosts)

    def _introduce(self, hosts: Sequence[HostAddress], deadline: Deadline) -> Mapping[str, str]:
        plays = self._adapters.playbooks.run(
            "introduce.yml", hosts, self._variables(hosts), deadline.within(INTRODUCE_S)
        )
        return {play.value.host: play.value.message for play in plays if not play.value.ok}
