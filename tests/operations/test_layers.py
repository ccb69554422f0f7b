"""The operations' place: between front ends and everything below; `compose` alone joins edges and steps."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from clusterctl import operations
from tests.paths import ROOT, needs_checkout

FOLDER = Path(operations.__path__[0])
EXAMPLE = ROOT / "examples/operations.py"
DESCRIPTIONS = ("clusterctl.edges.clock", "clusterctl.edges.site")
"""Edges that only give the time and the site's files: every operation may read them."""


def imported(file: Path) -> set[str]:
    tree = ast.walk(ast.parse(file.read_text()))
    return {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)} | {
        alias.name
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.stem)
def test_only_compose_joins_edges_and_steps(file: Path) -> None:
    """Operations get outside systems from `adapters`, and give them to steps by themselves only there."""
    names = imported(file)
    edges = {name for name in names if name.startswith("clusterctl.edges") and not name.startswith(DESCRIPTIONS)}
    steps = {name for name in names if name.startswith("clusterctl.steps")}
    assert not (edges and steps) or file.stem == "compose", edges | steps


@needs_checkout
def test_a_second_front_end_is_short() -> None:
    """Fewer than 60 lines, on `clusterctl.operations` and the fleet's types alone."""
    assert len(EXAMPLE.read_text().splitlines()) < 60
    ours = {name for name in imported(EXAMPLE) if name.split(".")[0] not in ("__future__", "sys", "pathlib", "typing")}
    assert all(name.startswith(("clusterctl.operations", "clusterctl.fleet")) for name in ours), ours
