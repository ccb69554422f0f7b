"""Selectors: which nodes a command is about, by what the journal knows of them."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.selectors import choose
from clusterctl.operations.context import open_site
from clusterctl_cli import watching
from clusterctl_cli.main import cli
from clusterctl_cli.text import columns
from clusterctl_cli.watching import View, watch
from tests.cli.site_of_three import run, write

CHOICES = [
    (["stage=gold"], ["n1"]),
    (["stage!=gold"], ["n2", "n3"]),
    (["rack=A01"], ["n1", "n2"]),
    (["rack=A01,stage=quarantined"], ["n2"]),
    (["rack=A01", "stage=quarantined"], ["n2"]),
    (["stage=gold,stage=seen"], ["n1", "n3"]),
    (["name=n[23]"], ["n2", "n3"]),
    (["serial=S*"], ["n1", "n2"]),
    (["stage=retired"], []),
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def names(site: Path, *words: str) -> list[str]:
    return [node["name"] for node in json.loads(run(site, *words, "--json").stdout)["nodes"]]


@pytest.mark.parametrize(("selectors", "chosen"), CHOICES, ids=",".join)
def test_terms_of_a_selector(site: Path, selectors: list[str], chosen: list[str]) -> None:
    """Different keys all hold; one key holds where one of its values does; `!=` and shell patterns are understood."""
    context = open_site(site)
    assert [node.name for node in choose(context.nodes(), (), selectors)] == chosen
    context.journal.close()


def test_patterns_and_selectors_both_hold(site: Path) -> None:
    """A name that the selector leaves out is not chosen."""
    assert names(site, "why", "n1", "n2", "-l", "stage=gold") == ["n1"]
    assert names(site, "plan", "--limit", "n[12]", "-l", "stage=quarantined") == ["n2"]


def test_a_decision_about_selected_nodes(site: Path) -> None:
    """A command that changes something previews the nodes that the selector chooses, and no other."""
    result = run(site, "hold", "-l", "rack=A01", "--reason", "the rack is moved", "--dry-run").stdout
    assert ("n1: " in result, "n2: " in result, "n3: " in result) == (True, True, False)
    with pytest.raises(UsageError, match="no node meets 'rack=Z9'"):
        run(site, "hold", "-l", "rack=Z9", "--reason", "x", "--yes")


def test_retired_nodes_are_selected_by_their_stage_only(site: Path) -> None:
    """A rack's selector does not find what has left it."""
    run(site, "retire", "n1", "--reason", "sold to a museum", "--yes")
    assert names(site, "nodes", "-l", "rack=A01") == ["n2"]
    assert names(site, "nodes", "-l", "rack=A01,stage=retired") == ["n1"]


def complete(site: Path, words: list[str], incomplete: str) -> list[str]:
    shell = ShellComplete(cli, {}, "clusterctl", "_CLUSTERCTL_COMPLETE")
    return [item.value for item in shell.get_completions([*words, "--site", str(site)], incomplete)]


def test_a_shell_completes_commands_options_and_nodes(site: Path, tmp_path: Path) -> None:
    """Names of the site's nodes where a command takes nodes; nothing where the site cannot be read."""
    shell = ShellComplete(cli, {}, "clusterctl", "_CLUSTERCTL_COMPLETE")
    assert {item.value for item in shell.get_completions([], "bo")} == {"bootstrap"}
    assert {item.value for item in shell.get_completions(["cable"], "ver")} == {"verify"}
    assert "--dry-run" in {item.value for item in shell.get_completions(["hold"], "--d")}
    assert complete(site, ["why"], "n") == ["n1", "n2", "n3"]
    assert complete(site, ["bootstrap", "--limit", "n1"], "--li") == ["--limit"]
    assert complete(tmp_path / "nowhere", ["why"], "n") == []


def complete_last(site: Path, command: str, *words: str) -> list[str]:
    """Return what completes the last word of a command line."""
    shell = ShellComplete(cli, {}, "clusterctl", "_CLUSTERCTL_COMPLETE")
    return [item.value for item in shell.get_completions([command, "--site", str(site), *words[:-1]], words[-1])]


def test_a_shell_completes_selectors_parts_checks_suites_and_faults(site: Path) -> None:
    """What the site and the program know by name; parts of the nodes that the command line names."""
    slots = complete_last(site, "revalidate", "n1", "--repaired", "")
    assert slots == ["0"]
    assert complete_last(site, "quarantine", "n1", "--part", slots[0]) == slots
    assert complete_last(site, "revalidate", "n3", "--repaired", "") == []
    assert complete_last(site, "nodes", "-l", "st") == ["stage="]
    assert complete_last(site, "nodes", "-l", "rack=A01,st") == ["rack=A01,stage="]
    assert complete_last(site, "nodes", "-l", "stage=A,rack=A") == ["stage=A,rack=A01", "stage=A,rack=A02"]
    assert complete_last(site, "nodes", "-l", "sku!=l") == ["sku!=lab"]
    assert complete_last(site, "waive", "n1", "--check", "gpu_ec") == ["gpu_ecc"]
    assert complete_last(site, "revalidate", "n1", "--suite", "night") == ["nightly"]
    shell = ShellComplete(cli, {}, "clusterctl", "_CLUSTERCTL_COMPLETE")
    assert [item.value for item in shell.get_completions(["lab", "inject"], "missing-g")] == ["missing-gpu"]


def test_a_narrow_terminal_shows_the_cause_whole() -> None:
    """Wrapped in its column, or below its row where no room is left; no word is lost and no line is too long."""
    cause = "GPU 3 reports 2 uncorrectable ECC errors in its HBM, slot 5 of rack A01 unit 20"
    for name in ("n1", "gpu-server-rack-12-unit-07"):
        text = columns(("NODE", "STAGE", "SINCE", "WHY"), [(name, "quarantined", "1 d ago", cause)], width=80)
        assert max(map(len, text.splitlines())) <= 80
        words = text.replace("1 d ago", "").split()
        assert [word for word in words if word in cause.split()] == cause.split()
    assert cause in columns(("NODE", "WHY"), [("n1", cause)])


def test_watching_prints_what_has_changed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe each change is printed once; Ctrl-C ends it with exit code 130."""
    looks = iter([View("one", 1), View("one, older", 1), View("two", 2)])

    def look() -> View:
        try:
            return next(looks)
        except StopIteration:
            raise KeyboardInterrupt from None

    assert watch(look, every_s=0) == watching.INTERRUPTED
    assert [line for line in capsys.readouterr().out.splitlines() if ":" not in line] == ["one", "two"]


def test_a_watched_document_is_refused(site: Path) -> None:
    """One document stands on stdout: a watched one would be many."""
    with pytest.raises(UsageError, match="shows a table"):
        run(site, "nodes", "--watch", "-o", "name")
    with pytest.raises(click.ClickException, match="No such option"):
        run(site, "plan", "--watch")
