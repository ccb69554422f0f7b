"""Figures of the code's structure, for docs/explanation/architecture.md.

    python -m benchmarks.structure                 # of this checkout
    python -m benchmarks.structure --root FOLDER   # of another one, such as `git archive COMMIT | tar x -C FOLDER`

Counts modules of the product and of the lab, not tests. A scrap has at most 60 lines and exactly one importer.
Complexity is counted where radon is installed (`pip install radon`).
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCES = (
    ("src/clusterctl", "clusterctl"),
    ("clusterctl", "clusterctl"),
    ("cli/clusterctl_cli", "clusterctl_cli"),
    ("burnin/clusterctl_burnin", "clusterctl_burnin"),
    ("web/clusterctl_web", "clusterctl_web"),
    ("lab/clusterctl_lab", "clusterctl_lab"),
)
"""Folder of the checkout → import name. A checkout has some of them."""
LAB = ("clusterctl_lab", "clusterctl.lab")
SCRAP_LINES = 60
COMPLEX = 10
PARAMETERS = 6


@dataclass(frozen=True, kw_only=True)
class Module:
    """One Python file that is imported by name."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool

    @property
    def lines(self) -> int:
        """Return the number of lines of the file."""
        return self.text.count("\n")

    @property
    def of_the_lab(self) -> bool:
        """Return whether the module belongs to the lab."""
        return any(self.name == lab or self.name.startswith(f"{lab}.") for lab in LAB)


def modules(root: Path) -> Iterator[Module]:
    """Yield all modules of the product and of the lab; symlinked packages are followed."""
    for folder, package in SOURCES:
        for at, folders, files in os.walk(root / folder, followlinks=True):
            folders[:] = [each for each in folders if each not in {"__pycache__", "roles", "playbooks"}]
            for file in sorted(files):
                if not file.endswith(".py"):
                    continue
                path = Path(at) / file
                parts = path.relative_to(root / folder).with_suffix("").parts
                text = path.read_text(encoding="utf-8")
                name = ".".join((package, *parts)).removesuffix(".__init__")
                yield Module(name=name, text=text, tree=ast.parse(text), is_package=file == "__init__.py")


def importers(found: dict[str, Module]) -> dict[str, set[str]]:
    """Return, for each module, which other modules import it."""
    result: dict[str, set[str]] = defaultdict(set)
    for module in found.values():
        for node in ast.walk(module.tree):
            for name in _imported(node, found):
                if name != module.name:
                    result[name].add(module.name)
    return result


def _imported(node: ast.AST, found: dict[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in found)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            yield name if name in found else node.module


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions and methods of a module."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many parameters a function has, without `self` and `cls`."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def complex_functions(members: list[Module]) -> int | None:
    """Return how many functions have a cyclomatic complexity above 10; None without radon."""
    try:
        visit = importlib.import_module("radon.complexity").cc_visit
    except ImportError:
        return None
    return sum(block.complexity > COMPLEX for module in members for block in visit(module.text) if block.letter != "C")


def public_names(module: Module) -> int:
    """Return how many names without an underscore a module defines at its top level."""
    count = 0
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            count += not node.name.startswith("_")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            count += sum(isinstance(each, ast.Name) and not each.id.startswith("_") for each in targets)
    return count


def package(module: Module) -> str:
    """Return the package that a module counts for: `clusterctl.fleet`, `clusterctl_cli`."""
    parts = module.name.split(".")
    return ".".join(parts[:2]) if parts[0] == "clusterctl" else parts[0]


def figures(title: str, members: list[Module], imported_by: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table for some modules."""
    sizes = sorted(module.lines for module in members if module.lines)
    scraps = [
        module
        for module in members
        if not module.is_package and 0 < module.lines <= SCRAP_LINES and len(imported_by[module.name]) == 1
    ]
    found = complex_functions(members)
    many = [each for module in members for each in functions(module) if parameters(each) > PARAMETERS]
    yield f"{title}: lines", f"{sum(sizes):,}"
    yield f"{title}: modules (not empty)", str(len(sizes))
    yield (
        f"{title}: lines of a module, median and p90",
        (f"{statistics.median(sizes):.0f}, {statistics.quantiles(sizes, n=10)[-1]:.0f}"),
    )
    yield f"{title}: modules of at most {SCRAP_LINES} lines with one importer", str(len(scraps))
    yield (
        f"{title}: functions with a complexity above {COMPLEX} (radon)",
        "not measured" if found is None else str(found),
    )
    yield f"{title}: functions with more than {PARAMETERS} parameters", str(len(many))


def main() -> None:
    """Print the figures as a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).parents[1], help="the checkout; by default this one"
    )
    found = {module.name: module for module in modules(parser.parse_args().root)}
    imported_by = importers(found)
    product = [module for module in found.values() if not module.of_the_lab]
    lab = [module for module in found.values() if module.of_the_lab]
    names, lines = Counter[str](), Counter[str]()
    for module in product:
        names[package(module)] += public_names(module)
        lines[package(module)] += module.lines
    rows = [*figures("product", product, imported_by), *(figures("lab", lab, imported_by) if lab else ())]
    rows += [(f"lines of {each}", f"{count:,}") for each, count in sorted(lines.items()) if count]
    rows += [(f"public names of {each}", str(count)) for each, count in sorted(names.items()) if count]
    print("| figure | value |\n|---|---|")
    for label, value in rows:
        print(f"| {label} | {value} |")


if __name__ == "__main__":
    main()
