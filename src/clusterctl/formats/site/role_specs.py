"""The specification of a role in its folder: `meta/argument_specs.yml`, and its line in `roles/placement.yml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, RootModel

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.roles.specification import Role, Variable
from clusterctl.formats.site.yaml_document import parse_yaml, validate

_MARKUP = re.compile(r"\b[BCEIMOPRUV]\(((?:[^()\\]|\\.)*)\)")
"""Ansible's markup in descriptions: `C(code)`, `I(emphasis)`, `O(option)`."""


class Place(BaseModel):
    """One line of `roles/placement.yml`, which explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    nodes: bool = True
    recommended: bool = False


class _Places(RootModel[dict[str, Place]]):
    """By role."""


def parse_placement(text: str, file: str) -> Mapping[str, Place]:
    """Return the places by role. Raise `UsageError` with file and line."""
    return validate(parse_yaml(text, file), _Places, "the head of the file").root


def parse_role(name: str, specs: str, file: str, place: Place) -> Role:
    """Return the role `name` by its argument specifications. `ParseError` where they lack `main`."""
    document = parse_yaml(specs, file)
    try:
        options = document.data["argument_specs"]["main"].get("options") or {}
        variables = _variables(options)
    except (AttributeError, KeyError, TypeError):
        raise ParseError("has no argument_specs.main", where=file, remedy="write the role's specification") from None
    return Role(
        name,
        variables,
        after=place.after,
        needs=place.needs,
        brings=place.brings,
        excludes=place.excludes,
        for_nodes=place.nodes,
        recommended=place.recommended,
    )


def _variables(options: Mapping[str, Any]) -> dict[str, Variable]:
    return {name: _variable(option or {}) for name, option in options.items()}


def _variable(option: Mapping[str, Any]) -> Variable:
    text = option.get("description", "")
    return Variable(
        type=option.get("type", "str"),
        required=bool(option.get("required", False)),
        elements=option.get("elements", ""),
        choices=tuple(option.get("choices", ())),
        inner=_variables(option.get("options") or {}),
        description=_plain(" ".join(text) if isinstance(text, list) else str(text)),
        default=option.get("default"),
    )


def _plain(text: str) -> str:
    """Return a description without Ansible's markup, for people who read it in a site file or an error."""
    return _MARKUP.sub(lambda found: re.sub(r"\\(.)", r"\1", found[1]), text)
