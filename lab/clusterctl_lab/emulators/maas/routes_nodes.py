"""`/nodes/{system_id}/…`: drives and interfaces of a machine; `/events/`."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import urlencode

from clusterctl_lab.emulators.maas import render_parts as parts
from clusterctl_lab.emulators.maas.call import PREFIX, Call, Routes, Text
from clusterctl_lab.emulators.maas.model import LEVELS, Event
from clusterctl_lab.emulators.maas.refusal import RefusedError, no_such
from clusterctl_lab.emulators.maas.render import event
from clusterctl_lab.emulators.maas.status import Status

routes = Routes()
EVENTS_LIMIT = 1000
DEFAULT_EVENTS = "100"


@routes.on("/nodes/{system_id}/blockdevices/", "GET")
def block_devices(call: Call) -> Any:
    node = call.service.node(call)
    return [_listed(parts.disk(node, disk)) for disk in node.disks]


@routes.on("/nodes/{system_id}/blockdevices/{device}/", "GET")
def block_device(call: Call) -> Any:
    node = call.service.node(call)
    for disk in node.disks:
        if str(disk.id) == call.arg("device"):
            return _listed(parts.disk(node, disk))
    raise no_such("BlockDevice")


def _listed(disk: parts.Json) -> parts.Json:
    """Return the drive without its firmware version: MAAS leaves it out in this list, but not in a machine's own list
    of drives.
    """
    return {name: value for name, value in disk.items() if name != "firmware_version"}


@routes.on("/nodes/{system_id}/blockdevices/{device}/", "POST", "set_boot_disk", admin=True)
def set_boot_disk(call: Call) -> Any:
    node = call.service.node(call)
    if call.arg("device") not in [str(disk.id) for disk in node.disks]:
        raise no_such("BlockDevice")
    if node.status is not Status.READY:
        raise RefusedError(409, "Cannot set as boot disk because the node is not Ready.")
    node.boot_disk_id = int(call.arg("device"))
    return Text("OK")


@routes.on("/nodes/{system_id}/interfaces/", "GET")
def interfaces(call: Call) -> Any:
    node = call.service.node(call)
    return [parts.interface(node, item, call.service.world.layout) for item in node.interfaces]


@routes.on("/nodes/{system_id}/results/current-installation/", "GET")
def installation(call: Call) -> Any:
    """The script results of the last installation; the log with `include_output`."""
    node = call.service.node(call)
    if node.installation_id is None:
        raise RefusedError(400, "No current installation script set exists for this node.")
    result = {"id": node.installation_id, "name": "/tmp/install.log", "status": 3 if node.install_log else 2}  # noqa: S108
    if "include_output" in call.query:
        result["output"] = base64.b64encode(node.install_log.encode()).decode()
    return {"id": node.installation_id, "system_id": node.system_id, "type": 1, "results": [result]}


@routes.on("/events/", "GET", "query")
def query(call: Call) -> Any:
    """Return events, newest first. With `after`, return the oldest newer events, so that a client can page forward."""
    level, limit = call.query.get("level", "INFO"), call.query.get("limit", DEFAULT_EVENTS)
    if level not in LEVELS:
        raise RefusedError(400, f"Unrecognised log level: {level}")
    if not limit.isdigit() or int(limit) > EVENTS_LIMIT:
        raise RefusedError(400, f"Requested number of events {limit} is greater than limit: {EVENTS_LIMIT}")
    shown = _page(
        call, [item for item in call.service.store.events() if _matches(call, item, LEVELS[level])], int(limit)
    )
    kept = [(name, value) for name, value in call.query.items() if name not in ("after", "before")]
    uri = f"{PREFIX}/events/?{urlencode(kept)}"
    return {
        "count": len(shown),
        "events": [event(item) for item in shown],
        "next_uri": f"{uri}&after={shown[0].id if shown else call.query.get('after', 0)}",
        "prev_uri": f"{uri}&before={shown[-1].id if shown else call.query.get('before', 0)}",
    }


def _page(call: Call, found: list[Event], limit: int) -> list[Event]:
    if "after" in call.query:
        found = [item for item in found if item.id > int(call.query["after"])][-limit:]
    elif "before" in call.query:
        found = [item for item in found if item.id < int(call.query["before"])]
    return found[:limit]


def _matches(call: Call, item: Event, level: int) -> bool:
    ids, names = call.query.getall("id", []), call.query.getall("hostname", [])
    return LEVELS[item.level] >= level and (not ids or item.system_id in ids) and (not names or item.hostname in names)
