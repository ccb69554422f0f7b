"""Payloads of events and states of nodes as JSON, and back."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from clusterctl.fleet.errors import EnvironmentBrokenError, ParseError, UsageError
from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.finding import Report
from clusterctl.fleet.incidents.incident import IncidentState
from clusterctl.fleet.node import Inventory
from clusterctl.fleet.state import NodeState, NodeSummary, summarise

_KINDS = {kind.value: kind for kind in Kind}
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}


@functools.cache
def payload_types() -> Mapping[Kind, type[Payload]]:
    """Return the payload type of each kind of event. They are imported here: what only reads states starts sooner."""
    from clusterctl.fleet.payloads import decisions, fabric, hardware, incidents, jobs, maintenance, node, rma, runs

    modules = (node, decisions, hardware, runs, incidents, jobs, rma, fabric, maintenance)
    return {payload.kind: payload for module in modules for payload in module.PAYLOADS}


def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type. To build one takes up to tens of milliseconds: each is built when first needed."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def payload_to_json(payload: Payload) -> str:
    """Return a payload as JSON, for the journal. Raise `ParseError` where it could not be read back: a text with half
    of a surrogate pair, a number that is none, or one beyond floating point.
    """
    adapter = _adapter(type(payload))
    try:
        _require_finite(adapter.dump_python(payload, warnings="none"))
        text: bytes = adapter.dump_json(payload, warnings="error")
        adapter.validate_json(text)
    except (ValidationError, PydanticSerializationError, OverflowError, RecursionError, UnicodeError) as error:
        message = f"{payload.kind.value} holds what the journal cannot keep ({type(error).__name__})"
        raise ParseError(message, remedy="report which machine reports this, with the run's log") from None
    return text.decode()


def _require_finite(value: Any) -> None:
    """Raise `OverflowError` where a number below `value` is infinite or none: JSON has no such number."""
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError(f"{value} is no number")
    if isinstance(value, Mapping):
        value = value.values()
    elif not isinstance(value, (list, tuple, set, frozenset)):
        return
    for item in value:
        _require_finite(item)


def payload_to_data(payload: Payload) -> dict[str, Any]:
    """Return a payload as JSON-able data, for output."""
    return dict(_adapter(type(payload)).dump_python(payload, mode="json"))


def payload_from_json(seq: int, kind: str, version: int, text: str | bytes) -> Payload:
    """Return the payload of event `seq`. Raise `UsageError` where a newer program wrote it, and
    `EnvironmentBrokenError` where it does not have the fields of its kind.
    """
    known = payload_types().get(_KINDS[kind]) if kind in _KINDS else None
    if known is None or version > known.version:
        raise UsageError(
            f"the journal holds an event {kind} version {version} that this clusterctl does not know",
            where=f"event {seq}",
            remedy="use the newer clusterctl that wrote it",
        )
    try:
        payload: Payload = _adapter(known).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the payload"
        raise EnvironmentBrokenError(
            f"the payload of {kind} is malformed: {field}: {first['msg']}",
            where=f"event {seq}",
            remedy="restore the journal from its last backup",
        ) from None
    return payload


def report_to_data(report: Report) -> dict[str, Any]:
    """Return a report as JSON-able data."""
    return dict(_adapter(Report).dump_python(report, mode="json"))


def report_from_data(data: Mapping[str, Any]) -> Report:
    """Return the report that `report_to_data` wrote."""
    report: Report = _adapter(Report).validate_python(data, strict=False)
    return report


def inventory_to_data(inventory: Inventory) -> dict[str, Any]:
    """Return an inventory as JSON-able data."""
    return dict(_adapter(Inventory).dump_python(inventory, mode="json"))


def inventory_from_data(data: Mapping[str, Any]) -> Inventory:
    """Return the inventory that `inventory_to_data` wrote."""
    inventory: Inventory = _adapter(Inventory).validate_python(data, strict=False)
    return inventory


def state_to_json(state: NodeState) -> str:
    return _adapter(NodeState).dump_json(state).decode()


def state_from_json(text: str | bytes) -> NodeState:
    state: NodeState = _adapter(NodeState).validate_json(text)
    return state


def summary_to_json(state: NodeState) -> str:
    return _adapter(NodeSummary).dump_json(summarise(state)).decode()


def summary_from_json(text: str | bytes) -> NodeSummary:
    summary: NodeSummary = _adapter(NodeSummary).validate_json(text)
    return summary


def incident_to_json(state: IncidentState) -> str:
    return _adapter(IncidentState).dump_json(state).decode()


def incident_from_json(text: str | bytes) -> IncidentState:
    state: IncidentState = _adapter(IncidentState).validate_json(text)
    return state
