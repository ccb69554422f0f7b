"""Work orders as technicians get them: Markdown to be printed, CSV for a ticket system, and the same as JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.hardware.parts import MACHINE
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.reporting.work_orders import Concerned, WorkOrder
from clusterctl.operations.reports import WorkOrders

COLUMNS = (
    *("order", "rack", "unit", "node", "node_serial", "part", "slot", "part_serial", "found", "do", "cables"),
    *("also_keeps_back", "know_first", "evidence", "write_back", "written_back_with"),
)
_DIGEST_SHOWN = 12
_NAMED = 12


def nothing_to_do(sheet: WorkOrders) -> str:
    """Return one sentence; empty where there are orders."""
    if sheet.orders:
        return ""
    count = _counted(sheet.nodes, "node")
    if sheet.unseen == sheet.nodes:
        return f"No work orders: nothing is known of {count} yet. clusterctl discover reads them."
    unseen = f" ({sheet.unseen} not discovered yet)" if sheet.unseen else ""
    return f"No work orders: of {count}{unseen} none is stopped, and the fabric has no fault that is known."


def work_orders_csv(sheet: WorkOrders) -> str:
    """Return a line of headings, then one line per order. No cell is a formula to a spreadsheet."""
    return csv_text((COLUMNS, *(map(_line, _cells(order)) for order in sheet.orders)))


def work_orders_text(sheet: WorkOrders) -> str:
    """Return Markdown: by rack, a box to tick for each thing to do."""
    lines = [f"# Work orders of {sheet.site}, {sheet.at:%Y-%m-%d %H:%M} UTC", ""]
    if sheet.simulated:
        lines += ["**A rehearsal: the parts are simulated, there is nothing to walk to.**", ""]
    lines += [nothing_to_do(sheet) or _summary(sheet), ""]
    for rack, orders in groupby(sheet.orders, key=lambda order: order.location.rack):
        lines += [f"## {f'Rack {_line(rack)}' if rack else 'Location unknown'}", ""]
        lines += [line for order in orders for line in _order_lines(order)]
    if sheet.held:
        lines += ["## Held by operators, nothing to do", ""]
        lines += [*(f"- {node.name} ({node.location}): {_line(str(node.hold))}" for node in sheet.held), ""]
    return "\n".join(lines)


def _summary(sheet: WorkOrders) -> str:
    nodes = {node.name for order in sheet.orders for node in order.nodes}
    racks = {order.location.rack for order in sheet.orders if order.location.rack}
    count = f"{_counted(len(sheet.orders), 'order')} for {_counted(len(nodes), 'node')}"
    return (
        f"{count} in {_counted(len(racks), 'rack')}. When an order is done, its last line is run with what was done, "
        "and any new serial, in place of the “…”; `clusterctl bootstrap` then takes the nodes on."
    )


def _order_lines(order: WorkOrder) -> Iterator[str]:
    yield _order_heading(order)
    yield ""
    yield from (f"- Found by {finding.check}: {_found(finding)}" for finding in order.findings)
    yield from (f"- Cable: {_line(cable)}" for cable in order.cables)
    if len(order.nodes) > 1:
        yield f"- Keeps back as well: {_others_back(order.nodes[1:])}"
    yield from (f"- First know: {_line(note)}" for note in order.notes)
    yield from (f"- [ ] **{_line(remedy)}**" for remedy in order.remedies)
    if order.evidence:
        yield f"- Evidence: {_digests(order)}"
    yield from (f"- {name} is written back with order {number}" for name, number in order.later)
    if order.write_back:
        yield f"- Write back: `{order.write_back}`"
    yield ""


def _order_heading(order: WorkOrder) -> str:
    """Return number, unit, first node and part of an order."""
    unit = f"U{order.location.unit} " if order.location.unit is not None else ""
    return f"### {order.number}. {unit}{_first_node(order)}{_part(order)}"


def _first_node(order: WorkOrder) -> str:
    if not order.nodes:
        return ""
    first = order.nodes[0]
    return f"{first.name}{f', serial {_line(first.serial)}' if first.serial else ''}: "


def _digests(order: WorkOrder) -> str:
    return ", ".join(digest[:_DIGEST_SHOWN] for digest in order.evidence)


def _part(order: WorkOrder) -> str:
    known = [f"slot {order.slot}"] if order.slot and order.slot != order.part else []
    known += [f"serial {order.serial}"] if order.serial and order.part != MACHINE else []
    return _line(f"{order.part} ({', '.join(known)})" if known else order.part)


def _found(finding: Finding) -> str:
    """Return the cause, and the figures where there are any."""
    return _line(f"{finding.cause} ({finding.figures})" if finding.figures else finding.cause)


def _others_back(nodes: Sequence[Concerned]) -> str:
    shown = ", ".join(f"{node.name} ({node.location})" for node in nodes[:_NAMED])
    return shown + (f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else "")


def _cells(order: WorkOrder) -> tuple[str, ...]:
    """Return the cells in the order of `COLUMNS`; several values are separated by `; `."""
    first = order.nodes[0] if order.nodes else None
    unit = order.location.unit
    return (
        str(order.number),
        order.location.rack,
        str(unit) if unit is not None else "",
        first.name if first else "",
        first.serial if first else "",
        order.part,
        order.slot,
        order.serial,
        "; ".join(f"{finding.check}: {_found(finding)}" for finding in order.findings),
        "; ".join(order.remedies),
        "; ".join(order.cables),
        "; ".join(node.name for node in order.nodes[1:]),
        "; ".join(order.notes),
        "; ".join(order.evidence),
        order.write_back,
        "; ".join(f"{name}: order {number}" for name, number in order.later),
    )


def _line(text: str) -> str:
    """Return the text in one line, in which nothing is hidden: causes may quote a machine's messages."""
    return visible_line(text)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
