"""What an export reads of NetBox before it writes, and the bodies that it writes.

Reads give choices and relations as objects, writes want plain values, ids and `{"slug": …}`. A write that NetBox does
not know is answered with success, so each answer is compared with what was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.netbox.values import mapping, text, whole

ITEM_FIELDS = "id,device,name,serial"
ENTRY_FIELDS = "id,assigned_object_type,assigned_object_id,comments"
DEVICE = "dcim.device"
MAX_NAME, MAX_PART, MAX_SERIAL = 64, 50, 50
"""Characters that NetBox's inventory items hold (dcim.InventoryItem)."""
_MARKER = re.compile(r"\[clusterctl [a-z0-9-]{1,63} #[0-9]{1,19}\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One inventory item of a device."""

    id: int
    device: int
    name: str
    serial: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NetboxEntry:
    """A journal entry of a device: only the marks by which clusterctl knows its own entries."""

    id: int
    device: int
    markers: frozenset[str]


def read_item(item: Mapping[str, Any]) -> Item:
    """Return an item of `dcim/inventory-items/`."""
    device = whole(mapping(item.get("device"), "device"))
    return Item(id=whole(item), device=device, name=text(item, "name"), serial=text(item, "serial"))


def read_entry(item: Mapping[str, Any]) -> NetboxEntry:
    """Return an entry of `extras/journal-entries/`; device 0 where it is that of another object."""
    comments = item.get("comments")
    found = frozenset(_MARKER.findall(comments)) if isinstance(comments, str) else frozenset()
    of_device = text(item, "assigned_object_type") == DEVICE
    return NetboxEntry(id=whole(item), device=whole(item, "assigned_object_id") if of_device else 0, markers=found)


def marker(site: str, seq: int) -> str:
    """Return the mark of the entry about one event of the site's journal."""
    return f"[clusterctl {site} #{seq}]"


def entry_body(device: int, cause: str, remedy: str, mark: str) -> Mapping[str, Any]:
    """Return the journal entry of a quarantine. NetBox shows comments as Markdown: what peers wrote is code in it."""
    parts = [f"Quarantined by clusterctl: {_code(cause)}", f"Remedy: {_code(remedy)}" if remedy else "", mark]
    return {
        "assigned_object_type": DEVICE,
        "assigned_object_id": device,
        "kind": "warning",
        "comments": "\n\n".join(filter(None, parts)),
    }


def _code(words: str) -> str:
    return "`" + visible_line(words, 500).replace("`", "'") + "`"


def item_body(device: int, name: str, model: str, serial: str) -> Mapping[str, Any]:
    """Return a new inventory item."""
    return {"device": device, "name": name, "part_id": model[:MAX_PART], "serial": serial, "discovered": True}


def device_body(status: str | None, custom: Mapping[str, str], tags: Iterable[str] | None) -> Mapping[str, Any]:
    """Return the change of a device; `tags` replace all of its tags, None leaves them."""
    body: dict[str, Any] = {}
    if status is not None:
        body["status"] = status
    if custom:
        body["custom_fields"] = dict(custom)
    if tags is not None:
        body["tags"] = [{"slug": slug} for slug in sorted(tags)]
    return body
