"""Pieces that every Redfish resource is made of (DMTF DSP0266, "Resource responses")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Resource = dict[str, Any]
Tree = dict[str, Resource]
"""Path without trailing slash → resource."""


def head(path: str, odata_type: str, name: str) -> Resource:
    """What identifies a resource. `odata_type` is `Processor.v1_12_0.Processor`; `Id` is the path's last segment."""
    schema = odata_type.split(".", 1)[0]
    return {
        "@odata.context": f"/redfish/v1/$metadata#{schema}.{schema}",
        "@odata.id": path,
        "@odata.type": f"#{odata_type}",
        "Id": path.rsplit("/", 1)[-1],
        "Name": name,
    }


def collection(path: str, schema: str, name: str, members: Iterable[str]) -> Resource:
    """A resource collection, e.g. `ProcessorCollection`: its members by path."""
    return {
        "@odata.context": f"/redfish/v1/$metadata#{schema}.{schema}",
        "@odata.id": path,
        "@odata.type": f"#{schema}.{schema}",
        "Name": name,
        **refs("Members", members),
    }


def ref(path: str) -> Resource:
    return {"@odata.id": path}


def refs(key: str, paths: Iterable[str]) -> Resource:
    """A list of references and its count, as `{key: […], key@odata.count: n}`."""
    return counted(key, [ref(path) for path in paths])


def counted(key: str, values: list[Any]) -> Resource:
    return {key: values, f"{key}@odata.count": len(values)}


def status(health: str = "OK", *, rollup: bool | str = False) -> Resource:
    """The Status object of an enabled part; `rollup` with the health of what is below it, where that differs."""
    below = health if rollup is True else rollup
    return {"Health": health, **({"HealthRollup": below} if below else {}), "State": "Enabled"}


def index(resources: Iterable[Resource]) -> Tree:
    """Resources by their own path."""
    return {resource["@odata.id"]: resource for resource in resources}


def bare(resource: Resource) -> Resource:
    """Without `@odata.context`, which is optional and which some services leave out; also in embedded members."""
    members = resource.get("Members")
    inner = {"Members": [bare(member) for member in members]} if isinstance(members, list) else {}
    return {key: value for key, value in (resource | inner).items() if key != "@odata.context"}
