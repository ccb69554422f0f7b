"""Worlds of the repository's own: objects in the form that NetBox answers with, by its API documentation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.netbox.emulator import HOST, World

Item = dict[str, Any]
SITE = {"id": 1, "url": f"{HOST}/api/dcim/sites/1/", "display": "Hall 1", "name": "Hall 1", "slug": "hall-1"}
ROLES = {"gpu": 1, "leaf": 2, "spine": 3, "oob": 4, "panel": 5}


def choice(value: str | None) -> Item | None:
    return None if value is None else {"value": value, "label": value.title()}


def device(id_: int, name: str | None, role: str = "gpu", **more: Any) -> Item:
    """Return a device; `rack`, `unit`, `oob`, `primary`, `status`, `serial`, `custom` and `tags` are optional."""
    return {
        "id": id_,
        "name": name,
        "display": f"{name} (AT-{id_})",
        "serial": more.get("serial", f"S{id_:04}"),
        "status": choice(more.get("status", "active")),
        "role": {"id": ROLES[role], "name": role, "slug": role},
        "device_type": {"id": 1, "model": "XE9680", "slug": "xe9680"},
        "site": SITE,
        "rack": {"id": 1, "name": more.get("rack", "A01")} if more.get("rack", "A01") else None,
        "position": more.get("unit"),
        "oob_ip": {"id": 1000 + id_, "address": more["oob"]} if more.get("oob") else None,
        "primary_ip4": {"id": 2000 + id_, "address": more["primary"]} if more.get("primary") else None,
        "primary_ip6": None,
        "tags": [{"id": at, "name": tag, "slug": tag} for at, tag in enumerate(more.get("tags", ()), start=1)],
        "custom_fields": more.get("custom", {}),
        "last_updated": "2026-01-01T00:00:00Z",
    }


def brief(item: Item) -> Item:
    return {"id": item["id"], "display": item["display"], "name": item["name"]}


def interface(id_: int, of: Item, name: str, *, mgmt_only: bool = False, mac: str | None = None) -> Item:
    """Return an interface; NetBox writes MAC addresses in upper case."""
    return {
        "id": id_,
        "device": brief(of),
        "name": name,
        "display": name,
        "mgmt_only": mgmt_only,
        "mac_address": mac.upper() if mac else None,
        "connected_endpoints": None,
        "connected_endpoints_type": None,
        "connected_endpoints_reachable": False,
    }


def address(id_: int, on: Item, text: str, status: str = "active") -> Item:
    """Return an IP address on an interface."""
    return {
        "id": id_,
        "address": text,
        "status": choice(status),
        "assigned_object_type": "dcim.interface",
        "assigned_object_id": on["id"],
        "assigned_object": {"id": on["id"], "name": on["name"], "device": on["device"]},
    }


def end(on: Item, kind: str = "dcim.interface") -> Item:
    """Return one termination of a cable."""
    return {"object_type": kind, "object_id": on["id"], "object": on}


def cable(id_: int, a: Sequence[Item], b: Sequence[Item], status: str = "connected", **more: Any) -> Item:
    """Return a cable between terminations."""
    return {
        "id": id_,
        "type": more.get("type", "dac-passive"),
        "a_terminations": list(a),
        "b_terminations": list(b),
        "status": choice(status),
        "label": more.get("label", f"C{id_}"),
        "length": more.get("length", 2.0),
        "length_unit": choice(more.get("unit", "m")),
    }


def node(world: World, id_: int, name: str, **more: Any) -> Item:
    """Add a node with its BMC (10.0.1.ID, MAC …:01:ID), eth0 (10.0.2.ID) and mlx5_0; return its device."""
    own = {"oob": f"10.0.1.{id_}/24", "primary": f"10.0.2.{id_}/24", "unit": float(id_), **more}
    made = device(id_, name, **own)
    bmc = interface(id_ * 10, made, "bmc", mgmt_only=True, mac=f"02:00:00:00:01:{id_:02x}")
    eth0 = interface(id_ * 10 + 1, made, "eth0", mac=f"02:00:00:00:02:{id_:02x}")
    world.add("dcim/devices", made)
    world.add("dcim/interfaces", bmc, eth0, interface(id_ * 10 + 2, made, "mlx5_0"))
    if own["oob"]:
        world.add("ipam/ip-addresses", address(1000 + id_, bmc, own["oob"]))
    if own["primary"]:
        world.add("ipam/ip-addresses", address(2000 + id_, eth0, own["primary"]))
    return made


def small_world(nodes: int = 3) -> World:
    """Return a site of nodes n1 … on leaf-1 and oob-1: rail 0 on port N, the BMC on swpN."""
    world = World()
    world.add("dcim/sites", SITE)
    leaf, oob = device(90, "leaf-1", "leaf", unit=40.0), device(91, "oob-1", "oob", unit=41.0)
    world.add("dcim/devices", leaf, oob)
    world.pages |= {"dcim/interfaces": {}, "ipam/ip-addresses": {}, "dcim/cables": {}}
    for id_ in range(1, nodes + 1):
        node(world, id_, f"n{id_}")
        ports = world.pages["dcim/interfaces"]
        port, switch = interface(9000 + id_, leaf, f"IB1/{id_}/1"), interface(9100 + id_, oob, f"swp{id_}")
        world.add("dcim/interfaces", port, switch)
        world.add("dcim/cables", cable(id_, [end(ports[id_ * 10 + 2])], [end(port)]))
        world.add("dcim/cables", cable(100 + id_, [end(switch)], [end(ports[id_ * 10])], type="cat6"))
    return world
