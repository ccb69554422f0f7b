"""`/machines/{system_id}/?op=…` that move the machine to another state. Wrong states are refused with
MAAS's messages.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from clusterctl_lab.emulators.maas.call import Call, Routes
from clusterctl_lab.emulators.maas.enrolment import CHOICE
from clusterctl_lab.emulators.maas.model import Node
from clusterctl_lab.emulators.maas.refusal import RefusedError, bad_form, forbidden
from clusterctl_lab.emulators.maas.status import (
    BREAKABLE,
    COMMISSIONABLE,
    DEPLOYABLE,
    RELEASABLE,
    RELEASED,
    RESCUABLE,
    RESCUED,
    TESTABLE,
    Status,
)

routes = Routes()
PATH = "/machines/{system_id}/"
SCRIPTS = ("none", "smartctl-validate", "commissioning", "testing")
ABORTABLE = {
    Status.COMMISSIONING: "commissioning",
    Status.TESTING: "testing",
    Status.DEPLOYING: "deployment",
    Status.DISK_ERASING: "disk erasing",
}
NO_ROOT = "Mount the root '/' filesystem to be able to deploy this node."


@routes.on(PATH, "POST", "commission", admin=True)
async def commission(call: Call) -> Any:
    node = call.service.node(call)
    if node.status not in COMMISSIONABLE:
        raise bad_form(__all__="Commission is not available because of the current state of the node.")
    for name in ("commissioning_scripts", "testing_scripts"):
        _check_scripts(call, name)
    if not call.service.faults.rack_reaches:
        raise RefusedError(400, "Ephemeral operating system ubuntu focal is unavailable.")
    call.service.lifecycle.commission(node, call.name, tests=call.field("testing_scripts") != "none")
    await call.service.lifecycle.wait_in_request(node)
    return call.service.describe(node)


@routes.on(PATH, "POST", "test", admin=True)
def test(call: Call) -> Any:
    node = call.service.node(call)
    if node.status not in TESTABLE:
        raise bad_form(__all__="Test is not available because of the current state of the node.")
    _check_scripts(call, "testing_scripts")
    call.service.lifecycle.test(node, call.name)
    return call.service.describe(node)


def _check_scripts(call: Call, name: str) -> None:
    for script in filter(None, call.field(name).split(",")):
        if script not in SCRIPTS:
            raise bad_form(**{name: CHOICE.format(script)})


@routes.on(PATH, "POST", "override_failed_testing")
def override_failed_testing(call: Call) -> Any:
    node = call.service.node(call)
    if node.status is not Status.FAILED_TESTING:
        raise RefusedError(409, "Unable to override node status. Node is not in 'Failed testing' status.")
    node.status, node.owner = Status.READY, ""
    return call.service.describe(node)


@routes.on(PATH, "POST", "deploy")
async def deploy(call: Call) -> Any:
    """Write an OS. A Ready machine is allocated automatically."""
    node = call.service.node(call)
    _check_owner(call, node)
    series, kernel, user_data = call.field("distro_series"), call.field("hwe_kernel"), call.field("user_data")
    if node.status not in DEPLOYABLE:
        raise RefusedError(409, f"Can't deploy a machine that is in the '{node.status.label}' state")
    image, kernel = call.service.images.choose(series, kernel, node.architecture)
    ephemeral = call.flag("ephemeral_deploy", default=False)
    if node.root_disk is None and not ephemeral:
        raise bad_form(storage=NO_ROOT)
    if not call.service.faults.rack_reaches:
        raise RefusedError(400, f"Deployment operating system {image.osystem} {image.series} is unavailable.")
    node.osystem, node.series, node.kernel, node.ephemeral = image.osystem, image.series, kernel, ephemeral
    node.user_data = _decoded(user_data)
    call.service.lifecycle.deploy(node, call.name)
    await call.service.lifecycle.wait_in_request(node)
    return call.service.describe(node)


def _decoded(user_data: str) -> bytes:
    """MAAS does not check it: what is no base64 reaches the machine as it is."""
    try:
        return base64.b64decode(user_data, validate=True)
    except (binascii.Error, ValueError):
        return user_data.encode()


@routes.on(PATH, "POST", "release")
def release(call: Call) -> Any:
    node = call.service.node(call)
    _check_owner(call, node)
    if node.locked:
        raise forbidden()
    if node.status not in RELEASABLE | RELEASED:
        raise RefusedError(409, f"Machine cannot be released in its current state ('{node.status.label}').")
    call.service.faults.need_rack()
    if node.status in RELEASED:
        return call.service.describe(node)
    if call.flag("erase", default=False) and node.status is not Status.ALLOCATED:
        call.service.lifecycle.erase(node)
    else:
        call.service.lifecycle.release(node)
    return call.service.describe(node)


@routes.on(PATH, "POST", "abort")
def abort(call: Call) -> Any:
    node = call.service.node(call)
    _check_owner(call, node)
    if node.status not in ABORTABLE:
        raise RefusedError(
            409, f"Cannot abort in current state: node {node.system_id} is in state {node.status.label}."
        )
    call.service.lifecycle.check_power_idle(node)
    call.service.lifecycle.abort(node, ABORTABLE[node.status])
    return call.service.describe(node)


@routes.on(PATH, "POST", "mark_broken")
def mark_broken(call: Call) -> Any:
    """Needs ownership, even of an admin."""
    node = call.service.node(call)
    if node.owner != call.name:
        raise forbidden()
    if node.status not in BREAKABLE:
        raise RefusedError(409, f"Can't mark a node broken that is in the '{node.status.label}' state.")
    call.service.lifecycle.break_(node)
    return call.service.describe(node)


@routes.on(PATH, "POST", "mark_fixed", admin=True)
def mark_fixed(call: Call) -> Any:
    node = call.service.node(call)
    if node.status is not Status.BROKEN:
        raise RefusedError(409, "Can't mark a non-broken node as 'Ready'.")
    node.status = Status.READY if node.hardware else Status.NEW
    return call.service.describe(node)


@routes.on(PATH, "POST", "rescue_mode", admin=True)
def rescue_mode(call: Call) -> Any:
    node = call.service.node(call)
    _check_transition(node, node.status in RESCUABLE, Status.ENTERING_RESCUE_MODE)
    call.service.lifecycle.rescue(node, call.name)
    return call.service.describe(node)


@routes.on(PATH, "POST", "exit_rescue_mode", admin=True)
def exit_rescue_mode(call: Call) -> Any:
    node = call.service.node(call)
    _check_transition(node, node.status in RESCUED, Status.EXITING_RESCUE_MODE)
    call.service.lifecycle.exit_rescue(node)
    return call.service.describe(node)


def _check_transition(node: Node, allowed: bool, wanted: Status) -> None:
    if not allowed:
        raise RefusedError(409, f"Invalid transition: {node.status.label} -> {wanted.label}.")


def _check_owner(call: Call, node: Node) -> None:
    """Answer 403 to users who neither own the machine nor administer MAAS."""
    if node.owner and node.owner != call.name and not call.admin:
        raise forbidden()
