"""What is not about one machine: version, users, pools, tags, zones."""

from __future__ import annotations

import re
from typing import Any

from clusterctl_lab.emulators.maas import render_parts as parts
from clusterctl_lab.emulators.maas.call import Call, Routes
from clusterctl_lab.emulators.maas.model import Pool, Tag
from clusterctl_lab.emulators.maas.refusal import RefusedError, bad_form, no_such
from clusterctl_lab.emulators.maas.render_parts import API
from clusterctl_lab.maas_quirk import MaasQuirk

routes = Routes()
CAPABILITIES = (
    "networks-management",
    "static-ipaddresses",
    "ipv6-deployment-ubuntu",
    "devices-management",
    "storage-deployment-ubuntu",
    "network-deployment-ubuntu",
    "bridging-interface-ubuntu",
    "bridging-automatic-ubuntu",
    "authenticate-api",
)
_NAME = re.compile(r"[\w.-]+")


@routes.on("/version/", "GET", anonymous=True)
def version(call: Call) -> Any:
    return {"capabilities": list(CAPABILITIES), "version": call.service.faults.version, "subversion": ""}


@routes.on("/users/", "GET", "whoami")
def whoami(call: Call) -> Any:
    return {
        "is_superuser": call.admin,
        "username": call.name,
        "email": f"{call.name}@lab.invalid",
        "is_local": not call.service.lifecycle.anywhere(MaasQuirk.NO_POOL_RIGHTS),
        "resource_uri": f"{API}/users/{call.name}/",
    }


@routes.on("/resourcepools/", "GET")
def pools(call: Call) -> Any:
    return [parts.pool(item) for item in call.service.store.pools.values()]


@routes.on("/resourcepools/", "POST", admin=True)
def create_pool(call: Call) -> Any:
    store = call.service.store
    name = _new_name(call, "Resource pool", store.pools)
    store.pools[name] = Pool(store.next_id("pool"), name, call.field("description"))
    return parts.pool(store.pools[name])


@routes.on("/resourcepool/{pool}/", "GET")
def read_pool(call: Call) -> Any:
    return parts.pool(_pool(call))


@routes.on("/resourcepool/{pool}/", "DELETE", admin=True)
def delete_pool(call: Call) -> Any:
    item = _pool(call)
    if any(node.pool == item.name for node in call.service.store.nodes.values()):
        raise RefusedError(400, "Pool has machines in it, it cannot be deleted.")
    del call.service.store.pools[item.name]
    return None


def _pool(call: Call) -> Pool:
    for item in call.service.store.pools.values():
        if str(item.id) == call.arg("pool"):
            return item
    raise no_such("ResourcePool")


@routes.on("/zones/", "GET")
def zones(call: Call) -> Any:
    return [parts.zone(name, number) for name, number in call.service.store.zones.items()]


@routes.on("/tags/", "GET")
def tags(call: Call) -> Any:
    return [_shown(tag) for tag in call.service.store.tags.values()]


@routes.on("/tags/", "POST", admin=True)
def create_tag(call: Call) -> Any:
    """Store a tag. A definition is stored, not evaluated: the lab keeps no lshw documents."""
    known = call.service.store.tags
    name = _new_name(call, "Tag", known)
    known[name] = Tag(name, call.field("comment"), call.field("kernel_opts"), call.field("definition"))
    return _shown(known[name])


@routes.on("/tags/{tag}/", "GET")
def read_tag(call: Call) -> Any:
    return _shown(_tag(call))


@routes.on("/tags/{tag}/", "GET", "machines")
def tagged_machines(call: Call) -> Any:
    name = _tag(call).name
    return [call.service.describe(node) for node in call.service.store.nodes.values() if name in node.tags]


@routes.on("/tags/{tag}/", "POST", "update_nodes", admin=True)
def update_nodes(call: Call) -> Any:
    """Update a tag's nodes. Unknown machines are ignored without an error, as in MAAS."""
    name, nodes = _tag(call).name, call.service.store.nodes
    counts = {"added": 0, "removed": 0}
    for system_id in call.form.getall("add", []):
        deaf = name in call.service.faults.deaf_tags
        if system_id in nodes and name not in nodes[system_id].tags and not deaf:
            nodes[system_id].tags.append(name)
            counts["added"] += 1
    for system_id in call.form.getall("remove", []):
        if system_id in nodes and name in nodes[system_id].tags:
            nodes[system_id].tags.remove(name)
            counts["removed"] += 1
    return counts


def _tag(call: Call) -> Tag:
    tag = call.service.store.tags.get(call.arg("tag"))
    if tag is None:
        raise no_such("Tag")
    return tag


def _shown(tag: Tag) -> dict[str, str]:
    return {
        "name": tag.name,
        "definition": tag.definition,
        "comment": tag.comment,
        "kernel_opts": tag.kernel_opts,
        "resource_uri": f"{API}/tags/{tag.name}/",
    }


def _new_name(call: Call, kind: str, known: dict[str, Any]) -> str:
    name = call.field("name")
    if not name:
        raise bad_form(name="This field is required.")
    if not _NAME.fullmatch(name):
        raise bad_form(name="Enter a valid value.")
    if name in known:
        raise bad_form(name=f"{kind} with this Name already exists.")
    return name
