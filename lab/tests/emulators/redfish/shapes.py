"""What the tests of rendered and recorded trees share: which properties a tree has, and where its links lead."""

from __future__ import annotations

import json
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from tests.paths import SHARED

RECORDINGS = SHARED / "samples/redfish"
Shape = dict[str, dict[str, set[str]]]
"""Schema → property path → JSON types."""


def properties(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """All property paths of a resource with the JSON type of each; list elements share the list's path."""
    if isinstance(value, dict):
        for key, inner in value.items():
            below = f"{path}.{key}" if path else key
            yield below, kind(inner)
            yield from properties(inner, below)
    elif isinstance(value, list):
        for inner in value:
            yield from properties(inner, path)


def kind(value: Any) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def schema_of(resource: Mapping[str, Any]) -> str:
    return str(resource.get("@odata.type", "#/redfish")).lstrip("#").split(".", 1)[0]


def shape_of(resources: Iterable[Mapping[str, Any]]) -> Shape:
    shape: Shape = defaultdict(lambda: defaultdict(set))
    for resource in resources:
        for path, type_ in properties(resource):
            shape[schema_of(resource)][path].add(type_)
    return shape


def recorded(vendor: str) -> Shape:
    """Of a recorded tree; skips where the recordings are not here."""
    archive = RECORDINGS / f"{vendor}.tar.xz"
    if not archive.exists():
        pytest.skip("the recorded trees are not here")
    with tarfile.open(archive) as tar:
        members = [member for member in tar if member.name.endswith("index.json") and "chema" not in member.name]
        streams = (tar.extractfile(member) for member in members)
        return shape_of([json.load(stream) for stream in streams if stream is not None])


def links(value: Any) -> Iterator[str]:
    """Where all links in it lead, as they stand."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "@odata.id":
                yield inner
            else:
                yield from links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from links(inner)


def counts(value: Any) -> Iterator[bool]:
    """For each `X@odata.count`, whether it is the length of its list where that is there."""
    if isinstance(value, list):
        for inner in value:
            yield from counts(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key.endswith("@odata.count"):
                yield inner == len(value.get(key.removesuffix("@odata.count"), range(inner)))
            yield from counts(inner)
