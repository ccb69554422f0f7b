"""The `configure` section of a new site: the recommended roles, and what they require, to be filled in."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from clusterctl.fleet.roles import Roles

WIDTH = 116


def recommended_section(order: Sequence[str], roles: Roles, given: frozenset[str]) -> str:
    """As YAML. What is left empty there is an error that names the line. `given`: what clusterctl knows by itself."""
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
    """What they, and the roles that they bring, have no default for: each once, under what it is for."""
    told: set[str] = set()
    for name in (part for role in chosen for part in (*roles[role].brings, role) if part in roles):
        for variable, said in roles[name].variables.items():
            if said.required and variable not in given and variable not in told:
                told.add(variable)
                words = textwrap.wrap(f"{name}: {said.description}", WIDTH, break_on_hyphens=False)
                yield from (f"    # {line}" for line in words)
                yield f"    {variable}:  # fill in"
