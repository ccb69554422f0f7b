"""`/machines/`: create, list, allocate, accept, bulk release."""

from __future__ import annotations

from typing import Any

from clusterctl_lab.emulators.maas import enrolment
from clusterctl_lab.emulators.maas.allocation import choose
from clusterctl_lab.emulators.maas.call import Call, Routes
from clusterctl_lab.emulators.maas.model import Node
from clusterctl_lab.emulators.maas.refusal import RefusedError, bad_form, forbidden
from clusterctl_lab.emulators.maas.render import enlisted
from clusterctl_lab.emulators.maas.status import RELEASABLE, RELEASED, Status

routes = Routes()
PATH = "/machines/"
FILTERS = ("hostname", "mac_address", "id", "status", "zone", "pool", "domain", "agent_name")
NOT_FILTERS = ("op", "format")


@routes.on(PATH, "POST", anonymous=True)
def create(call: Call) -> Any:
    """Enrol a machine. An administrator's machine is commissioned immediately unless the request asks for something
    else; a user's machine waits as New.
    """
    fields = call.fields()
    node = enrolment.create(call.service.store, fields)
    if call.user is None:
        return enlisted(node)
    if call.admin and fields.get("commission", "true").lower() in ("true", "1"):
        call.service.lifecycle.commission(node, call.name)
    return call.service.describe(node)


@routes.on(PATH, "GET")
def read(call: Call) -> Any:
    for name in call.query:
        if name not in (*FILTERS, *NOT_FILTERS):
            raise bad_form(**{name: "No such constraint."})
    known = {status.name.lower(): status for status in Status}
    for given in call.query.getall("status", []):
        if given not in known:
            raise bad_form(status=enrolment.CHOICE.format(given))
    return [call.service.describe(node) for node in call.service.store.nodes.values() if _matches(call, node)]


def _matches(call: Call, node: Node) -> bool:
    values: dict[str, set[str]] = {
        "hostname": {node.hostname},
        "mac_address": node.macs,
        "id": {node.system_id},
        "status": {node.status.name.lower()},
        "zone": {node.zone},
        "pool": {node.pool},
        "domain": {node.domain},
        "agent_name": {node.agent_name},
    }
    return all(
        values[name] & {value.lower() if name == "mac_address" else value for value in call.query.getall(name)}
        for name in FILTERS
        if name in call.query
    )


@routes.on(PATH, "GET", "list_allocated")
def list_allocated(call: Call) -> Any:
    nodes = call.service.store.nodes.values()
    mine = [node for node in nodes if node.owner == call.name and node.status is Status.ALLOCATED]
    return [call.service.describe(node) for node in mine]


@routes.on(PATH, "GET", "is_registered", anonymous=True)
def is_registered(call: Call) -> Any:
    return call.service.store.by_mac(call.query.get("mac_address", "")) is not None


@routes.on(PATH, "GET", "power_parameters")
def power_parameters(call: Call) -> Any:
    if not call.admin:
        raise forbidden()
    return {node.system_id: dict(node.power_parameters) for node in call.service.store.nodes.values()}


@routes.on(PATH, "POST", "allocate")
def allocate(call: Call) -> Any:
    """Choose a Ready machine by constraints and make it the asking user's."""
    if call.json is not None:
        raise RefusedError(500, "'dict' object has no attribute 'lists'")
    node = choose(call.service.store, call.form)
    if not call.flag("dry_run", default=False):
        node.status, node.owner, node.agent_name = Status.ALLOCATED, call.name, call.field("agent_name")
    return {**call.service.describe(node), "constraints_by_type": {}}


@routes.on(PATH, "POST", "accept")
def accept(call: Call) -> Any:
    accepted = [node for node in _named(call) if node.status is Status.NEW]
    for node in accepted:
        call.service.lifecycle.commission(node, call.name)
    return [call.service.describe(node) for node in accepted]


@routes.on(PATH, "POST", "release")
def release(call: Call) -> Any:
    """Release all or none; the answer lists the machines that needed a release."""
    nodes = _named(call)
    wrong = [node for node in nodes if node.status not in RELEASABLE | RELEASED]
    if wrong:
        listed = ", ".join(f"{node.system_id} ('{node.status.label}')" for node in wrong)
        raise RefusedError(409, f"Machine(s) cannot be released in their current state: {listed}.")
    released = [node for node in nodes if node.status in RELEASABLE]
    for node in released:
        call.service.lifecycle.release(node)
    return [node.system_id for node in released]


def _named(call: Call) -> list[Node]:
    names = call.form.getall("machines", [])
    nodes = call.service.store.nodes
    unknown = [name for name in names if name not in nodes]
    if unknown:
        raise RefusedError(400, f"Unknown machine(s): {', '.join(unknown)}.")
    return [nodes[name] for name in names]
