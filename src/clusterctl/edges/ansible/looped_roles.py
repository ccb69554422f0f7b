"""The roles of a task that includes one role after another, out of a list that the play itself writes down."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"\{\{\s*(\w+)\s*\}\}")
CHOSEN, CHOSEN_FOR = "configure_roles", "configure_roles_for"
"""Variables of configure.yml: the roles of every node, and those of single nodes."""


def chosen_roles(variables: Mapping[str, Any]) -> frozenset[str] | None:
    """All roles that any node is to get; None where the variables choose none."""
    if CHOSEN not in variables:
        return None
    lists = (variables[CHOSEN], *dict(variables.get(CHOSEN_FOR) or {}).values())
    return frozenset(str(role) for roles in lists for role in roles)


def written_lists(play: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """The variables of a play that are lists of words as they stand, with nothing computed."""
    own = play.get("vars")
    return {
        str(name): tuple(value)
        for name, value in (own if isinstance(own, Mapping) else {}).items()
        if isinstance(value, list) and all(isinstance(word, str) and "{{" not in word for word in value)
    }


def looped_roles(
    task: Mapping[str, Any],
    name: str,
    lists: Mapping[str, Sequence[str]],
    chosen: Collection[str] | None,
) -> tuple[str, ...] | None:
    """Which roles the task may include whose role is called `name`, a template; None where that cannot be known.

    It has to be the variable of the task's own loop, and the loop has to draw from one of the play's written lists: all
    of it may come, or as much of it as was `chosen`.
    """
    variable = _NAME.fullmatch(name.strip())
    control = task.get("loop_control")
    if variable is None or not isinstance(control, Mapping) or control.get("loop_var") != variable[1]:
        return None
    first = re.match(r"\{\{\s*(\w+)\s*\|", str(task.get("loop")))
    if first is None or first[1] not in lists or "+" in str(task.get("loop")) or "union" in str(task.get("loop")):
        return None
    return tuple(role for role in lists[first[1]] if chosen is None or role in chosen)
