"""The recorded exchanges of a real NetBox (../shared/samples/netbox), where they are."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from tests.netbox.emulator import World
from tests.paths import SHARED

FOLDER = SHARED / "samples" / "netbox"
with_recordings = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded exchanges are not here")
SAMPLE_TOKEN = "TOKEN"


@cache
def exchange(name: str) -> dict[str, Any]:
    """Return a recorded exchange by its file's name, such as `030-devices-all`."""
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def results(name: str) -> list[dict[str, Any]]:
    """Return a copy of the objects of a recorded list."""
    found: list[dict[str, Any]] = json.loads(json.dumps(exchange(name)["response"]["body"]["results"]))
    return found


def recorded_world() -> World:
    """Return the site fra1 as it was recorded, before any write: devices, the interfaces of nodes and leaf 1, cables."""
    world = World()
    world.add("dcim/sites", *results("138-sites"))
    world.add("dcim/devices", *results("030-devices-all"))
    world.add("dcim/interfaces", *results("276-interfaces-of-24-nodes-fields"))
    not_asked = {
        "mgmt_only": False,
        "connected_endpoints_type": "dcim.interface",
        "connected_endpoints_reachable": True,
    }
    leaf = [{**not_asked, **item} for item in results("278-interfaces-leaf-connected")]
    world.add("dcim/interfaces", *leaf)
    world.add("dcim/cables", *results("153-cables-fields"))
    world.add("ipam/ip-addresses", *results("122-ip-addresses"))
    return world
