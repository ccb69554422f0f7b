"""What roles are: their variables as their argument specifications define them, and which of them go together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Variable:
    """One public variable of a role (docs.ansible.com, "Role argument validation"). `type` as Ansible names it."""

    type: str = "str"
    required: bool = False
    elements: str = ""
    choices: tuple[object, ...] = ()
    inner: Mapping[str, Variable] = field(default_factory=dict)
    description: str = ""
    default: object = None


@dataclass(frozen=True, slots=True)
class Role:
    """One role: its variables by name, and its place among the others.

    after        they come earlier in the play, where they are chosen too
    needs        they must be chosen too
    brings       it includes them by itself: what they require is required
    excludes     they must not be chosen too
    for_nodes    False: no site chooses it for its nodes
    recommended  a new site's list has it
    """

    name: str
    variables: Mapping[str, Variable] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    for_nodes: bool = True
    recommended: bool = False


Roles = Mapping[str, Role]
"""All that there are, by name."""


def misplaced(order: Iterable[str], roles: Roles) -> tuple[str, ...]:
    """Return the mistakes of an order of roles: missing, unknown and repeated ones, and those before what they need."""
    listed = list(order)
    nodes = {name: role for name, role in roles.items() if role.for_nodes}
    twice = [f"{name} stands there twice" for name in dict.fromkeys(listed) if listed.count(name) > 1]
    unknown = [f"{name} is no role for nodes" for name in listed if name not in nodes]
    missing = [f"{name} is missing" for name in nodes if name not in listed]
    return (*twice, *unknown, *missing, *_too_early(listed, roles))


def _too_early(listed: list[str], roles: Roles) -> Iterator[str]:
    for at, name in enumerate(listed):
        for other in roles[name].after if name in roles else ():
            if other in listed[at:]:
                yield f"{name} comes before {other}"


def mistake(value: Any, variable: Variable) -> str:
    """Return what is wrong with the value, as the end of a sentence about it.

    Empty where nothing is, or where it is unknown before Ansible renders the value.
    """
    if isinstance(value, str) and ("{{" in value or "{%" in value):
        return ""
    found = _of_type(value, variable.type)
    if found:
        return found
    if variable.choices and value not in variable.choices:
        return f"must be one of {', '.join(map(str, variable.choices))}"
    if variable.type == "list":
        return _of_elements(value, variable)
    if variable.type == "dict" and variable.inner:
        return _of_fields(value, variable.inner)
    return ""


def _of_type(value: Any, kind: str) -> str:
    if kind not in _RIGHT:
        return ""
    right, words = _RIGHT[kind]
    if right(value):
        return ""
    if kind in ("str", "path") and isinstance(value, (bool, float)):
        return f"must be {words}: YAML reads this as {value!r}, so write it in quotes"
    return f"must be {words}"


def _of_elements(value: list[Any], variable: Variable) -> str:
    element = Variable(variable.elements or "raw", inner=variable.inner)
    for number, item in enumerate(value, start=1):
        if found := mistake(item, element):
            return f"is wrong in its entry {number}: it {found}"
    return ""


def _of_fields(value: Mapping[str, Any], inner: Mapping[str, Variable]) -> str:
    for name in value:
        if name not in inner:
            return f"has a field {name}, which is none of {', '.join(inner)}"
    for name, variable in inner.items():
        if name not in value:
            if variable.required:
                return f"lacks its field {name}"
        elif found := mistake(value[name], variable):
            return f"is wrong: its field {name} {found}"
    return ""


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_RIGHT: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str) or _whole(value), "a text"),
    "path": (lambda value: isinstance(value, str), "a path"),
    "bool": (lambda value: isinstance(value, bool), "true or false, without quotes"),
    "int": (_whole, "a whole number, without quotes"),
    "float": (lambda value: _whole(value) or isinstance(value, float), "a number, without quotes"),
    "list": (lambda value: isinstance(value, list), "a list"),
    "dict": (lambda value: isinstance(value, dict), "a mapping of names to values"),
}
"""By type of an argument specification; others (`raw`, `json`, `bytes` …) take any value."""
