"""Templates of roles, rendered by Ansible's own engine in this process: a play takes a second for every ten of them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.edges.ansible.role_cases import RenderCase


def rendered(case: RenderCase) -> Mapping[str, str]:
    """Return what each template becomes, by its name. A case has no variables but the role's, its own, and Ansible's."""
    from ansible.parsing.dataloader import DataLoader
    from ansible.template import Templar, trust_as_template

    _find_plugins()
    task, loader = case.task(Path()), DataLoader()
    variables: dict[str, Any] = {"inventory_hostname": "node001", "ansible_managed": "Ansible managed"}
    for file in (*_of_role(task), Path(task["vars"])):
        variables |= loader.load_from_file(str(file), trusted_as_template=True) or {}
    templar = Templar(loader, variables)
    files = map(Path, task["templates"])
    return {
        file.name: templar.copy_with_new_env(searchpath=[str(file.parent)]).template(
            trust_as_template(file.read_text()), escape_backslashes=False
        )
        for file in files
    }


@functools.cache
def _find_plugins() -> None:
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader([])


def _of_role(task: Mapping[str, Any]) -> Iterator[Path]:
    for part in task["of_role"]:
        yield from sorted((Path(task["role_folder"]) / part).rglob("*.yml"))
