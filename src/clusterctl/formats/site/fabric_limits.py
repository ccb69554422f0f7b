"""A file of fabric limits (YAML) → FabricLimits.

Strict: what is unknown, missing, in another unit or without source is an error that names file, line and field.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.limits import UNITS, FabricLimit, FabricLimits
from clusterctl.fleet.finding import Digest
from clusterctl.formats.site.yaml_document import parse_yaml, validate

_EXPLAINED = "docs/how-to/link-health.md"
_Text = Annotated[str, pydantic.Field(min_length=1)]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class _Limit(_Strict):
    value: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
    unit: _Text
    source: _Text


class _File(_Strict):
    version: Literal[1]
    name: _Text
    hardware: _Text
    limits: dict[str, _Limit]


def parse_fabric_limits(text: str, *, where: str) -> FabricLimits:
    """Return the limits. `where` names the file in errors. Raise UsageError."""
    document = parse_yaml(text, where)
    file = validate(document, _File, _EXPLAINED)
    for name in sorted(UNITS.keys() - file.limits.keys()):
        message, remedy = f"the limit {name} is missing", f"add it in {UNITS[name]}"
        raise UsageError(message, where=document.where("limits"), remedy=remedy)
    for name, limit in file.limits.items():
        if name not in UNITS:
            remedy = f"the limits are {', '.join(UNITS)}"
            raise UsageError("no such limit", where=document.where("limits", name), remedy=remedy)
        if limit.unit != UNITS[name]:
            where = document.where("limits", name, "unit")
            raise UsageError(f"{limit.unit!r} is not its unit", where=where, remedy=f"write it in {UNITS[name]}")
    content = json.dumps(file.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    digest = Digest(hashlib.sha256(content.encode()).hexdigest())
    return FabricLimits(file.name, digest, {n: FabricLimit(m.value, m.unit, m.source) for n, m in file.limits.items()})
