"""Every `clusterctl …` command line of the documentation is one that the command line accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clusterctl.fleet.errors import ClusterctlError
from clusterctl_cli.commands.maintain import PlanGroup
from clusterctl_cli.main import cli
from tests.docs.pages import OTHERS, PAGES, lines, named, with_docs

pytestmark = with_docs

LIVING = [page for page in (*PAGES, *OTHERS) if not {"adr", "soak"} & set(page.parts) and page.name != "commands.md"]
_START = re.compile(r"^\s*(?:\$ )?(?:time )?(?:sudo )?(?:[\w./-]*bin/)?clusterctl(?=\s)(.*)")
_OUTPUT = ("clusterctl lab up: ", "clusterctl: ")


@pytest.mark.parametrize("page", LIVING, ids=named)
def test_every_command_line_is_accepted(page: Path) -> None:
    """Commands and options of code blocks exist, and each has the arguments that it needs. Nothing is run."""
    refused = {f"{page.name}:{number}": reason for number, words in commands(page) if (reason := refusal(words))}
    assert not refused


@pytest.mark.parametrize("page", LIVING, ids=named)
def test_every_command_in_a_sentence_exists(page: Path) -> None:
    """Code spans that begin with `clusterctl` name commands and options that exist; arguments may be left out."""
    spans = [span for _, line, code in lines(page) if not code for span in re.findall(r"`clusterctl ([^`]+)`", line)]
    refused = {span: reason for span in spans if (reason := unknown(span))}
    assert not refused


def commands(page: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the command lines of the page's code blocks, each with its line number, without pipes and redirections."""
    for number, line, code in lines(page):
        found = _START.match(line) if code else None
        if found is None:
            continue
        lexer = shlex.shlex(found[1], posix=True, punctuation_chars="|>;&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("|>;&"):
                break
            words.append(word)
        yield number, words


def refusal(words: list[str]) -> str:
    """Return why click does not accept the words; empty where it does."""
    command, context = cli, click.Context(cli, info_name="clusterctl", resilient_parsing=True)
    rest = list(words)
    try:
        while True:
            rest = command.with_run(rest) if isinstance(command, PlanGroup) else rest
            if isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
                found = command.get_command(context, rest[0])
                if found is not None:
                    command, rest = found, rest[1:]
                    context = click.Context(found, info_name=found.name, parent=context, resilient_parsing=True)
                    continue
            if (
                isinstance(command, click.Group)
                and not command.invoke_without_command
                and not {"-h", "--help"} & {*rest}
            ):
                return f"no command {' '.join(words)}"
            given, extra, _ = command.make_parser(context).parse_args(rest)
            missing = [
                each.name for each in command.params if each.required and given.get(each.name or "") in (None, ())
            ]
            return (
                f"too many arguments: {extra}"
                if extra
                else f"missing: {missing}"
                if missing and "--help" not in words
                else ""
            )
    except (click.ClickException, ClusterctlError) as error:
        return str(error)


def unknown(span: str) -> str:
    """Return which command or option of a code span does not exist; empty where all do."""
    command, context = cli, click.Context(cli, info_name="clusterctl", resilient_parsing=True)
    words = re.sub(r"[\[\]…|]", " ", span).split()
    while words and isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]+", words[0]):
        try:
            found = command.get_command(context, words[0])
        except ClusterctlError as error:
            return str(error)
        if found is None:
            return f"no command {words[0]}" if not command.invoke_without_command else ""
        command, words = found, words[1:]
        context = click.Context(found, info_name=found.name, parent=context, resilient_parsing=True)
    options = {option for each in command.get_params(context) for option in (*each.opts, *each.secondary_opts)}
    bad = [word for word in words if word.startswith("--") and word.split("=")[0] not in options]
    return f"no option {bad[0]}" if bad else ""
