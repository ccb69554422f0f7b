"""Reports, inventories and states as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from clusterctl.fleet.finding import Report
from clusterctl.fleet.node import Inventory
from clusterctl.fleet.state import NodeState, NodeSummary, summarise

# Adapters take tens of milliseconds to build: each is built when it is first needed.


@cache
def _report_adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)


@cache
def _inventory_adapter() -> TypeAdapter[Inventory]:
    return TypeAdapter(Inventory)


@cache
def _state_adapter() -> TypeAdapter[NodeState]:
    return TypeAdapter(NodeState)


@cache
def _summary_adapter() -> TypeAdapter[NodeSummary]:
    return TypeAdapter(NodeSummary)


def report_to_data(report: Report) -> dict[str, Any]:
    """A report as JSON-able data, for an event."""
    return dict(_report_adapter().dump_python(report, mode="json"))


def report_from_data(data: Mapping[str, Any]) -> Report:
    return _report_adapter().validate_python(data, strict=False)


def inventory_to_data(inventory: Inventory) -> dict[str, Any]:
    """An inventory as JSON-able data, for an event."""
    return dict(_inventory_adapter().dump_python(inventory, mode="json"))


def inventory_from_data(data: Mapping[str, Any]) -> Inventory:
    """What an older version wrote and this one does not know (`psus_ok`) is left out; what it did not is unmeasured."""
    return _inventory_adapter().validate_python(data, strict=False)


def state_to_json(state: NodeState) -> str:
    return _state_adapter().dump_json(state).decode()


def state_from_json(text: str | bytes) -> NodeState:
    return _state_adapter().validate_json(text)


def summary_to_json(state: NodeState) -> str:
    return _summary_adapter().dump_json(summarise(state)).decode()


def summary_from_json(text: str | bytes) -> NodeSummary:
    return _summary_adapter().validate_json(text)
