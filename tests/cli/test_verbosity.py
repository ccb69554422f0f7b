"""`-v` of every command."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clusterctl.edges import processes
from clusterctl.edges.tally import Asked, counts
from clusterctl.ports import Deadline
from clusterctl.site.urls import place_of
from clusterctl_cli.main import cli
from tests.edges.site.ready import write_ready_site

PROGRAM = """
import logging, click
from clusterctl_cli.verbosity import add_verbose

@click.command()
def command():
    for name in ("clusterctl.steps", "urllib3", "requests_oauthlib", "oauthlib", "redfish"):
        logging.getLogger(name).debug("detail")
        logging.getLogger(name).warning("warning")

add_verbose(command)()
"""


def logged(*argv: str) -> set[tuple[str, str]]:
    """Return (logger, message) of all that reaches stderr."""
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *argv], capture_output=True, text=True, check=True)
    heads = (line.split(": ", 1) for line in ran.stderr.splitlines())
    return {(head.split()[-1], message) for head, message in heads}


def test_verbose_logs_ours_in_detail_and_never_what_prints_credentials() -> None:
    """Some libraries log whole requests, passwords and keys among them: their details stay out at every level."""
    reported = logged("-vv")
    assert {("clusterctl.steps", "detail"), ("urllib3", "detail"), ("redfish", "warning")} <= reported
    assert not {name for name, message in reported if message == "detail"} & {
        "requests_oauthlib",
        "oauthlib",
        "redfish",
    }


def test_quiet_without_it() -> None:
    """Warnings of libraries concern no operator who did not ask."""
    assert not logged()


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, with its path."""
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield context.command_path, command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, click.Context(found, parent=context, info_name=name))


def test_every_command_has_it() -> None:
    """Those of the lab, too; each once."""
    every = dict(commands(cli, click.Context(cli, info_name="clusterctl")))
    assert {"clusterctl nodes", "clusterctl cable lint", "clusterctl cable", "clusterctl lab up"} <= every.keys()
    times = {path: sum("--verbose" in parameter.opts for parameter in each.params) for path, each in every.items()}
    assert set(times.values()) == {1}, times


def test_a_command_that_only_reads_logs_site_file_journal_and_time(tmp_path: Path) -> None:
    """The table on stdout stays as it is."""
    site = write_ready_site(tmp_path)
    command = [sys.executable, "-m", "clusterctl_cli.main", "nodes", "--site", str(site)]
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    verbose = subprocess.run([*command, "-v"], capture_output=True, text=True, check=False)
    assert (plain.returncode, plain.stderr) == (0, ""), plain.stderr
    assert verbose.stdout == plain.stdout
    file, journal, end = verbose.stderr.splitlines()
    assert f"site file {site}/site.yml: 1 nodes, read in " in file
    assert f"journal {site}/state/journal.db: opened in " in journal
    assert re.search(r"clusterctl nodes took \d+\.\d\d s; nothing asked of any machine$", end)


def test_requests_are_counted() -> None:
    """A program that runs counts as one, by whatever it ends."""
    before = counts().get(Asked.PROGRAM, 0)
    processes.run(["false"], Deadline.after(60))
    assert counts()[Asked.PROGRAM] == before + 1


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("sqlite:////srv/site/state/journal.db", "/srv/site/state/journal.db"),
        ("sqlite:///file:/srv/a%20b/journal.db?mode=ro&uri=true", "/srv/a b/journal.db"),
        ("postgresql+psycopg://u:geheim@db:5433/fleet?password=geheim", "postgresql+psycopg://db/fleet"),
    ],
)
def test_the_place_of_a_journal_has_no_password(url: str, place: str) -> None:
    """Neither of the user nor of the query."""
    assert place_of(url) == place
