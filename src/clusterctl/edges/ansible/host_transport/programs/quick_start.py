"""Runs on a host: saves Ansible work that is the same in each play.

Ansible reads its own settings as YAML, and for each module it parses some 55 of its files again to find their imports.
Here the host's libyaml reads YAML, where the host has one, and the imports come from a table in the bundle. A file that
differs from the table is parsed as before.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

TABLE = "module_imports.json"
"""In `lib` of the bundle: each file of `module_utils` by its name in Python, as `[digest, import statements]`."""
PARSER = "_compile_module_ast"
"""The function of ansible-core 2.19 and later that parses a file; private, so it may be missing in another version."""
HOST_PACKAGES = "/usr/lib/python3/dist-packages"


class HostLibyaml:
    """Finds the compiled part of PyYAML in the host's own package, for the bundle's PyYAML."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if name != "yaml._yaml":
            return None
        return importlib.machinery.PathFinder.find_spec(name, [f"{HOST_PACKAGES}/yaml"])


def use_libyaml() -> None:
    """Let PyYAML, which is not loaded yet, find libyaml."""
    sys.meta_path.append(HostLibyaml)


def read_imports_once(home: Path, module_common: Any) -> None:
    """Let `ansible.executor.module_common` take imports from the table of the bundle at `home`."""
    parse: Callable[[str, str | bytes], ast.Module] | None = getattr(module_common, PARSER, None)
    if parse is None:  # another version of Ansible
        return
    table = json.loads((home / "lib" / TABLE).read_text())

    def imports_only(module_name: str, source_code: str | bytes) -> ast.Module:
        digest, statements = table.get(module_name, ("", ""))
        if digest and digest == digest_of(source_code):
            return ast.parse(str(statements))
        parsed: ast.Module = parse(module_name, source_code)
        return parsed

    setattr(module_common, PARSER, imports_only)


def digest_of(source: str | bytes) -> str:
    return hashlib.sha256(source.encode() if isinstance(source, str) else source).hexdigest()


def import_table(sources: Mapping[str, bytes]) -> str:
    """Return the table of these files, which are named as in Python."""
    return json.dumps({name: [digest_of(source), imports_of(source)] for name, source in sorted(sources.items())})


def imports_of(source: bytes) -> str:
    """Return the import statements of a file: for Ansible, those that are not at its top are optional."""
    tree = ast.parse(source)
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    nested = [node for node in _imports(tree) if node not in top]
    optional = [ast.If(ast.Constant(0), [*nested], [])] if nested else []
    return ast.unparse(ast.Module([*top, *optional], []))


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
