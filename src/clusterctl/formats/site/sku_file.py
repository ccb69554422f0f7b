"""The text of a SKU file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.fleet.hardware.sku_proposal import SkuField
from clusterctl.fleet.peer_text import visible_line

MARK = "DECIDE"


def sku_text(fields: Sequence[SkuField], origin: str) -> str:
    """Return a SKU file; each open field has a comment that begins with `MARK`. `origin`: what the file is made of."""
    lines = [f"# Made of {_comment(origin)}. Lines with {MARK} wait for a decision."]
    for one in fields:
        note = f"  # {MARK}: {_comment(one.decide)}" if one.decide else ""
        lines.append(f"{one.name}: {_value(one.value)}{note}")
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Return a YAML flow value. JSON strings are YAML strings, so that no text of a BMC becomes syntax."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_value(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def _comment(text: str) -> str:
    return visible_line(text)
