"""Reads a case's `tree.yml` into Redfish resources by path; README.md explains the form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from clusterctl.formats.redfish.tree import ROOT, Unreadable

Tree = dict[str, Any]
HERE = Path(__file__).parent
CASES = sorted(folder.name for folder in HERE.iterdir() if (folder / "tree.yml").is_file())
_RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
_NUMBER = re.compile(r"\{n([+-]\d+)?(?::(\d+))?\}")
_MARKS = ("$status", "$embeds", "$count", "$unlisted")


_TYPES = {
    "Chassis": "Chassis",
    "Drives": "Drive",
    "EthernetInterfaces": "EthernetInterface",
    "LogServices": "LogService",
    "Managers": "Manager",
    "Memory": "Memory",
    "NetworkAdapters": "NetworkAdapter",
    "NetworkDeviceFunctions": "NetworkDeviceFunction",
    "PCIeDevices": "PCIeDevice",
    "PowerSupplies": "PowerSupply",
    "Processors": "Processor",
    "Storage": "Storage",
    "Systems": "ComputerSystem",
}
"""Collection → type of its members, as BMCs report it."""


def load_truth(name: str) -> dict[str, Any]:
    """Return what is right for the case."""
    found: dict[str, Any] = yaml.safe_load((HERE / name / "truth.yml").read_text())
    return found


def load_tree(name: str) -> Tree:
    """Return the case's resources by path, with links and collections made from the paths.

    A resource with the mark `$status` is `Unreadable`: the server answers with that status.
    """
    listed = _listed(yaml.safe_load((HERE / name / "tree.yml").read_text()))
    tree: Tree = {ROOT: {}}
    for path, body in listed.items():
        tree[path] = {"@odata.id": path, **with_links(body)}
        if path != ROOT:
            tree[path] = {**_own(path), **tree[path]}
    for path in list(listed):
        _link(tree, path, listed)
    for path in [path for path, body in tree.items() if "$count" in body or "$embeds" in body]:
        tree[path].setdefault("Members", [])
    for path in [path for path, body in tree.items() if body.get("$embeds")]:
        tree[path]["Members"] = [tree[member["@odata.id"]] for member in tree[path]["Members"]]
    return {path: _answer(body) for path, body in tree.items()}


def _own(path: str) -> Tree:
    """The properties that every resource has about itself."""
    *_, collection, name = path.split("/")
    kind = _TYPES.get(collection)
    own = {"@odata.id": path, "Id": name, "Name": name}
    return {"@odata.type": f"#{kind}.v1_0_0.{kind}", **own} if kind else own


def _answer(body: Mapping[str, Any]) -> Mapping[str, Any] | Unreadable:
    if "$status" in body:
        return Unreadable(f"HTTP {body['$status']}")
    found = {key: value for key, value in body.items() if key not in _MARKS}
    if "$count" in body:
        found["Members@odata.count"] = body["$count"]
    return found


def _listed(given: Mapping[str, Any]) -> Tree:
    """Return every resource that the file names, ranges written out."""
    return {
        ROOT if path == "." else f"{ROOT}/{path}": body or {}
        for name, found in given.items()
        for path, body in _each(str(name), found)
    }


def _each(name: str, body: Any) -> Iterator[tuple[str, Any]]:
    span = _RANGE.search(name)
    if span is None:
        yield name, body
        return
    for number in range(int(span[1]), int(span[2]) + 1):
        yield _numbered(_RANGE.sub("{n}", name, count=1), number), _numbered(body, number)


def _numbered(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return _NUMBER.sub(lambda found: f"{number + int(found[1] or 0):0{found[2] or 0}d}", value)
    if isinstance(value, Mapping):
        return {key: _numbered(item, number) for key, item in value.items()}
    return [_numbered(item, number) for item in value] if isinstance(value, list) else value


def with_links(value: Any) -> Any:
    """Return the value with `link:Systems/1` as a Redfish link."""
    if isinstance(value, str) and value.startswith("link:"):
        return {"@odata.id": f"{ROOT}/{value.removeprefix('link:')}"}
    if isinstance(value, Mapping):
        return {key: with_links(item) for key, item in value.items()}
    return [with_links(item) for item in value] if isinstance(value, list) else value


def _link(tree: Tree, path: str, listed: Tree) -> None:
    """Link the path from its parent: from a collection as a member, from a resource by its last segment."""
    if path == ROOT or listed.get(path, {}).get("$unlisted"):
        return
    parent, _, name = path.rpartition("/")
    is_collection = parent not in listed or "$embeds" in listed[parent] or "$count" in listed[parent]
    if not is_collection:
        tree[parent].setdefault(name, {"@odata.id": path})
        return
    collection = tree.setdefault(parent, {"@odata.id": parent, "Name": parent.rsplit("/", 1)[-1]})
    members = collection.setdefault("Members", [])
    members.append({"@odata.id": path})
    collection["Members@odata.count"] = len(members)
    if len(members) == 1:
        _link(tree, parent, listed)
