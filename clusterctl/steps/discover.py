"""discover: what machine answers at the BMC's address, and is it what was ordered?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, ParseError, UnreachableError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding, Verdict
from clusterctl.fleet.match import choose_sku, match, root_disk
from clusterctl.fleet.node import Inventory, NodeId, Verb
from clusterctl.fleet.sku import Sku
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Bmcs, Deadline, LogEntry
from clusterctl.steps.step import Acts, Outcome, node_event, with_evidence

LOG_SHOWN = 3


class Discover:
    """Reads each machine's inventory over Redfish and matches it against the SKUs. Changes nothing on the machine."""

    verb = Verb.DISCOVER
    minimum = 1
    linger_s = 0.0

    def __init__(
        self,
        bmcs: Bmcs,
        address_of: Callable[[str], BmcAddress],
        skus: Sequence[Sku],
        known_serials: Callable[[], Mapping[str, NodeId]],
        workers: int,
    ) -> None:
        self._bmcs = bmcs
        self._address_of = address_of
        self._skus = skus
        self._known_serials = known_serials
        self._workers = workers
        self._answered: dict[str, NodeId] = {}

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        del acts  # nothing is changed
        with ThreadPoolExecutor(min(self._workers, len(nodes)), "discover") as pool:
            futures = [pool.submit(self._one, node, deadline) for node in nodes]
            for future in as_completed(futures):
                yield future.result()

    def _one(self, node: NodeState, deadline: Deadline) -> Outcome:
        try:
            with self._bmcs.open(self._address_of(node.name), deadline) as bmc:
                inventory = bmc.inventory(deadline)
                entries = bmc.event_log(deadline)
        except (EdgeError, ParseError) as error:
            return Outcome(node.id, (_unreadable(node, error),))
        evidence = inventory.evidence + entries.evidence
        return self._judge(node, inventory.value, entries.value, evidence)

    def _judge(
        self, node: NodeState, inventory: Inventory, entries: Sequence[LogEntry], evidence: tuple[Evidence, ...]
    ) -> Outcome:
        identity = self._identity(node, inventory)
        findings: list[Finding] = [_reached(node), identity, _event_log(entries)]
        sku = choose_sku(inventory, self._skus)
        if sku is None:
            findings.append(_no_sku(inventory, self._skus))
            return Outcome(node.id, with_evidence(findings, evidence), evidence)
        findings += match(inventory, sku)
        facts = _identified(node, inventory, sku) if identity.verdict is Verdict.PASS else ()
        return Outcome(node.id, with_evidence(findings, evidence), evidence, facts, suite=sku.name)

    def _identity(self, node: NodeState, inventory: Inventory) -> Finding:
        expected = node.serial or node.expected_serial
        other = self._known_serials().get(inventory.serial) or self._answered.setdefault(inventory.serial, node.id)
        if other is not None and other != node.id:
            cause = f"serial {inventory.serial} already belongs to {other}: two addresses lead to one machine"
            remedy = f"find out which BMC address is right, and take {node.name} or {other} out of the site"
        elif expected and expected != inventory.serial:
            cause = f"serial {inventory.serial} answers at {node.bmc}, but {expected} was expected"
            remedy = f"check the sheet and the BMC's network cable at {node.location}; nothing was done to the machine"
        else:
            return Finding("identity", Verdict.PASS, cause=f"serial {inventory.serial}", serial=inventory.serial)
        return Finding(
            "identity",
            Verdict.FAIL,
            cause=cause,
            measured=inventory.serial,
            expected=expected or "",
            remedy=remedy,
            serial=inventory.serial,
        )


def _identified(node: NodeState, inventory: Inventory, sku: Sku) -> tuple[NewEvent, ...]:
    """The node's new attributes; only for a machine whose identity nothing contradicts."""
    try:
        disk = root_disk(inventory, sku.root_disk).serial or ""
    except ClusterctlError:
        disk = ""
    data = {"inventory": inventory_to_data(inventory), "sku": sku.name, "root_disk": disk}
    return (node_event(node.id, Kind.NODE_IDENTIFIED, **data),)


def _reached(node: NodeState) -> Finding:
    return Finding("bmc", Verdict.PASS, cause=f"the BMC at {node.bmc} answers", subject="bmc")


def _unreadable(node: NodeState, error: ClusterctlError) -> Finding:
    """A BMC that cannot be read: rejected credentials stand firm, silence may pass, nonsense is unmeasured."""
    where = f"{node.bmc} ({node.location})"
    match error:
        case AuthenticationError():
            verdict, firm = Verdict.FAIL, True
            remedy = f"set the BMC's password at {where} to the site's, or give its factory password in the sheet"
        case UnreachableError():
            verdict, firm = Verdict.FAIL, False
            remedy = f"check power and network cable of the BMC at {where}; then reset the BMC"
        case ParseError():
            verdict, firm = Verdict.INCONCLUSIVE, False
            remedy = f"update the firmware of the BMC at {where}, or report what it answered"
        case _:
            verdict, firm = Verdict.FAIL, False
            remedy = f"reset the BMC at {where}; if that does not help, update its firmware"
    return Finding("bmc", verdict, subject="bmc", cause=error.message, remedy=remedy, deterministic=firm)


def _event_log(entries: Sequence[LogEntry]) -> Finding:
    """Old critical entries warn; whether they still matter is the roll-up's to say (`bmc_health`)."""
    critical = [entry for entry in entries if entry.severity.lower() == "critical"]
    if not critical:
        return Finding("event_log", Verdict.PASS, subject="bmc", cause=f"{len(entries)} entries, none critical")
    shown = "; ".join(f"{entry.at} {entry.message}" for entry in critical[:LOG_SHOWN])
    return Finding(
        "event_log",
        Verdict.WARN,
        subject="bmc",
        cause=f"{len(critical)} critical entries, newest: {shown}",
        remedy="read the BMC's event log, mend what it names, then clear it",
    )


def _no_sku(inventory: Inventory, skus: Sequence[Sku]) -> Finding:
    return Finding(
        "sku_model",
        Verdict.FAIL,
        cause=f"{inventory.manufacturer} {inventory.model} is none of the site's SKUs",
        measured=f"{inventory.manufacturer} {inventory.model}",
        expected=", ".join(sku.name for sku in skus),
        remedy="add its SKU to site.yml, or take the machine out of the site",
        serial=inventory.serial,
    )
