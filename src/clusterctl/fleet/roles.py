"""What roles are: their variables as their argument specifications say them, and which of them go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Variable:
    """One public variable of a role (docs.ansible.com, "Role argument validation"). `type` as Ansible names it."""

    type: str = "str"
    required: bool = False
    elements: str = ""
    choices: tuple[object, ...] = ()
    inner: Mapping[str, Variable] = field(default_factory=dict)
    description: str = ""


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
    """What is wrong with an order of roles, in words: which are missing, unknown, twice, or before what they need."""
    listed = list(order)
    wrong = [f"{name} stands there twice" for name in dict.fromkeys(listed) if listed.count(name) > 1]
    wrong += [f"{name} is no role for nodes" for name in listed if name not in roles or not roles[name].for_nodes]
    wrong += [f"{name} is missing" for name, role in roles.items() if role.for_nodes and name not in listed]
    for at, name in enumerate(listed):
        earlier = roles[name].after if name in roles else ()
        wrong += [f"{name} comes before {other}" for other in earlier if other in listed[at:]]
    return tuple(wrong)
