"""Whether a value is what a role's argument specification says, as YAML gives it: stricter than Ansible.

Ansible checks a converted copy and hands the role the value as it was written: a text "false" counts as true there, a
text in place of a list is taken letter by letter, and a version 570.10 without quotes has become the number 570.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from clusterctl.fleet.roles import Variable


def mistake(value: Any, variable: Variable) -> str:
    """What is wrong with the value, as the end of a sentence about it; empty where nothing is, or nobody can know
    before Ansible renders it.
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
