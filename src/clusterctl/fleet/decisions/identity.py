"""Who a node is, by a person's word: another machine in its place, one machine under two names, none any more."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.decisions.decision import Order, living, said
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest, Finding
from clusterctl.fleet.node import Serial, Stage, Step
from clusterctl.fleet.state import NodeState, NodeSummary

ERASE = "retire.erase"
"""The act of erasing a machine's drives, in the journal."""


def merge(
    node: NodeState, new: Serial, reason: str, fleet: Iterable[NodeSummary], moved_from: NodeState | None
) -> Order:
    """The machine with serial `new` is `node` from now on, its history going on. Only what the node's last discover has
    seen is believed, and a serial that is another node's only when `moved_from` names that node: it is retired into
    this one.
    """
    living(node)
    reason = said(reason)
    if new == node.serial:
        raise UsageError(f"{node.name} has serial {new} already", where="--serial", remedy="nothing to merge")
    seen = _seen(node, new)
    owner = next((other for other in fleet if other.serial == new and other.id != node.id), None)
    _check_owner(owner, moved_from, node)
    data = {"old": node.serial or "", "new": new, "reason": reason, "node": node.name, "from": ""}
    if moved_from is not None:
        data["from"] = moved_from.name
    serials = [serial for serial in (node.serial, new) if serial]
    events = [
        *([_farewell(moved_from, reason, into=node.name)] if moved_from is not None else []),
        NewEvent("node", node.id, Kind.NODE_MERGED, data, seen.evidence),
        *(NewEvent("part", serial, Kind.NODE_MERGED, data, seen.evidence) for serial in serials),
    ]
    before = f" instead of {node.serial}" if node.serial else ""
    gone = f"; {moved_from.name} is retired into it" if moved_from is not None else ""
    words = f"is the machine with serial {new}{before}, and goes the whole way again, discover first{gone}"
    return Order(node, tuple(events), words)


def retire(node: NodeState, reason: str) -> Order:
    """Out of the site's life, for good; its drives stay as they are."""
    living(node)
    words = "out of the site's life for good; its drives keep what is on them"
    if any(act.act == ERASE for act in node.open_acts):
        words = (
            "out of the site's life for good; the erase of its drives that was begun is not followed to its end "
            "(retire --wipe would)"
        )
    return Order(node, (_farewell(node, said(reason)),), words)


def leaving(node: NodeState, reason: str) -> NewEvent:
    """Out of use from here on: what is being erased is nobody's to work with. A release would have it installed anew,
    or what comes before that for it.
    """
    order = list(Step)
    step = min(node.stopped_at or node.next_step or Step.INSTALL, Step.INSTALL, key=order.index)
    data = {
        "step": step.value,
        "cause": f"its drives are being erased, to retire it: {said(reason)}",
        "remedy": f"clusterctl retire {node.name} --wipe goes on with it",
        "verdict": "fail",
        "check": "person",
        "subject": "node",
        "serial": node.serial or "",
        "by_person": True,
    }
    return NewEvent("node", node.id, Kind.NODE_QUARANTINED, data)


def retired(node: NodeState, reason: str, evidence: tuple[Digest, ...]) -> NewEvent:
    """That a node is retired and its drives are erased, with what proves it."""
    event = _farewell(node, reason, wiped=True)
    return NewEvent(event.stream, event.subject, event.kind, event.data, evidence)


def _farewell(node: NodeState, reason: str, *, into: str = "", wiped: bool = False) -> NewEvent:
    return NewEvent("node", node.id, Kind.NODE_RETIRED, {"reason": reason, "into": into, "wiped": wiped})


def _seen(node: NodeState, new: Serial) -> Finding:
    """The finding in which the node's last discover has read exactly this serial off the machine, with its evidence."""
    report = node.reports.get(Step.DISCOVER.value)
    identities = [finding for finding in report.findings if finding.check == "identity"] if report else []
    for finding in identities:
        if finding.serial == new and finding.evidence:
            return finding
    found = identities[0].serial if identities else ""
    told = f"its last discover has read serial {found}" if found else "no discover has read a serial at its BMC yet"
    raise UsageError(
        f"{new} was not seen at {node.name}: {told}",
        where="--serial",
        remedy=f"clusterctl discover --limit {node.name} first (a node further on: quarantine it with --step discover, "
        "then release it)",
    )


def _check_owner(owner: NodeSummary | None, moved_from: NodeState | None, node: NodeState) -> None:
    if moved_from is not None and moved_from.id == node.id:
        raise UsageError("a node does not move from itself", where="--from", remedy="name the other node, or leave it")
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
