"""The recorded exchanges with a real MAAS, where they are at hand; and how an answer is compared with one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.paths import SHARED

FOLDER = SHARED / "samples" / "maas"
SAME = (  # the fields of a machine that must be equal, not only of the same kind
    *("status", "status_name", "status_message", "status_action", "owner", "locked", "netboot", "osystem"),
    *("distro_series", "hwe_kernel", "architecture", "power_type", "description", "commissioning_status"),
    *("testing_status", "ephemeral_deploy", "workload_annotations", "fqdn", "domain"),
)


@dataclass(frozen=True)
class Recording:
    """One exchange. `number` is its place in the sequence."""

    number: int
    name: str
    user: str
    method: str
    path: str
    encoding: str | None
    data: Any
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").split(";")[0]

    @property
    def is_json(self) -> bool:
        return self.content_type == "application/json"

    @property
    def raw(self) -> bytes:
        return json.dumps(self.body).encode() if self.is_json else str(self.body or "").encode()


def load() -> list[Recording]:
    """In order; empty where the recordings are not there."""
    return [_recording(path) for path in sorted(FOLDER.glob("[0-9]*.json"))]


def _recording(path: Path) -> Recording:
    document = json.loads(path.read_text())
    request, response = document["request"], document["response"]
    return Recording(
        number=int(path.name[:3]),
        name=document["name"],
        user=document["as"],
        method=request["method"],
        path=re.sub(r"^https?://[^/]+", "", request["path"]),
        encoding=request["encoding"],
        data=request["data"],
        status=response["status"],
        headers=response["headers"],
        body=response["body"],
    )


def differences(ours: Any, recorded: Any, where: str = "$") -> list[str]:
    """How two JSON values differ in shape: keys, kinds of values, and for machines the fields in `SAME`.

    Null matches anything; lists are compared by their first elements.
    """
    if isinstance(recorded, dict) and isinstance(ours, dict):
        return _object_differences(ours, recorded, where)
    if isinstance(recorded, list) and isinstance(ours, list):
        return differences(ours[0], recorded[0], f"{where}[0]") if ours and recorded else []
    if ours is None or recorded is None or type(ours) is type(recorded):
        return []
    return [f"{where}: {type(ours).__name__} instead of {type(recorded).__name__}"]


def _object_differences(ours: dict[str, Any], recorded: dict[str, Any], where: str) -> list[str]:
    found = [f"{where}.{key} missing" for key in sorted(recorded.keys() - ours.keys())]
    found += [f"{where}.{key} unknown to MAAS" for key in sorted(ours.keys() - recorded.keys())]
    machine = "status_name" in recorded and "system_id" in recorded
    for key in recorded.keys() & ours.keys():
        if machine and key in SAME:
            if ours[key] != recorded[key]:
                found.append(f"{where}.{key}: {ours[key]!r} instead of {recorded[key]!r}")
        else:
            found += differences(ours[key], recorded[key], f"{where}.{key}")
    return found
