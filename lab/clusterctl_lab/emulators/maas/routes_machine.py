"""`/machines/{system_id}/`: read, change, delete, power, locks, layout, annotations."""

from __future__ import annotations

from typing import Any

from clusterctl_lab.emulators.maas import enrolment
from clusterctl_lab.emulators.maas.call import Call, Routes
from clusterctl_lab.emulators.maas.refusal import RefusedError, forbidden
from clusterctl_lab.emulators.maas.status import LOCKABLE, Status
from clusterctl_lab.emulators.maas.storage import set_layout

routes = Routes()
PATH = "/machines/{system_id}/"


@routes.on(PATH, "GET")
def read(call: Call) -> Any:
    return call.service.describe(call.service.node(call))


@routes.on(PATH, "PUT", admin=True)
def update(call: Call) -> Any:
    node = call.service.node(call)
    enrolment.update(call.service.store, node, call.fields())
    return call.service.describe(node)


@routes.on(PATH, "DELETE", admin=True)
def delete(call: Call) -> Any:
    node = call.service.node(call)
    if node.locked:
        raise forbidden()
    call.service.lifecycle.background.stop(node.system_id)
    del call.service.store.nodes[node.system_id]
    return None


@routes.on(PATH, "GET", "power_parameters", admin=True)
def power_parameters(call: Call) -> Any:
    return dict(call.service.node(call).power_parameters)


@routes.on(PATH, "GET", "query_power_state")
async def query_power_state(call: Call) -> Any:
    return {"state": await call.service.lifecycle.query(call.service.node(call))}


@routes.on(PATH, "POST", "power_on")
def power_on(call: Call) -> Any:
    node = call.service.node(call)
    if not node.owner:
        raise RefusedError(409, "Can't start node: it hasn't been allocated.")
    call.service.lifecycle.power_on(node)
    return call.service.describe(node)


@routes.on(PATH, "POST", "power_off")
def power_off(call: Call) -> Any:
    node = call.service.node(call)
    call.service.lifecycle.power_off(node)
    return call.service.describe(node)


@routes.on(PATH, "POST", "lock")
def lock(call: Call) -> Any:
    node = call.service.node(call)
    if node.status not in LOCKABLE:
        raise RefusedError(409, "Can't lock, node is not deployed or deploying")
    node.locked = True
    return call.service.describe(node)


@routes.on(PATH, "POST", "unlock")
def unlock(call: Call) -> Any:
    node = call.service.node(call)
    if not node.locked:
        raise RefusedError(409, "Node is not locked")
    node.locked = False
    return call.service.describe(node)


@routes.on(PATH, "POST", "set_storage_layout", admin=True)
def set_storage_layout(call: Call) -> Any:
    node = call.service.node(call)
    if node.status is not Status.READY:
        raise RefusedError(409, "Cannot change the storage layout on a machine that is not Ready.")
    set_layout(
        call.service.store, node, call.field("storage_layout"), call.field("root_device"), call.field("root_size")
    )
    return call.service.describe(node)


@routes.on(PATH, "POST", "set_workload_annotations")
def set_workload_annotations(call: Call) -> Any:
    node = call.service.node(call)
    for name, value in call.form.items():
        if value:
            node.annotations[name] = value
        else:
            node.annotations.pop(name, None)
    return call.service.describe(node)
