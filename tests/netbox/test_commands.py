"""`clusterctl import netbox` and `clusterctl export netbox` as an operator types them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import open_site
from clusterctl_cli.main import cli
from tests.netbox.emulator import World, served
from tests.netbox.sites import site
from tests.netbox.worlds import node, small_world
from tests.steps.fakes import identified


@pytest.fixture
def world() -> World:
    world = small_world()
    node(world, 5, "n5", oob=None)
    world.pages |= {"dcim/inventory-items": {}, "extras/journal-entries": {}}
    return world


@pytest.fixture
def folder(world: World, tmp_path: Path) -> Iterator[Path]:
    with served(world) as url:
        yield site(tmp_path / "site", url, "  export: {statuses: {gold: active, seen: staged}, journal: false}\n")


def typed(folder: Path, *words: str, answer: str = "") -> Result:
    return CliRunner().invoke(
        cli, [*words, "--site", str(folder)], input=answer, catch_exceptions=False, standalone_mode=False
    )


def test_a_dry_run_has_the_difference_as_json(folder: Path) -> None:
    """One document: each changed cell, each cable, each conflict with its address in NetBox."""
    found = json.loads(typed(folder, "import", "netbox", "--dry-run", "--json").stdout)
    assert found["dry_run"] is True
    assert {"node": "n1", "column": "serial", "before": "", "after": "S0001", "state": "new"} in found["changes"]
    assert [item["subject"] for item in found["conflicts"]] == ["n5"]
    assert found["conflicts"][0]["url"].endswith("/dcim/devices/5/")
    assert not (folder / "nodes.csv").exists()


def test_the_question_is_answered(folder: Path) -> None:
    """No: nothing is written. Yes: the files are written, and what is left out makes the exit code 1."""
    with pytest.raises(click.Abort):
        typed(folder, "import", "netbox", answer="n\n")
    assert not (folder / "nodes.csv").exists()
    done = typed(folder, "import", "netbox", answer="y\n")
    assert (done.return_value, "nodes.csv" in done.stdout) == (1, True)


def test_without_a_terminal_it_needs_yes(folder: Path) -> None:
    """No answer and no --yes is wrong usage, and nothing is written."""
    with pytest.raises(UsageError, match="no terminal"):
        typed(folder, "import", "netbox")
    assert not (folder / "nodes.csv").exists()


def test_nothing_to_do_asks_nothing(world: World, folder: Path) -> None:
    """A second import has no question."""
    world.pages["dcim/devices"].pop(5)
    typed(folder, "import", "netbox", "--yes")
    again = typed(folder, "import", "netbox")
    assert (again.return_value, again.stdout.count("up to date")) == (0, 3)


def test_plan_export_and_a_second_import(world: World, folder: Path) -> None:
    """NetBox → site → stages → NetBox: the export writes what the journal has, and then nothing differs."""
    world.pages["dcim/devices"].pop(5)
    typed(folder, "import", "netbox", "--yes")
    context = open_site(folder)
    identified(context.journal, "n1", "S0001", "gold")
    identified(context.journal, "n2", "S0002", "seen")
    context.journal.close()
    shown = json.loads(typed(folder, "export", "netbox", "--dry-run", "--json").stdout)
    assert ("n2", "status", "staged") in {(one["node"], one["field"], one["after"]) for one in shown["changes"]}
    assert typed(folder, "export", "netbox", "--yes").return_value == 0
    assert world.pages["dcim/devices"][2]["status"]["value"] == "staged"
    assert typed(folder, "export", "netbox").return_value == 0
    assert typed(folder, "import", "netbox").stdout.count("up to date") == 3


def test_a_site_without_netbox(folder: Path) -> None:
    """The error names the section that is missing, and the page that explains it."""
    text = (folder / "site.yml").read_text()
    (folder / "site.yml").write_text(text[: text.index("netbox:")])
    with pytest.raises(UsageError) as caught:
        typed(folder, "import", "netbox", "--dry-run")
    assert "netbox" in caught.value.where
    assert "docs/how-to/netbox.md" in caught.value.remedy
