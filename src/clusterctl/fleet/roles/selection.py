"""Which roles and variables each node gets: the site's for all, then those of each group that it belongs to."""

from __future__ import annotations

import fnmatch
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clusterctl.fleet.roles.specification import Roles


@dataclass(frozen=True, slots=True)
class GroupMember:
    """What of a node decides to which groups it belongs. `sku` is empty until it was discovered."""

    name: str
    rack: str = ""
    sku: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the nodes: those that fit each of `nodes` (names or patterns), `racks` and `skus` that is not empty.

    They get `roles` in addition, not those of `without`, and `variables` in place of others of these names.
    """

    nodes: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    skus: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)

    def has(self, node: GroupMember) -> bool:
        named = not self.nodes or any(fnmatch.fnmatchcase(node.name, pattern) for pattern in self.nodes)
        return named and (not self.racks or node.rack in self.racks) and (not self.skus or node.sku in self.skus)


@dataclass(frozen=True, slots=True)
class Choice:
    """What some node gets. `groups`: the indices of those that it belongs to."""

    roles: tuple[str, ...]
    variables: Mapping[str, Any]
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestedRoles:
    """A site's choice: for all nodes, and for some. Of two groups that differ the later one holds."""

    roles: tuple[str, ...]
    variables: Mapping[str, Any] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()

    def choose(self, node: GroupMember) -> Choice:
        return self.of(index for index, group in enumerate(self.groups) if group.has(node))

    def of(self, indices: Iterable[int]) -> Choice:
        """Return the roles and variables of a node in these groups."""
        mine = tuple(indices)
        roles = dict.fromkeys(self.roles)
        variables = dict(self.variables)
        for group in (self.groups[index] for index in mine):
            roles = {name: None for name in (*roles, *group.roles) if name not in group.without}
            variables |= group.variables
        return Choice(tuple(roles), variables, mine)

    @property
    def own(self) -> frozenset[str]:
        """The variables that are not the same for all nodes."""
        return frozenset(name for group in self.groups for name in group.variables)


def play_variables(wanted: RequestedRoles, nodes: Sequence[GroupMember]) -> dict[str, Any]:
    """Return the variables of `configure.yml`: roles and variables of all, and those of single nodes.

    What differs between nodes is never given for all: Ansible's extra variables would go before it.
    """
    choices = {node.name: wanted.choose(node) for node in nodes}
    common = {name: value for name, value in wanted.variables.items() if name not in wanted.own}
    roles_for = {name: list(one.roles) for name, one in choices.items() if set(one.roles) != set(wanted.roles)}
    own = {
        name: {variable: one.variables[variable] for variable in wanted.own & one.variables.keys()}
        for name, one in choices.items()
    }
    return common | {
        "configure_roles": list(wanted.roles),
        "configure_roles_for": roles_for,
        "configure_variables_for": {name: mine for name, mine in own.items() if mine},
    }


WIDTH = 116


def recommended_section(order: Sequence[str], roles: Roles, given: frozenset[str]) -> str:
    """Return a section in YAML. An empty value in it is an error with its line. `given`: what clusterctl knows."""
    chosen = [name for name in order if name in roles and roles[name].recommended]
    lines = [
        "configure:",
        "  roles:                       # for every node, in any order; `groups` is for some of them",
    ]
    lines += [f"    - {name}" for name in chosen]
    wanted = list(_required(chosen, roles, given))
    lines.append("  variables:" if wanted else "  variables: {}")
    return "\n".join([*lines, *wanted]) + "\n"


def _required(chosen: Sequence[str], roles: Roles, given: frozenset[str]) -> Iterator[str]:
    """Yield the variables without default of these roles and of the roles that they bring: each once, with its role."""
    seen: set[str] = set()
    for name in (part for role in chosen for part in (*roles[role].brings, role) if part in roles):
        for variable, specification in roles[name].variables.items():
            if specification.required and variable not in given and variable not in seen:
                seen.add(variable)
                words = textwrap.wrap(f"{name}: {specification.description}", WIDTH, break_on_hyphens=False)
                yield from (f"    # {line}" for line in words)
                yield f"    {variable}:  # fill in"
