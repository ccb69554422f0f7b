"""What commands print with `--json` and the API answers: the same keys. They are contracts: keys are only added."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from clusterctl.fleet.bmc.accounts import Rotation
from clusterctl.fleet.codec import inventory_to_data, payload_to_data, report_to_data
from clusterctl.fleet.decisions.waiver import Waiver, waiver_of
from clusterctl.fleet.event import Event
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.payloads.hardware import FabricFault, FabricLinksJudged
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.fleet.reporting.work_orders import WorkOrder
from clusterctl.fleet.state import NodeState, NodeSummary, OperatorHold

if TYPE_CHECKING:
    from clusterctl.fleet.incidents.incident import Member
    from clusterctl.fleet.maintenance.progress import Progress
    from clusterctl.fleet.reporting.rma import Rma
    from clusterctl.operations.explanation import NodeExplanation
    from clusterctl.operations.incidents import ListedIncident
    from clusterctl.operations.nights import NightSummary
    from clusterctl.operations.reports import WorkOrders


def node_json(node: NodeSummary | NodeState, now: datetime) -> dict[str, Any]:
    """Return one node of `nodes --json`, which is a stable contract."""
    cause, remedy = cause_and_remedy(node, now)
    return {
        "name": node.name,
        "stage": node.stage.value,
        "verdict": node.verdict.value,
        "since": node.since.isoformat() if node.since else None,
        "cause": cause,
        "remedy": remedy,
        "serial": node.serial,
        "bmc": node.bmc,
        "rack": node.location.rack,
        "unit": node.location.unit,
        "stopped_at": node.stopped_at.value if node.stopped_at else None,
        "stopped_by": node.stopped_by or None,
        "hold": hold_json(node.hold) if node.hold is not None and node.held(now) else None,
        "waivers": [waiver_json(waiver, now) for waiver in node.waivers],
    }


def cause_and_remedy(node: NodeSummary | NodeState, now: datetime) -> tuple[str, str]:
    """Return what blocks the node, and the remedy. An operator's hold comes before the gate's decision."""
    if node.hold is None or not node.held(now):
        return node.cause, node.remedy
    cause = f"{node.hold}; {node.cause}" if node.cause else str(node.hold)
    return cause, f"clusterctl release {node.name} --reason '…' lifts the hold"


def hold_json(hold: OperatorHold) -> dict[str, Any]:
    return {
        "by": hold.by,
        "reason": hold.reason,
        "since": hold.at.isoformat(),
        "until": hold.until.isoformat() if hold.until else None,
    }


def waiver_json(waiver: Waiver, now: datetime) -> dict[str, Any]:
    """Return the waiver. `active` is False once it has ended: at the next decision the finding counts again."""
    return {
        "check": waiver.check,
        "subject": waiver.subject,
        "by": waiver.by,
        "reason": waiver.reason,
        "since": waiver.at.isoformat(),
        "until": waiver.until.isoformat(),
        "active": waiver.active(now),
    }


def finding_json(finding: Finding, waiver: Waiver | None = None) -> dict[str, Any]:
    """Return one finding, as every `--json` gives it; `waiver`: the waiver that covers it, if there is one."""
    return {
        "check": finding.check,
        "verdict": finding.verdict.value,
        "code": finding.code.value,
        "subject": finding.subject,
        "serial": finding.serial,
        "cause": finding.cause,
        "measured": value_json(finding.measured),
        "expected": value_json(finding.expected),
        "remedy": finding.remedy,
        "root": finding.root,
        "evidence": list(finding.evidence),
        "waived": str(waiver) if waiver is not None else None,
    }


def value_json(value: Quantity | Bound | str | None) -> dict[str, Any] | str | None:
    """Return `{"value":…, "unit":…}` of a quantity, `{"low":…, "high":…, "unit":…}` of a bound; a word as it is."""
    if isinstance(value, Quantity):  # not by `asdict`: a fleet has tens of thousands
        return {"value": value.value, "unit": value.unit}
    if isinstance(value, Bound):
        return {"low": value.low, "high": value.high, "unit": value.unit}
    return value


def event_json(event: Event) -> dict[str, Any]:
    """Return one event of `logs --json`."""
    return {
        "seq": event.seq,
        "at": event.at.isoformat(),
        "run": event.run,
        "actor": event.actor,
        "kind": event.kind.value,
        "data": payload_to_data(event.payload),
        "evidence": list(event.evidence),
    }


def password_json(password: Rotation | None) -> dict[str, Any] | None:
    """Return the password's entry in `why --json`; null where clusterctl never changed it."""
    if password is None:
        return None
    return {"number": password.number, "since": password.at.isoformat(), "owed": password.owed}


def fault_json(fault: FabricFault) -> dict[str, Any]:
    return {
        "kind": fault.kind,
        "subjects": list(fault.subjects),
        "cause": fault.cause,
        "action": fault.action,
        "rack": fault.rack,
        "links": fault.links,
        "nodes": list(fault.nodes),
    }


def links_json(judged: FabricLinksJudged | None) -> dict[str, object] | None:
    """Return the health of the links as data; None where it was not read."""
    if judged is None:
        return None
    return {
        "verdict": judged.verdict,
        "links": judged.links,
        "proven": judged.proven,
        "bad": judged.bad,
        "seconds": judged.seconds,
        "causes": list(judged.causes),
        "more": judged.more,
        "reason": judged.reason,
    }


def work_orders_json(sheet: WorkOrders) -> dict[str, Any]:
    """Return `{"site":…, "simulated":…, "at":…, "orders":[…], "held":[…]}`."""
    return {
        "site": sheet.site,
        "simulated": sheet.simulated,
        "at": sheet.at.isoformat(),
        "orders": [order_json(order) for order in sheet.orders],
        "held": [{"name": node.name} | hold_json(node.hold) for node in sheet.held if node.hold is not None],
    }


def order_json(order: WorkOrder) -> dict[str, Any]:
    return {
        "order": order.number,
        "rack": order.location.rack,
        "unit": order.location.unit,
        "nodes": [
            {
                "name": node.name,
                "serial": node.serial,
                "rack": node.location.rack,
                "unit": node.location.unit,
                "stage": node.stage.value,
                "stopped_at": node.stopped_at.value,
            }
            for node in order.nodes
        ],
        "part": order.part,
        "slot": order.slot,
        "serial": order.serial,
        "cables": list(order.cables),
        "findings": [finding_json(finding) for finding in order.findings],
        "remedies": list(order.remedies),
        "notes": list(order.notes),
        "evidence": list(order.evidence),
        "write_back": order.write_back,
        "written_back_with": dict(order.later),
    }


def why_json(explanation: NodeExplanation) -> dict[str, Any]:
    """Return one node of `why --json`."""
    node, now = explanation.node, explanation.at
    return node_json(node, now) | {
        "findings": [finding_json(one, waiver_of(one, node.waivers, now)) for one in explanation.findings],
        "bmc_password": password_json(explanation.password),
        "repeated": list(explanation.repeated),
    }


def node_details_json(state: NodeState, events: Iterable[Event], now: datetime) -> dict[str, Any]:
    """Return one node of `nodes NODE --json`: with its parts, last reports and history."""
    return node_json(state, now) | {
        "inventory": inventory_to_data(state.inventory) if state.inventory else None,
        "reports": {step: report_to_data(report) for step, report in state.reports.items()},
        "history": [event_json(event) for event in events],
    }


def night_json(night: NightSummary) -> dict[str, Any]:
    """Return one night: nodes that it tested, those that are no longer gold, and those that were not given back."""
    return {
        "run": night.run,
        "began": night.began.isoformat(),
        "closes": night.closes.isoformat(),
        "percent": night.percent,
        "ended": night.ended.isoformat() if night.ended else None,
        "reason": night.reason,
        "tested": list(night.tested),
        "failed": list(night.failed),
        "stuck": dict(night.hung),
        "links": links_json(night.links),
    }


def incident_json(one: ListedIncident) -> dict[str, Any]:
    """Return an incident as data."""
    from clusterctl.operations.serial import to_data

    state, facts = one.state, one.facts
    return {
        "name": state.id,
        "state": "open" if state.open else "resolved",
        "severity": facts.severity.value,
        "about": facts.what.value,
        "code": facts.code,
        "place": facts.place,
        "cause": facts.cause,
        "remedy": facts.remedy,
        "opened_at": _iso(state.opened_at),
        "updated_at": _iso(state.updated_at),
        "resolved_at": _iso(state.resolved_at),
        "resolved_by": state.resolved_by or None,
        "still_seen": state.still_seen,
        "change": state.change,
        "revision": state.revision,
        "members": [_member_json(member) for member in facts.members],
        "ticket": {"key": state.ticket.key, "url": state.ticket.url, "closed": state.ticket.closed},
        "messages": {channel: to_data(delivery) for channel, delivery in state.deliveries.items()},
    }


def _member_json(member: Member) -> dict[str, Any]:
    return {
        "name": member.name,
        "node": member.node,
        "serial": member.serial,
        "place": member.place,
        "cause": member.cause,
        "remedy": member.remedy,
        "since": _iso(member.since),
        "active": member.active,
        "evidence": list(member.evidence),
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def rma_json(one: Rma, now: datetime) -> dict[str, Any]:
    """Return a return as data."""
    return {
        "name": one.serial,
        "part": one.part,
        "node": one.node,
        "case": one.case,
        "reason": one.reason,
        "stage": one.stage.value,
        "opened_at": one.opened_at.isoformat(),
        "since": one.since.isoformat(),
        "due": one.due.isoformat() if one.due else None,
        "late": one.late(now),
        "age_days": (now - one.opened_at).days,
        "tracking": one.tracking,
        "replacement": one.new,
    }


def plan_json(progress: Progress) -> dict[str, Any]:
    """Return the plan with all its nodes."""
    nodes = [
        {
            "name": name,
            "wave": label,
            "state": progress.of(name).turn.value,
            "text": progress.of(name).text,
            "at": at.isoformat() if (at := progress.of(name).at) else None,
        }
        for label, wave in zip(progress.labels, progress.waves, strict=True)
        for name in wave
    ]
    return {
        "name": progress.name,
        "state": progress.stage.value,
        "reason": progress.reason,
        "by": progress.actor,
        "begun": progress.ordered.isoformat(),
        "moved": progress.moved.isoformat(),
        "rollback": progress.back,
        "summary": progress.line(),
        "nodes": nodes,
        "left_alone": dict(progress.skipped),
        "plan": progress.plan,
    }
