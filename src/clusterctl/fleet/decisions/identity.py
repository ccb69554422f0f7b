"""Which machine a node is: another one in its place, one machine under two names, none any more."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.decision import Order, by_operator, checked_reason
from clusterctl.fleet.decisions.permissions import require_living
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream, node_event
from clusterctl.fleet.finding import Digest, Finding
from clusterctl.fleet.hardware.parts import Part
from clusterctl.fleet.node import Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import NodeMerged, NodeRetired
from clusterctl.fleet.state import NodeState, NodeSummary


def _owner_of(serial: Serial, fleet: Iterable[NodeSummary], node: NodeState) -> NodeSummary | None:
    """Return the other node that has the serial."""
    return next((other for other in fleet if other.serial == serial and other.id != node.id), None)


def merge(
    node: NodeState, new: Serial, reason: str, fleet: Iterable[NodeSummary], moved_from: NodeState | None
) -> Order:
    """Return the decision that the machine with serial `new` is `node` from now on; the node's history goes on.

    Only a serial that the node's last discover has read is believed. One that is another node's counts only where
    `moved_from` names that node: it is retired into this one.
    """
    require_living(node)
    reason = checked_reason(reason)
    if new == node.serial:
        raise UsageError(f"{node.name} has serial {new} already", where="--serial", remedy="nothing to merge")
    seen = _seen(node, new)
    _check_owner(_owner_of(new, fleet, node), moved_from, node)
    moved = moved_from.name if moved_from is not None else ""
    events = _merged(node, new, reason, moved, seen.evidence)
    if moved_from is not None:
        events.insert(0, node_event(moved_from.id, NodeRetired(reason=reason, into=node.name)))
    before = f" instead of {node.serial}" if node.serial else ""
    gone = f"; {moved} is retired into it" if moved else ""
    words = f"is the machine with serial {new}{before}, and takes all steps again, discover first{gone}"
    return Order(node, tuple(events), words)


def swappable(node: NodeState, new: Serial, fleet: Iterable[NodeSummary]) -> None:
    """Raise `UsageError` where the machine with serial `new` cannot be the node from now on."""
    require_living(node)
    if new == node.serial:
        raise UsageError(f"{node.name} has serial {new} already", where="--serial", remedy="nothing to swap")
    _check_owner(_owner_of(new, fleet, node), None, node)


def swapped(node: NodeState, new: Serial, reason: str, evidence: tuple[Digest, ...]) -> tuple[NewEvent, ...]:
    """Return the events of a swapped chassis whose serial was read at the node's BMC: `evidence` proves that."""
    return tuple(_merged(node, new, checked_reason(reason), "", evidence))


def _merged(node: NodeState, new: Serial, reason: str, moved_from: str, evidence: tuple[Digest, ...]) -> list[NewEvent]:
    """Return the merge in the node's stream, and in the streams of both serials."""
    payload = NodeMerged(node=node.name, old=node.serial or "", new=new, reason=reason, moved_from=moved_from)
    return [
        node_event(node.id, payload, evidence),
        *(NewEvent(Stream.PART, serial, payload, evidence) for serial in (node.serial, new) if serial),
    ]


def retire(node: NodeState, reason: str) -> Order:
    """Return the retirement of a node for good; its drives stay as they are."""
    require_living(node)
    words = "out of the site for good; its drives keep their data"
    if any(act.act is Act.RETIRE_ERASE for act in node.open_acts):
        words = (
            "out of the site for good; the erase of its drives that was begun is not followed to its end "
            "(retire --wipe does that)"
        )
    return Order(node, (node_event(node.id, NodeRetired(reason=checked_reason(reason))),), words)


def leaving(node: NodeState, reason: str) -> NewEvent:
    """Return the quarantine of a node for the erasure of its drives. A release has its OS installed again."""
    order = list(Step)
    step = min(node.stopped_at or node.next_step or Step.INSTALL, Step.INSTALL, key=order.index)
    cause = f"its drives are being erased, to retire it: {checked_reason(reason)}"
    remedy = f"run clusterctl retire {node.name} --wipe again: it goes on with the erase"
    return node_event(node.id, by_operator(step, cause, remedy, Part("node", node.serial or "")))


def retired(node: NodeState, reason: str, evidence: tuple[Digest, ...]) -> NewEvent:
    """Return the retirement of a node with erased drives, with the evidence of that."""
    return node_event(node.id, NodeRetired(reason=reason, wiped=True), evidence)


def _seen(node: NodeState, new: Serial) -> Finding:
    """Return the finding in which the node's last discover has read exactly this serial, with its evidence."""
    report = node.reports.get(Step.DISCOVER.value)
    identities = [finding for finding in report.findings if finding.check == "identity"] if report else []
    for finding in identities:
        if finding.serial == new and finding.evidence:
            return finding
    found = identities[0].serial if identities else ""
    read = f"its last discover has read serial {found}" if found else "no discover has read a serial at its BMC yet"
    raise UsageError(
        f"{new} was not seen at {node.name}: {read}",
        where="--serial",
        remedy=f"clusterctl discover --limit {node.name} first (a node further on: quarantine it with --step discover, "
        "then release it)",
    )


def _check_owner(owner: NodeSummary | None, moved_from: NodeState | None, node: NodeState) -> None:
    if moved_from is not None and moved_from.id == node.id:
        raise UsageError(
            "a node does not move from itself", where="--from", remedy="name the other node, or leave --from out"
        )
    if owner is not None and (moved_from is None or moved_from.id != owner.id):
        raise UsageError(
            f"serial {owner.serial} is {owner.name}'s ({owner.stage.value}): one machine cannot be two nodes",
            where="--serial",
            remedy=f"if the machine moved: add --from {owner.name}, which is retired into {node.name}",
        )
    if moved_from is not None and owner is None:
        gone = " (it is retired)" if moved_from.stage is Stage.RETIRED else ""
        raise UsageError(
            f"{moved_from.name} does not have that serial{gone}", where="--from", remedy="leave --from out"
        )
