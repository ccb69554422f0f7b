"""The cases of the roles: `roles/<role>/<case>/{vars.yml, golden/}` and `roles/<role>/lab.yml`, next to this file.

`vars.yml` is what a site sets; `golden/` holds what each template of the role becomes with it. `lab.yml` describes how the
role is applied on a lab host: `variables`, and `after`, roles that have to be there first; or `not_here`, why it cannot
run on a host that shares this machine's kernel; or `elsewhere`, the test that applies it. For docs/reference/roles.md it has `really`, what of it is real there and what is
a stand-in, and `metal`, what virtual metal saw of it. Its folder may hold `prepare.yml`, tasks that make the role's host
ready, and `helper.yml`, tasks for a second lab host, whose address the role's variables find in `lab_helpers`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from clusterctl.edges.resources import resource

CASES = Path(__file__).parent / "roles"
ROLES = tuple(sorted(path.name for path in resource("roles").iterdir() if path.is_dir()))


UNFINISHED = "configure_unfinished | default(false) | bool"
"""By this a role's tasks ask whether the last run on the node broke off."""


def load(role: str, name: str) -> Any:
    """A YAML file of a role; an empty mapping where the role has none."""
    path = resource("roles") / role / name
    return yaml.safe_load(path.read_text()) if path.exists() else {}


def options(role: str) -> Mapping[str, Mapping[str, Any]]:
    """Return the role's public variables by name, from its argument specification."""
    found: Mapping[str, Mapping[str, Any]] = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    return found


def required(role: str) -> tuple[str, ...]:
    return tuple(name for name, option in options(role).items() if option.get("required"))


def task_files(role: str) -> list[Path]:
    folder = resource("roles") / role
    return sorted([*folder.glob("tasks/*.yml"), *folder.glob("handlers/*.yml")])


def role_tasks(role: str) -> Iterator[dict[str, Any]]:
    """Its tasks and handlers."""
    for path in task_files(role):
        yield from yaml.safe_load(path.read_text())


def templates(role: str) -> tuple[Path, ...]:
    return tuple(sorted((resource("roles") / role / "templates").glob("*.j2")))


@dataclass(frozen=True, slots=True)
class RenderCase:
    """One site's variables for one role."""

    role: str
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.role}-{self.folder.name}"

    def golden(self) -> Mapping[str, str]:
        """What is expected, by template; the templates that the case leaves out are left out."""
        return {path.name: path.read_text() for path in sorted((self.folder / "golden").iterdir())}

    def task(self, into: Path) -> Mapping[str, Any]:
        """Return the variables of `data/render_case.yml`."""
        role = resource("roles") / self.role
        return {
            "role_folder": str(role),
            "of_role": [part for part in ("defaults", "vars") if (role / part).is_dir()],
            "vars": str(self.folder / "vars.yml"),
            "templates": [str(role / "templates" / name) for name in self.golden()],
            "into": str(into),
        }


def render_cases() -> Iterator[RenderCase]:
    for folder in sorted(CASES.glob("*/*/golden")):
        yield RenderCase(folder.parent.parent.name, folder.parent)


@dataclass(frozen=True, slots=True)
class LabCase:
    """How one role is applied on a lab host."""

    role: str
    variables: Mapping[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    not_here: str = ""
    elsewhere: str = ""
    really: str = ""
    metal: str = ""

    @property
    def prepare(self) -> tuple[str, ...]:
        """Task files for the role's own host, before the role."""
        return self._optional_file("prepare.yml")

    @property
    def helper(self) -> tuple[str, ...]:
        """Task files for a second host, before the role; none: the role needs no second host."""
        return self._optional_file("helper.yml")

    def _optional_file(self, name: str) -> tuple[str, ...]:
        path = CASES / self.role / name
        return (str(path),) if path.exists() else ()


def lab_case(role: str) -> LabCase:
    """Return the content of `roles/<role>/lab.yml`; `FileNotFoundError` where a role has none."""
    output = yaml.safe_load((CASES / role / "lab.yml").read_text())
    after = tuple(output.pop("after", ()))
    return LabCase(role, after=after, **output)
