"""Decides whether a host can run a playbook itself: reads the playbook and its roles, and lists the obstacles.

Such a host knows no other host, has no file of the controller but the roles, and its play ends at its reboot. An
obstacle is all that would have another effect there than over SSH, or that cannot be known beforehand.
Keywords: https://docs.ansible.com/ansible/latest/reference_appendices/playbooks_keywords.html
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_NAME = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_LOOP = re.compile(r"\{\{\s*(\w+)\s*\|(?!.*(?:\+|union))", re.DOTALL)
"""A loop that filters one list, and adds no other list to it."""
CHOSEN, CHOSEN_FOR = "configure_roles", "configure_roles_for"
"""Variables of configure.yml: the roles of every node, and those of single nodes."""


def chosen_roles(variables: Mapping[str, Any]) -> frozenset[str] | None:
    """Return all roles of all nodes, or None if the variables choose none."""
    if CHOSEN not in variables:
        return None
    lists = (variables[CHOSEN], *dict(variables.get(CHOSEN_FOR) or {}).values())
    return frozenset(str(role) for roles in lists for role in roles)


def literal_lists(play: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    """Return the variables of a play that are lists of literal words."""
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
    """Return the roles that a task with the templated role `name` may include; None if they cannot be known.

    `name` must be the variable of the task's loop, and the loop must select from one of the play's literal lists.
    """
    variable = _NAME.fullmatch(name.strip())
    control = task.get("loop_control")
    loop_variable = control.get("loop_var") if isinstance(control, Mapping) else None
    loop = _LOOP.match(str(task.get("loop")))
    if variable is None or loop is None or variable[1] != loop_variable or loop[1] not in lists:
        return None
    return tuple(role for role in lists[loop[1]] if chosen is None or role in chosen)


FORBIDDEN_KEYWORDS = {
    **dict.fromkeys(("delegate_to", "delegate_facts", "local_action", "run_once"), "acts on another host"),
    **dict.fromkeys(
        ("any_errors_fatal", "max_fail_percentage", "serial", "throttle", "order"), "acts on several hosts together"
    ),
    **dict.fromkeys(("connection", "port", "remote_user"), "sets how hosts are reached"),
    **dict.fromkeys(("vars_files", "vars_prompt", "import_playbook", "collections"), "needs more than roles"),
    **dict.fromkeys(("async",), "may outlast the play"),
}
FORBIDDEN_MODULES = {
    **dict.fromkeys(("reboot", "wait_for_connection"), "outlives the host's connection"),
    **dict.fromkeys(("add_host", "group_by"), "changes the inventory"),
    **dict.fromkeys(("fetch", "pause", "raw"), "belongs to the controller"),
}
FORBIDDEN_META = frozenset({"clear_host_errors", "end_play", "refresh_inventory", "reset_connection"})
CALLS = re.compile(r"""\b(?:lookup|query|q)\(\s*(?P<name>[^),\s]+)(?:\s*,\s*(['"])(?P<first>.*?)\2)?""")
LOOKUPS = frozenset({"dict", "indexed_items", "items", "sequence", "subelements", "template", "varnames", "vars"})
"""Lookups that need only variables and the role's own templates."""
FILE_LOOKUPS = frozenset({"file", "first_found", "unvault"})
NO_FILE = ("password", "/dev/null")
"""A random word that no file keeps."""
ROLES_OWN = re.compile(r"\{\{\s*(?:item|__\w+)\b[^}]*\}\}")
"""The value of a loop or of an internal variable: the role itself defines it."""
OTHER_HOSTS = re.compile(
    r"\b(?:hostvars|groups|group_names|ansible_play_\w+|play_hosts|ansible_limit|inventory_dir|inventory_file|playbook_dir"
    r"|ansible_ssh_\w+|ansible_user|ansible_connection)\b"
)
FILE_MODULES = frozenset({"assemble", "copy", "include_vars", "script", "template", "unarchive"})
INCLUDES = frozenset({"import_tasks", "include_tasks"})
ROLE_INCLUDES = frozenset({"import_role", "include_role"})
BUILTIN = "ansible.builtin."
LISTS = frozenset({"always", "block", "handlers", "post_tasks", "pre_tasks", "rescue", "tasks"})
EXPRESSIONS = frozenset({"changed_when", "failed_when", "that", "until", "when"})
BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
PLAIN = frozenset({"name", "tags", "when", "loop", "loop_control", "include_role", f"{BUILTIN}include_role"})
"""The allowed keys of a task that loops over a list of roles."""
FOLDERS = ("defaults", "vars", "tasks", "handlers", "meta")


@dataclass(frozen=True, slots=True)
class Portable:
    """`roles` and `files` (the playbook and files in its folder) are what a host needs; `obstacles` forbid it."""

    roles: tuple[str, ...]
    files: tuple[Path, ...]
    obstacles: tuple[str, ...]


@dataclass(slots=True)
class _Found:
    where: str = ""
    in_role: bool = False
    roles: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    chosen: Collection[str] | None = None

    def forbid(self, what: str) -> None:
        self.obstacles.append(f"{self.where}: {what}")


def examine(playbook: Path, roles_dir: Path, chosen: Collection[str] | None = None) -> Portable:
    """Examine all that the playbook may use, also what a `when` would skip.

    Of a list of roles in a loop, only those in `chosen` count; None: all of them.
    """
    found = _Found(chosen=chosen)
    for name in ("group_vars", "host_vars", "library", "action_plugins", "filter_plugins", "lookup_plugins"):
        if (playbook.parent / name).exists():
            found.obstacles.append(f"{name} is in the playbook's folder")
    files = tuple(_files(playbook, found))
    found.in_role = True
    done: list[str] = []
    while found.roles:
        role = found.roles.pop(0)
        if role not in done:
            done.append(role)
            _role(roles_dir / role, role, found)
    return Portable(tuple(done), files, tuple(dict.fromkeys(found.obstacles)))


def _files(playbook: Path, found: _Found) -> Iterator[Path]:
    """Yield the playbook, and the files that it includes from its folder."""
    waiting, seen = [playbook], set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        yield file
        found.where = file.name
        found.includes.clear()
        _yaml(file, found)
        for name in found.includes:
            included = (file.parent / name).resolve()
            if included.is_relative_to(playbook.parent.resolve()):
                waiting.append(included)
            else:
                found.forbid(f"includes {name}, which is in another folder")


def _role(folder: Path, role: str, found: _Found) -> None:
    for file in sorted(path for name in FOLDERS for path in folder.glob(f"{name}/**/*") if path.is_file()):
        found.where = f"{role}/{file.relative_to(folder)}"
        if file.suffix in (".yml", ".yaml"):
            _yaml(file, found)
    for file in sorted(folder.glob("templates/**/*")):
        if file.is_file():
            found.where = f"{role}/{file.relative_to(folder)}"
            _texts(file.read_text(errors="replace"), found, bare=False)


def _yaml(file: Path, found: _Found) -> None:
    try:
        content = yaml.safe_load(file.read_text())
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        found.forbid(f"cannot be read beforehand ({type(error).__name__})")
        return
    if file.parent.name == "meta":
        if file.stem == "main" and isinstance(content, Mapping):
            _roles(content.get("dependencies") or (), found)
        return
    if file.parent.name in ("defaults", "vars"):
        _texts(content, found, bare=False)
    else:
        _items(content, found)


def _items(items: Any, found: _Found) -> None:
    """Examine plays, tasks or blocks."""
    for item in items if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            _item(item, found)


def _item(item: Mapping[str, Any], found: _Found) -> None:
    if "hosts" in item:
        if "become" not in item:
            found.forbid("a play without become: true would have another user")
        found.lists = literal_lists(item)
    if _through_a_list(item, found):
        return
    for key, value in item.items():
        if key in LISTS:
            _items(value, found)
        else:
            _pair(str(key), value, found)
            _texts(value, found, bare=key in EXPRESSIONS)


def _through_a_list(task: Mapping[str, Any], found: _Found) -> bool:
    """Take the roles of a task that loops over a known list; return whether it is such a task."""
    value = next((task[key] for key in task if str(key).removeprefix(BUILTIN) == "include_role"), None)
    name = str(value.get("name")) if isinstance(value, Mapping) else ""
    roles = looped_roles(task, name, found.lists, found.chosen) if "{{" in name else None
    if roles is None or set(task) - PLAIN:
        return False
    found.roles += roles
    _texts({key: task[key] for key in task if key in EXPRESSIONS or key == "loop"}, found, bare=False)
    return True


def _texts(value: Any, found: _Found, *, bare: bool) -> None:
    """Examine every expression in a value: text between braces, or the whole text with `bare`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _texts(inner, found, bare=key in EXPRESSIONS)
    elif isinstance(value, list):
        for inner in value:
            _texts(inner, found, bare=bare)
    elif isinstance(value, str):
        for expression in [value] if bare else BRACES.findall(value):
            _expression(expression, found)


def _pair(key: str, value: Any, found: _Found) -> None:
    if key in FORBIDDEN_KEYWORDS:
        found.forbid(f"{key} {FORBIDDEN_KEYWORDS[key]}")
    elif key == "become" and value is not True:
        found.forbid("only become: true is the same user there")
    elif key.startswith("with_"):
        found.forbid(f"{key} is a lookup that may read files of the controller")
    elif key == "roles" and isinstance(value, list):
        _roles(value, found)
    else:
        _module(key.removeprefix(BUILTIN), value, found)


def _module(module: str, value: Any, found: _Found) -> None:
    """Examine a module, with or without the name of Ansible's own collection; a keyword is no module."""
    if "." in module:
        found.forbid(f"{module} belongs to a collection, and hosts have none")
    elif module in FORBIDDEN_MODULES:
        found.forbid(f"{module} {FORBIDDEN_MODULES[module]}")
    elif module == "meta" and str(value) in FORBIDDEN_META:
        found.forbid(f"meta {value} concerns all hosts")
    elif module in INCLUDES:
        _include(value, found)
    elif module in ROLE_INCLUDES:
        _literal(value, ("name",), found.roles, found)
    elif module in FILE_MODULES and isinstance(value, Mapping):
        _source(module, value, found)


def _roles(roles: Sequence[Any], found: _Found) -> None:
    for role in roles:
        _literal(role, ("role", "name"), found.roles, found)


def _literal(value: Any, names: Sequence[str], into: list[str], found: _Found) -> None:
    """Take a literal name; a computed one is an obstacle."""
    if isinstance(value, Mapping):
        value = next((value[name] for name in names if name in value), None)
    if isinstance(value, str) and "{{" not in value:
        into.append(value)
    else:
        found.forbid(f"{value} is not known beforehand")


def _include(value: Any, found: _Found) -> None:
    """Take an included file. All files of a role are sent; of a playbook's folder, only those that are named."""
    if not found.in_role:
        _literal(value, ("file",), found.includes, found)
    elif ".." in str(value):
        found.forbid(f"includes {value}, which may be in another folder")


def _source(module: str, arguments: Mapping[str, Any], found: _Found) -> None:
    """Forbid a file of the controller outside of the role: only a literal relative path is allowed."""
    source = str(arguments.get("src") or arguments.get("file") or arguments.get("dir") or arguments.get("cmd") or "")
    if arguments.get("remote_src") is not True and ROLES_OWN.sub("", source).startswith(("/", "~", "{{")):
        found.forbid(f"{module} takes {source} from the controller")


def _expression(text: str, found: _Found) -> None:
    for match in CALLS.finditer(text):
        name, first = match["name"].strip("'\"").removeprefix(BUILTIN), match["first"] or ""
        of_role = name in FILE_LOOKUPS and first and not first.startswith(("/", "~")) and "{{" not in first
        if name not in LOOKUPS and not of_role and (name, first) != NO_FILE:
            found.forbid(f"lookup {name} reads the controller")
    for match in OTHER_HOSTS.finditer(text):
        found.forbid(f"{match[0]} is not the same on the host")
