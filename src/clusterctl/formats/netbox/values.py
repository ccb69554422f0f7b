"""Values of one NetBox object: bounded text, ids, choices and related objects.

NetBox writes choices as `{"value": …, "label": …}`, relations as brief objects, and a few of both as plain values
(cable types, everything in a trace), so each reader here accepts both.
Source: https://netboxlabs.com/docs/netbox/integrations/rest-api/
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line

MAX_TEXT = 200
"""Characters of a name, serial or label; NetBox's own fields hold 100 at most."""
MAX_ID = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A related object. `name` is its name, or its slug or model where it has one."""

    id: int
    name: str = ""
    slug: str = ""
    address: str = ""


def mapping(item: Any, what: str) -> Mapping[str, Any]:
    """Return an object. Raise `ParseError` where it is none."""
    if not isinstance(item, dict):
        raise ParseError(f"{what} is no object")
    return item


def whole(item: Mapping[str, Any], name: str = "id") -> int:
    """Return the id in a field. Raise `ParseError` where it is none."""
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_ID:
        raise ParseError(f"{name} is no id")
    return value


def text(item: Mapping[str, Any], name: str) -> str:
    """Return the text in a field as one line, empty for null. Raise `ParseError` for other types and long text."""
    value = item.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ParseError(f"{name} is no text")
    if len(value) > MAX_TEXT:
        raise ParseError(f"{name} has more than {MAX_TEXT} characters")
    return visible_line(value).strip()


def flag(item: Mapping[str, Any], name: str) -> bool:
    """Return the boolean in a field; raise `ParseError` where it is none."""
    value = item.get(name)
    if not isinstance(value, bool):
        raise ParseError(f"{name} is neither true nor false")
    return value


def number(item: Mapping[str, Any], name: str) -> float | None:
    """Return the number in a field, None for null; decimals may be text. Raise `ParseError` for anything else."""
    value = item.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ParseError(f"{name} is no number")
    try:
        found = float(value)
    except (ValueError, OverflowError):
        raise ParseError(f"{name} is no number") from None
    if not abs(found) < 1e9:
        raise ParseError(f"{name} is no number of use")
    return found


def choice(item: Mapping[str, Any], name: str) -> str:
    """Return the plain value of a choice, empty for null."""
    value = item.get(name)
    return text(value, "value") if isinstance(value, dict) else text(item, name)


def related(item: Mapping[str, Any], name: str) -> Related | None:
    """Return the related object of a field, None for null."""
    value = item.get(name)
    if value is None:
        return None
    found = mapping(value, name)
    return Related(
        id=whole(found),
        name=text(found, "name") or text(found, "model"),
        slug=text(found, "slug"),
        address=text(found, "address"),
    )


def objects(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list field, none for null."""
    value = item.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ParseError(f"{name} is no list")
    return [mapping(one, name) for one in value]


def scalars(item: Mapping[str, Any], name: str) -> Mapping[str, str]:
    """Return the fields of an object that are text or numbers, as text: custom fields."""
    value = item.get(name)
    if not isinstance(value, dict):
        return {}
    found: dict[str, str] = {}
    for key, one in value.items():
        if isinstance(one, str) and len(one) <= MAX_TEXT:
            found[visible_line(key, MAX_TEXT)] = visible_line(one)
        elif isinstance(one, int) and not isinstance(one, bool):
            found[visible_line(key, MAX_TEXT)] = str(one)
    return found
