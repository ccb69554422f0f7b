"""What is wrong with a choice of roles and variables, before any host is touched. Each problem has a message."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.roles.selection import Choice
from clusterctl.fleet.roles.specification import Role, Roles, Variable, mistake

ALIKE = 0.9
"""From here on (difflib's ratio) a name that no role knows is taken for a misspelt one."""


@dataclass(frozen=True, slots=True)
class RoleProblem:
    """`about`: the role or variable that is meant."""

    about: str
    text: str
    remedy: str


def unknown_role(name: str, roles: Roles) -> RoleProblem | None:
    """Return the problem of a role; None where it can be chosen for nodes."""
    if name in roles and roles[name].for_nodes:
        return None
    if name in roles:
        return RoleProblem(name, f"{name} is no role for nodes", "take it out: roles/placement.yml has its purpose")
    known = [role.name for role in roles.values() if role.for_nodes]
    near = difflib.get_close_matches(name, known, n=3)
    remedy = f"did you mean {' or '.join(near)}?" if near else f"the roles are {', '.join(known)}"
    return RoleProblem(name, f"there is no role {name!r}", remedy)


RESERVED = "configure_"
"""How names begin that are the playbook's own."""


def wrong_variables(variables: Mapping[str, Any], roles: Roles) -> Iterator[RoleProblem]:
    """Yield names that should be a role's and are none, and values that contradict the role's specification."""
    known = {name: variable for role in roles.values() for name, variable in role.variables.items()}
    for name, value in variables.items():
        if name not in known:
            yield from _unknown(name, known, roles)
        elif value is None:
            todo = "fill it in" if known[name].required else "fill it in, or take the line out"
            yield RoleProblem(name, f"{name} is empty", f"{todo}: {known[name].description}")
        elif text := mistake(value, known[name]):
            yield RoleProblem(name, f"{name} {text}", known[name].description)


def unknown_names(names: Mapping[str, Any], roles: Roles) -> Iterator[RoleProblem]:
    """Yield the wrong names of variables with values that are not read: secrets."""
    known = {name: variable for role in roles.values() for name, variable in role.variables.items()}
    for name in names:
        if name not in known:
            yield from _unknown(name, known, roles)


def wrong_choice(choice: Choice, given: frozenset[str], roles: Roles) -> Iterator[RoleProblem]:
    """Yield the roles and variables that the roles of a node lack, and roles that exclude each other.

    `given`: variables that do not come from the site's `variables`: secrets, and clusterctl's own. Unknown roles are
    ignored.
    """
    chosen = {name: roles[name] for name in choice.roles if name in roles}
    for name, role in chosen.items():
        yield from _wrong_partners(name, role, chosen)
    known = choice.variables.keys() | given
    for name, role in chosen.items():
        for variable, spec in _required(name, role, roles).items():
            if variable not in known:
                yield RoleProblem(name, f"role {name} requires {variable}, which is not set", spec.description)


def _wrong_partners(name: str, role: Role, chosen: Roles) -> Iterator[RoleProblem]:
    for other in role.needs:
        if other not in chosen:
            yield RoleProblem(name, f"{name} needs the role {other}", f"choose {other} too, or do without {name}")
    for other in role.excludes:
        if other in chosen and name < other:
            yield RoleProblem(name, f"{name} and {other} exclude each other", "choose one of them")


def _required(name: str, role: Role, roles: Roles) -> dict[str, Variable]:
    """Return the required variables of a role and of the roles that it brings."""
    parts = (name, *(other for other in role.brings if other in roles))
    return {variable: spec for part in parts for variable, spec in roles[part].variables.items() if spec.required}


def _unknown(name: str, known: Mapping[str, Variable], roles: Roles) -> Iterator[RoleProblem]:
    """Yield a name that looks like a role's variable and is none. Others may be the site's own, for its values."""
    if name.startswith(RESERVED):
        field = "configure.reboots" if name == "configure_reboot" else "configure"
        yield RoleProblem(name, f"{name} is no variable of a role but clusterctl's own", f"set it in {field} instead")
        return
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
    of_a_role = any(name.startswith((f"{role}_", f"__{role}_")) for role in roles)
    if not of_a_role and not difflib.get_close_matches(name, known, n=1, cutoff=ALIKE):
        return
    remedy = f"did you mean {' or '.join(near)}?" if near else "roles/*/README.md name the variables of each role"
    yield RoleProblem(name, f"no role knows a variable {name}", remedy)
