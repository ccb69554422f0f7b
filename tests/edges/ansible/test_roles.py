"""What holds for every role and playbook: specification, layout, rules, rendering. No host is needed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.edges.resources import resource
from clusterctl.edges.site.roles import role_order, shipped_roles
from clusterctl.ports import Deadline
from clusterctl_lab.emulators.apt.closure import HOST_PACKAGES, METAL_PACKAGES
from tests.edges.ansible.rendering import rendered
from tests.edges.ansible.role_cases import (
    ROLES,
    UNFINISHED,
    RenderCase,
    lab_case,
    load,
    options,
    render_cases,
    required,
    role_tasks,
    task_files,
    templates,
)
from tests.edges.ansible.support import host, playbooks

PLAYBOOKS = sorted(path.name for path in resource("playbooks").glob("*.yml"))
PHASES = ["preflight.yml", "install.yml", "configure.yml", "run.yml"]
GOES_BY_CHANGE = re.compile(r"\bis (not )?changed\b|\.changed\b")
IN_CHECK_MODE = re.compile(r"ansible_check_mode and (\([^()]*\)|[^()])*")
FORBIDDEN = {"rescue", "always", "ignore_errors", "ignore_unreachable", "any_errors_fatal", "max_fail_percentage"}


def mappings(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping inside a YAML document."""
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from mappings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from mappings(inner)


@pytest.mark.parametrize("role", ROLES)
def test_defaults_are_those_of_the_specification(role: str) -> None:
    """Every default stands in the specification with the same value, and what is required has none."""
    specified = {name: option["default"] for name, option in options(role).items() if not option.get("required")}

    assert (load(role, "defaults/main.yml") or {}) == specified
    assert all("default" not in options(role)[name] for name in required(role))
    assert all(option["description"] for option in options(role).values())


@pytest.mark.parametrize("role", ROLES)
def test_names_begin_with_their_role(role: str) -> None:
    """Public variables begin with the role's name, internal ones with two underscores and it."""
    assert all(name.startswith(f"{role}_") for name in load(role, "defaults/main.yml"))
    assert all(name.startswith(f"__{role}_") for name in load(role, "vars/main.yml"))


@pytest.mark.parametrize("role", ROLES)
def test_main_is_a_table_of_contents(role: str) -> None:
    """Every role reads alike: preflight, install, configure, run, each with the role's tag.

    A role that only reads the host has a preflight alone.
    """
    tasks = load(role, "tasks/main.yml")

    assert [task["ansible.builtin.import_tasks"] for task in tasks] in (PHASES, PHASES[:1])
    assert all(role in task["tags"] for task in tasks)


@pytest.mark.parametrize("role", ROLES)
def test_nothing_hides_a_failure_or_runs_a_shell(role: str) -> None:
    """No shell, only Ansible's own modules, no forgiven failures; commands by argv, with an honest `changed_when`."""
    for path in task_files(role):
        for task in yaml.safe_load(path.read_text()):
            assert not FORBIDDEN & set(task), path
            modules = {name for name in task if "." in name}
            assert all(name.startswith("ansible.builtin.") for name in modules), path
            assert not modules & {"ansible.builtin.shell", "ansible.builtin.raw"}, path
            if "ansible.builtin.command" in task:
                assert "argv" in task["ansible.builtin.command"], path
                assert "changed_when" in task, path


def handlers_called(task: dict[str, Any]) -> set[str]:
    notified = task.get("notify", [])
    return {notified} if isinstance(notified, str) else set(notified)


@pytest.mark.parametrize("role", ROLES)
def test_a_run_that_broke_off_is_made_up_for(role: str) -> None:
    """Handlers, and tasks that go by what this run has changed, are lost with a run that is killed: the next one knows
    of it (`configure_unfinished`), owes every handler of the role, and acts as if it had changed what it finds changed.
    """
    tasks = list(role_tasks(role))
    owing = [task for task in tasks if UNFINISHED in str(task.get("when")) and "notify" in task]
    others = [task for task in tasks if task not in owing]

    assert set().union(*map(handlers_called, owing)) == set().union(*map(handlers_called, others))
    by_change = [task for task in others if GOES_BY_CHANGE.search(IN_CHECK_MODE.sub("", str(task)))]
    assert [task["name"] for task in by_change if UNFINISHED not in str(task)] == []


@pytest.mark.parametrize("role", ROLES)
def test_readme_names_every_variable(role: str) -> None:
    """Who reads only the README knows what can be set."""
    text = (resource("roles") / role / "README.md").read_text()

    assert [name for name in options(role) if f"`{name}`" not in text] == []


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_playbooks_neither_stop_all_for_one_nor_forgive(playbook: str) -> None:
    """A failed host never stops the others, and no failure is forgiven."""
    document = yaml.safe_load((resource("playbooks") / playbook).read_text())

    assert not any(FORBIDDEN & set(mapping) for mapping in mappings(document))


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_syntax(playbook: str) -> None:
    """Ansible itself accepts the playbook with all its roles."""
    argv = ["ansible-playbook", "--syntax-check", "-i", "localhost,", str(resource("playbooks") / playbook)]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": "/nonexistent", "LANG": "C.UTF-8", "ANSIBLE_ROLES_PATH": str(resource("roles"))}
    with tempfile.TemporaryDirectory() as home:
        result = subprocess.run(argv, env=env | {"ANSIBLE_HOME": home}, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr


def test_a_missing_variable_fails_with_its_name() -> None:
    """What has no honest default is asked for by name, before anything is touched."""
    asking = {role: required(role) for role in ROLES if required(role)}
    outcomes = run_local("missing.yml", tuple(asking))

    assert {role: (outcomes[role].ok, outcomes[role].changed) for role in asking} == dict.fromkeys(asking, (False, 0))
    assert {role: [name for name in names if name not in outcomes[role].message] for role, names in asking.items()} == {
        role: [] for role in asking
    }


def test_every_template_has_a_case() -> None:
    """A template that no case renders was never checked."""
    covered = {(case.role, name) for case in render_cases() for name in case.golden()}

    assert {(role, path.name) for role in ROLES for path in templates(role)} - covered == set()


@pytest.mark.parametrize("case", list(render_cases()), ids=lambda case: case.name)
def test_templates_render_as_they_always_did(case: RenderCase) -> None:
    """Each template, rendered by Ansible's engine with each case's variables, equals its golden file."""
    assert rendered(case) == case.golden()


def test_the_order_is_that_in_which_roles_are_tried() -> None:
    """What a role's lab case needs to be there first comes first for nodes too; each role that placement.yml names is needed."""
    order, roles = role_order(), shipped_roles()
    early = [(role, other) for role in order for other in lab_case(role).after if other in order]
    assert [pair for pair in early if order.index(pair[1]) > order.index(pair[0])] == []
    places = yaml.safe_load((resource("roles") / "placement.yml").read_text())
    named = {name for place in places.values() for field in place.values() if isinstance(field, list) for name in field}
    assert (set(places) | named) - set(roles) == set()


def test_the_lab_has_what_the_roles_install() -> None:
    """The lab's repository offers every package that the roles install by default: to hosts that share this machine's
    kernel, what the roles that are applied there need, to virtual metal all of it.
    """
    shared, everywhere = set(load("base", "defaults/main.yml")["base_packages"]), set()
    for role in ROLES:
        needed = everywhere if lab_case(role).not_here else shared
        for path in task_files(role):
            for mapping in mappings(yaml.safe_load(path.read_text())):
                names = mapping.get("ansible.builtin.apt", {}).get("name", [])
                plain = [names] if isinstance(names, str) else names
                needed |= {name for name in plain if "{{" not in name}

    assert shared <= set(HOST_PACKAGES)
    assert everywhere <= {*HOST_PACKAGES, *METAL_PACKAGES}


def run_local(playbook: str, names: tuple[str, ...], **variables: object) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="pb", dir="/tmp") as work_dir:
        hosts = [host(name) for name in names]
        observed = playbooks(Path(work_dir)).run(playbook, hosts, variables, Deadline.after(900))
        return {each.value.host: each.value for each in observed}
