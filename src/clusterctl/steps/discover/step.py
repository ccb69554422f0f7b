"""discover: what machine answers at the BMC's address, and is it what was ordered?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from clusterctl.fleet.bmc.logs import UNREAD
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EdgeError,
    ParseError,
    PasswordChangeError,
)
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Evidence, Finding, Observed
from clusterctl.fleet.hardware.drives import root_disk
from clusterctl.fleet.hardware.matching import choose_sku, fitting_skus, match
from clusterctl.fleet.hardware.parts import part_changes
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Inventory, Step
from clusterctl.fleet.payloads.node import NodeIdentified
from clusterctl.fleet.settings.drift import drift
from clusterctl.fleet.settings.drift import findings as drift_findings
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, BmcSettings, Deadline, LogEntry
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.accounts.rotation import RotationResult
from clusterctl.steps.discover import findings, inventory_boot, without_bmc
from clusterctl.steps.discover.inventory_boot import InventoryBoot, as_it_stands, left_alone
from clusterctl.steps.discover.without_bmc import HostMachines
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.reachability import bmc_unreadable
from clusterctl.steps.executor.step import StepOutcome, with_evidence
from clusterctl_burnin.bmc_log.judge import Past, judge_log

ChangePassword = Callable[[NodeState, IntentLog, Deadline], RotationResult]


@dataclass(frozen=True, slots=True)
class DiscoverServices:
    """What discover works with.

    hosts            reads the machines of nodes without a BMC; None: they are left inconclusive
    known_serials    serial or alias → name of the node that it belongs to; empty for an alias of several nodes
    change_password  what is done about a BMC that demands a new password; None: nothing
    """

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]
    known_serials: Callable[[], Mapping[str, str]]
    change_password: ChangePassword | None = None
    hosts: HostMachines | None = None


@dataclass(frozen=True, slots=True)
class DiscoverPlan:
    """What machines are matched against, and how.

    workers    so many machines at a time
    read_only  power no machine on
    poll_s     seconds between two readings of a machine that boots for its inventory
    installed_elsewhere  whether the machine has an OS that clusterctl did not install: it is never powered on
    """

    skus: Sequence[Sku]
    workers: int
    read_only: bool = False
    poll_s: float = inventory_boot.POLL_S
    installed_elsewhere: Callable[[NodeState], bool] = lambda _node: False


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one BMC reports. `asleep`: the finding that makes what is missing unmeasured."""

    inventory: Observed[Inventory]
    log: Observed[tuple[LogEntry, ...]]
    baseline: Observed[tuple[Finding, ...]]
    asleep: Finding | None = None


class Discover:
    """Reads each machine's inventory and logs over Redfish, and matches them against the SKUs.

    A machine without a BMC is identified by its host, once that is adopted.
    Changes nothing on the machine, but for one that its BMC has never seen running: that one is powered on once. With
    `read_only` it is left alone too, and stays inconclusive.
    """

    step = Step.DISCOVER
    minimum = 1
    linger_s = 0.0
    at_once = 16

    def __init__(self, services: DiscoverServices, plan: DiscoverPlan) -> None:
        self._services = services
        self._plan = plan
        self._seen: dict[str, str] = {}

    def run(self, nodes: Sequence[NodeState], intents: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        with ThreadPoolExecutor(min(self._plan.workers, len(nodes)), "discover") as pool:
            futures = [pool.submit(self._discover, node, intents, deadline) for node in nodes]
            for future in as_completed(futures):
                if outcome := future.result():
                    yield outcome

    def _discover(self, node: NodeState, intents: IntentLog, deadline: Deadline) -> StepOutcome | None:
        """Return the outcome, whatever its BMC answers; None for a node that another run has taken meanwhile."""
        try:
            if not node.bmc:
                return self._by_host(node, deadline)
            return self._read_with_password(node, intents, deadline)
        except ClaimLostError:
            return None
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            unreadable = bmc_unreadable if node.bmc else without_bmc.host_unread
            return StepOutcome(node.id, (unreadable(node, peer_error(error, node.name)),))

    def _by_host(self, node: NodeState, deadline: Deadline) -> StepOutcome:
        """Read and judge a machine without a BMC by its own host."""
        seen = self._services.hosts.read(node, deadline) if self._services.hosts is not None else None
        if seen is None:
            return StepOutcome(node.id, (without_bmc.not_adopted(node),))
        return without_bmc.judge_host(node, seen, self._plan.skus, self._identity)

    def _read_with_password(self, node: NodeState, intents: IntentLog, deadline: Deadline) -> StepOutcome | None:
        """Read and judge one machine, after the change of the password that its BMC may demand."""
        try:
            return self._read(node, intents, deadline)
        except PasswordChangeError:
            if self._services.change_password is None:
                raise
        changed = self._services.change_password(node, intents, deadline)
        if isinstance(changed.error, (CancelledError, ClaimLostError)):
            raise changed.error
        if changed.error is not None and not changed.number:
            return StepOutcome(node.id, (bmc_unreadable(node, changed.error),))
        return self._read(node, intents, deadline)

    def _read(self, node: NodeState, intents: IntentLog, deadline: Deadline) -> StepOutcome | None:
        """Read and judge one machine. Raise `PasswordChangeError` where the BMC demands a new password first."""
        asleep = None
        with self._services.bmcs.open(self._services.address_of(node.name), deadline) as bmc:
            inventory = bmc.inventory(deadline)
            identity = self._identity(node, inventory.value)
            reason = self._boot_reason(node, inventory.value) if identity.verdict.admits else ""
            off = self._plan.installed_elsewhere(node) and not inventory.value.on
            if reason and (self._plan.read_only or off):
                inventory, asleep = as_it_stands(inventory, reason), left_alone(reason, installed=off)
            elif reason:
                inventory = InventoryBoot(bmc, node, intents, self._plan.poll_s).read_again(inventory, deadline)
            log = _event_log(bmc, inventory, deadline)
            baseline = _baseline_drift(bmc, inventory.value, self._plan.skus, deadline)
        return self._judge(node, identity, _Reading(inventory, log, baseline, asleep))

    def _identity(self, node: NodeState, inventory: Inventory) -> Finding:
        first = self._seen.setdefault(inventory.serial, node.name)
        owners = {inventory.serial: first, **self._services.known_serials()}
        return findings.identity(node, inventory, owners)

    def _boot_reason(self, node: NodeState, inventory: Inventory) -> str:
        """Return why the machine has to boot before its inventory counts; empty where it does not."""
        skus = fitting_skus(inventory, self._plan.skus)
        expected = {"nics", "drives"} if skus else set()
        expected |= {"gpus"} if any(sku.gpu_count for sku in skus) else set()
        expected |= {"hcas"} if any(sku.hca_count for sku in skus) else set()
        return inventory_boot.reason(node, inventory, frozenset(expected))

    def _judge(self, node: NodeState, identity: Finding, reading: _Reading) -> StepOutcome:
        inventory, log = reading.inventory.value, reading.log
        evidence = reading.inventory.evidence + log.evidence + reading.baseline.evidence
        sku = choose_sku(inventory, self._plan.skus)
        matched = match(inventory, sku) if sku else (findings.no_sku(inventory, self._plan.skus),)
        parts = tuple(findings.doubted(finding, inventory) for finding in matched)
        judged = judge_log(log.value, inventory, parts, log.evidence[0].at, past=_past(node))
        lost = findings.unread(inventory, log.value)
        judged = (findings.boot_ports(node, inventory), *judged, *lost, *reading.baseline.value)
        if reading.asleep is not None:
            judged = (reading.asleep, *(findings.following(finding, reading.asleep) for finding in judged))
        found = [findings.bmc_answers(node), identity, *(findings.with_place(finding, node) for finding in judged)]
        facts = _identified(node, inventory, sku) if identity.verdict.admits else ()
        suite = sku.name if sku else ""
        return StepOutcome(node.id, with_evidence(found, evidence), evidence, facts, suite=suite)


def _event_log(bmc: BmcClient, inventory: Observed[Inventory], deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
    """Return the machine's logs; where the BMC gives none, an entry about that. The inventory stays."""
    try:
        return bmc.event_log(deadline)
    except AuthenticationError:
        raise
    except (EdgeError, ParseError) as error:
        entry = LogEntry("", "", f"{error.where}: {error.message}", message_id=UNREAD, log=error.where or "logs")
        return Observed((entry,), inventory.evidence)


_ON_THE_HOST = (Step.INSTALL, Step.CONFIGURE, Step.BURNIN)
"""Steps with a report that admits a node only after its host answered."""


def _past(node: NodeState) -> Past:
    """Return what the journal knows of the machine: its last discover, and when its host last answered."""
    last = node.reports.get(Step.DISCOVER.value)
    answered = [step.value for step in _ON_THE_HOST if (one := node.reports.get(step.value)) and one.verdict.admits]
    times = [node.reported_at[name] for name in answered if name in node.reported_at]
    return Past(last.findings if last else (), max(times, default=None))


def _baseline_drift(
    bmc: BmcSettings, inventory: Inventory, skus: Sequence[Sku], deadline: Deadline
) -> Observed[tuple[Finding, ...]]:
    """Return the findings on the machine's drift: they keep no node back, but what is unmeasured does.

    Nothing is read where the SKU has no baseline; the firmware versions are in the inventory already.
    """
    sku = choose_sku(inventory, skus)
    if sku is None or sku.baseline is None:
        return Observed(())
    bios, evidence = None, tuple[Evidence, ...]()
    if sku.baseline.bios:
        try:
            seen = bmc.bios(deadline)
            bios, evidence = seen.value, seen.evidence
        except AuthenticationError:
            raise
        except (EdgeError, ParseError):
            pass  # each attribute is then unmeasured
    return Observed(tuple(drift_findings(drift(sku.baseline, bios, inventory.firmware))), evidence)


def _identified(node: NodeState, inventory: Inventory, sku: Sku | None) -> tuple[NewEvent, ...]:
    """Return the node's new attributes, and its added and removed parts, for a machine with a proven identity.

    One of no SKU has an inventory, to make its SKU of. A node keeps the SKU that it had, and the root disk with it.
    """
    if sku is None:
        return () if node.sku else (node_event(node.id, NodeIdentified(inventory=inventory, sku="")),)
    rule = sku.root_disk
    try:
        disk = root_disk(inventory, rule, node.root_disk or "").serial
    except ClusterctlError:
        disk = None
    left_open = rule if rule.chosen_by != "bmc" else None
    identified = NodeIdentified(inventory=inventory, sku=sku.name, root_disk=disk, root_rule=left_open)
    return (node_event(node.id, identified), *part_changes(node, inventory))
