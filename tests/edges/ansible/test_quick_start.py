"""What a play on a host saves: the imports of Ansible's files are those that Ansible itself finds, and YAML is the same."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.executor import module_common
from ansible.module_utils import basic

from clusterctl.edges.ansible.host_transport.programs import quick_start
from clusterctl.edges.ansible.host_transport.programs.quick_start import TABLE, import_table, read_imports_once

UTILS = Path(str(basic.__file__)).parent
LOADED = """
from clusterctl.edges.ansible.host_transport.programs.quick_start import use_libyaml
import sys
if sys.argv[1] == "libyaml":
    use_libyaml()
import yaml
import json
loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
print(json.dumps([yaml.__with_libyaml__, yaml.load("{a: [1, b]}", Loader=loader)]))
"""


def files() -> Iterator[tuple[str, bytes, bool]]:
    """Each file of `module_utils`: its name in Python, its source, whether it is a package's."""
    for path in sorted(UTILS.rglob("*.py")):
        parts = path.relative_to(UTILS.parent.parent).with_suffix("").parts
        package = parts[-1] == "__init__"
        yield ".".join(parts[:-1] if package else parts), path.read_bytes(), package


def found(name: str, tree: ast.Module, *, package: bool) -> tuple[set[Any], set[Any]]:
    finder = module_common.ModuleDepFinder(name, tree, package)
    return finder.submodules, finder.optional_imports


def test_ansible_finds_the_same_imports_in_the_table(tmp_path: Path) -> None:
    """Of all files that modules are packed with: which are imported, and which of them are optional."""
    every = list(files())
    assert len(every) > 100
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / TABLE).write_text(import_table({name: source for name, source, _ in every}))
    common = SimpleNamespace(_compile_module_ast=lambda name, _source: pytest.fail(f"{name} is not in the table"))
    read_imports_once(tmp_path, common)
    for name, source, package in every:
        quick = found(name, common._compile_module_ast(name, source.decode()), package=package)
        assert quick == found(name, ast.parse(source), package=package), name


@pytest.mark.parametrize("name", ["ansible.module_utils.basic", "stat", "ansible.module_utils.site_own"])
def test_another_file_is_parsed_by_ansible(tmp_path: Path, name: str) -> None:
    """A role's own file of the same name, a module, and a file that the table does not have."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / TABLE).write_text(import_table({"ansible.module_utils.basic": b"import os"}))
    common = SimpleNamespace(_compile_module_ast=lambda name, source: ast.parse(f"{name}: {source}"))
    read_imports_once(tmp_path, common)
    assert ast.unparse(common._compile_module_ast(name, "int")) == f"{name}: int"


def test_a_version_without_that_function_is_left_alone(tmp_path: Path) -> None:
    """Nothing is read, nothing is set."""
    common = SimpleNamespace()
    read_imports_once(tmp_path, common)
    assert vars(common) == {}


def test_this_version_of_ansible_has_that_function() -> None:
    """Else hosts would play as slowly as before, unnoticed."""
    assert callable(getattr(module_common, quick_start.PARSER))


def test_the_table_is_data_alone() -> None:
    """Statements that only import."""
    for _digest, statements in json.loads(import_table({name: source for name, source, _ in files()})).values():
        kinds = {type(node) for node in ast.walk(ast.parse(statements)) if isinstance(node, ast.stmt)}
        assert kinds <= {ast.Import, ast.ImportFrom, ast.If}


def test_yaml_is_the_same_with_the_hosts_libyaml(tmp_path: Path) -> None:
    """The bundle's PyYAML has no compiled part: the host's package has it, or YAML is read as before."""
    (tmp_path / "yaml").mkdir()
    for file in Path(str(yaml.__file__)).parent.glob("*.py"):
        shutil.copy(file, tmp_path / "yaml")
    compiled = any(Path(quick_start.HOST_PACKAGES, "yaml").glob("_yaml.*.so"))
    path = f"{tmp_path}:{Path(quick_start.__file__).parents[5]}"
    for wanted, expected in (("libyaml", compiled), ("none", False)):
        command = ["/usr/bin/python3", "-c", LOADED, wanted]
        answer = subprocess.run(command, env={"PYTHONPATH": path}, capture_output=True, text=True, check=True)
        assert json.loads(answer.stdout) == [expected, {"a": [1, "b"]}]
