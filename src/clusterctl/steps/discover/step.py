"""discover: what machine answers at the BMC's address, and is it what was ordered?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import (
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EdgeError,
    ParseError,
    PasswordChangeError,
)
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Finding, Observed, Verdict, passed
from clusterctl.fleet.hardware.matching import choose_sku, fitting_skus, match, root_disk
from clusterctl.fleet.hardware.parts import part_changes
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Inventory, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Bmcs, Deadline, LogEntry
from clusterctl.steps.accounts.rotation import RotationResult
from clusterctl.steps.discover import baseline, inventory_boot
from clusterctl.steps.discover.inventory_boot import PowerOnOnce, as_it_stands, left_alone
from clusterctl.steps.executor.reachability import bmc_unreadable
from clusterctl.steps.executor.step import IntentLog, Outcome, node_event, with_evidence
from clusterctl_burnin.bmc_log.judge import judge_log

ChangePassword = Callable[[NodeState, IntentLog, Deadline], RotationResult]


class Discover:
    """Reads each machine's inventory and logs over Redfish, and matches them against the SKUs.

    Changes nothing on the machine, but for one that its BMC has never seen running: that one is powered on once; with
    `read_only` it is left alone too, and stays inconclusive.
    """

    step = Step.DISCOVER
    minimum = 1
    linger_s = 0.0
    at_once = 16

    def __init__(
        self,
        bmcs: Bmcs,
        address_of: Callable[[str], BmcAddress],
        skus: Sequence[Sku],
        known_serials: Callable[[], Mapping[str, str]],
        workers: int,
        *,
        look_s: float = inventory_boot.LOOK_S,
        read_only: bool = False,
        change_password: ChangePassword | None = None,
    ) -> None:
        """`change_password`: what is done about a BMC that wants it before it does anything; None: nothing."""
        self._bmcs = bmcs
        self._address_of = address_of
        self._skus = skus
        self._known_serials = known_serials
        self._workers = workers
        self._look_s = look_s
        self._read_only = read_only
        self._change_password = change_password
        self._answered: dict[str, str] = {}

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[Outcome]:
        with ThreadPoolExecutor(min(self._workers, len(nodes)), "discover") as pool:
            futures = [pool.submit(self._one, node, acts, deadline) for node in nodes]
            for future in as_completed(futures):
                if outcome := future.result():
                    yield outcome

    def _one(self, node: NodeState, acts: IntentLog, deadline: Deadline) -> Outcome | None:
        """None for a node that another run has taken meanwhile: there is nothing more to say of it."""
        try:
            return self._seen(node, acts, deadline)
        except PasswordChangeError as error:
            if self._change_password is None:
                return Outcome(node.id, (bmc_unreadable(node, error),))
        changed = self._change_password(node, acts, deadline)
        if isinstance(changed.error, ClaimLostError):
            return None
        if isinstance(changed.error, CancelledError):
            raise changed.error
        if changed.error is not None and not changed.number:
            return Outcome(node.id, (bmc_unreadable(node, changed.error),))
        try:
            return self._seen(node, acts, deadline)
        except PasswordChangeError as error:
            return Outcome(node.id, (bmc_unreadable(node, error),))

    def _seen(self, node: NodeState, acts: IntentLog, deadline: Deadline) -> Outcome | None:
        """Raises `PasswordChangeError` where the BMC does nothing before its password is changed."""
        try:
            with self._bmcs.open(self._address_of(node.name), deadline) as bmc:
                inventory = bmc.inventory(deadline)
                identity = self._identity(node, inventory.value)
                unborn = self._unborn(node, inventory.value) if identity.verdict is Verdict.PASS else ""
                if unborn and not self._read_only:
                    inventory = PowerOnOnce(bmc, node, acts, self._look_s).fresh(inventory, deadline)
                entries = bmc.event_log(deadline)
                settings = baseline.look(bmc, inventory.value, self._skus, deadline)
        except ClaimLostError:
            return None
        except PasswordChangeError:
            raise
        except (EdgeError, ParseError) as error:
            return Outcome(node.id, (bmc_unreadable(node, error),))
        if unborn and self._read_only:
            return self._judge(node, identity, as_it_stands(inventory, unborn), entries, settings, left_alone(unborn))
        return self._judge(node, identity, inventory, entries, settings)

    def _unborn(self, node: NodeState, inventory: Inventory) -> str:
        """Why its inventory is to be taken again, after a boot."""
        skus = fitting_skus(inventory, self._skus)
        expected = {"nics", "drives"} if skus else set()
        expected |= {"gpus"} if any(sku.gpu_count for sku in skus) else set()
        expected |= {"hcas"} if any(sku.hca_count for sku in skus) else set()
        return inventory_boot.why(node, inventory, frozenset(expected))

    def _judge(  # noqa: PLR0917 — all that was seen of one machine
        self,
        node: NodeState,
        identity: Finding,
        seen: Observed[Inventory],
        entries: Observed[tuple[LogEntry, ...]],
        settings: baseline.Seen,
        asleep: Finding | None = None,
    ) -> Outcome:
        """`asleep`: why nothing that is missing is believed to be; what else is not known follows from it."""
        inventory, evidence = seen.value, seen.evidence + entries.evidence + settings.evidence
        sku = choose_sku(inventory, self._skus)
        matched = match(inventory, sku) if sku else (_no_sku(inventory, self._skus),)
        parts = (_doubted(finding, inventory) for finding in matched)
        last = node.reports.get(self.step.value)
        before = last.findings if last else ()
        judged = judge_log(entries.value, inventory, tuple(parts), entries.evidence[0].at, before=before)
        judged = (_ports(node, inventory), *judged, *settings.value)
        if asleep is not None:
            judged = (asleep, *(_following(finding, asleep) for finding in judged))
        findings = [_reached(node), identity, *(_placed(finding, node) for finding in judged)]
        facts = _identified(node, inventory, sku) if sku and identity.verdict is Verdict.PASS else ()
        suite = sku.name if sku else ""
        return Outcome(node.id, with_evidence(findings, evidence), evidence, facts, suite=suite)

    def _identity(self, node: NodeState, inventory: Inventory) -> Finding:
        expected = node.serial or node.expected_serial
        other = self._known_serials().get(inventory.serial) or self._answered.setdefault(inventory.serial, node.name)
        if other != node.name:
            cause = f"serial {inventory.serial} already belongs to {other}: two addresses lead to one machine"
            remedy = (
                f"find out which BMC address is right, and take {node.name} or {other} out of the site; if the machine "
                f"moved here: clusterctl merge {node.name} --serial {inventory.serial} --from {other}"
            )
        elif expected and expected != inventory.serial:
            cause = f"serial {inventory.serial} answers at {node.bmc}, but {expected} was expected"
            remedy = (
                f"check the sheet and the BMC's network cable at {node.location}; nothing was done to the machine; if "
                f"it was swapped: clusterctl merge {node.name} --serial {inventory.serial}"
            )
        else:
            return passed("identity", f"serial {inventory.serial}", serial=inventory.serial)
        return Finding(
            check="identity",
            verdict=Verdict.FAIL,
            cause=cause,
            measured=inventory.serial,
            expected=expected or "",
            remedy=remedy,
            serial=inventory.serial,
        )


def _identified(node: NodeState, inventory: Inventory, sku: Sku) -> tuple[NewEvent, ...]:
    """The node's new attributes, and what parts came and went; only for a machine that nothing contradicts."""
    try:
        disk = root_disk(inventory, sku.root_disk).serial or ""
    except ClusterctlError:
        disk = ""
    data = {"inventory": inventory_to_data(inventory), "sku": sku.name, "root_disk": disk}
    return (node_event(node.id, Kind.NODE_IDENTIFIED, **data), *part_changes(node, inventory))


def _reached(node: NodeState) -> Finding:
    return passed("bmc", f"the BMC at {node.bmc} answers", subject="bmc")


def _ports(node: NodeState, inventory: Inventory) -> Finding:
    """Whether it is known from which port it can be installed: from the BMC, else from the site."""
    count = len(inventory.nics or ())
    if count or node.boot_mac:
        told = f"{count} Ethernet ports" if count else f"the BMC tells none, the site says {node.boot_mac}"
        return passed("nics", told, measured=str(count))
    return Finding(
        check="nics",
        verdict=Verdict.INCONCLUSIVE,
        cause="the BMC tells no Ethernet port of the host: from which one it boots is not known",
        remedy="write the MAC address of the port that it boots from into the sheet (column boot_mac)",
        deterministic=False,
    )


def _placed(finding: Finding, node: NodeState) -> Finding:
    """A remedy is carried out at a rack: it begins with the place."""
    if not (finding.remedy and node.location.rack):
        return finding
    return replace(finding, remedy=f"{node.location}, {node.name}: {finding.remedy}")


def _doubted(finding: Finding, inventory: Inventory) -> Finding:
    """What is missing from an inventory that was never taken again may be there all the same."""
    if not inventory.stale or finding.verdict is not Verdict.FAIL or finding.subject != "node":
        return finding
    remedy = "power the machine on, wait until its self-test is over, and discover it again"
    cause = f"{finding.cause}; {inventory.stale}"
    return replace(finding, verdict=Verdict.INCONCLUSIVE, cause=cause, remedy=remedy, deterministic=False)


def _following(finding: Finding, cause: Finding) -> Finding:
    """What could not be told of the machine as a whole, as the consequence of why it could not."""
    unknown = finding.verdict is Verdict.INCONCLUSIVE and finding.subject == "node" and not finding.root
    return replace(finding, root=cause.key) if unknown else finding


def _no_sku(inventory: Inventory, skus: Sequence[Sku]) -> Finding:
    could_be = fitting_skus(inventory, skus)
    if len(could_be) > 1 and not inventory.gpus:
        names = ", ".join(sku.name for sku in could_be)
        cause = f"it could be any of {names}, and the BMC does not tell its GPUs"
        remedy = "make the SKUs' models differ, or take those out of site.yml that the site does not have"
        return Finding(check="sku_model", verdict=Verdict.INCONCLUSIVE, cause=cause, expected=names, remedy=remedy)
    return Finding(
        check="sku_model",
        verdict=Verdict.FAIL,
        cause=f"{inventory.manufacturer} {inventory.model} is none of the site's SKUs",
        measured=f"{inventory.manufacturer} {inventory.model}",
        expected=", ".join(sku.name for sku in skus),
        remedy="add its SKU to site.yml, or take the machine out of the site",
        serial=inventory.serial,
    )
