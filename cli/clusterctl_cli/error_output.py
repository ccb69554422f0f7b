"""Errors on stderr, all in one form, click's own among them: message, where, remedy."""

from __future__ import annotations

import re

import click

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.peer_text import visible
from clusterctl.operations.documents import redacted
from clusterctl_cli.formats import Format, written
from clusterctl_cli.text import echo

MAX_LINE = 1000
MAX_LINES = 50
FURTHER = "    | "
"""Begins each line of an error but its first."""
_HINT = re.compile(r"\(?Did you mean (?:one of: )?(.*?)\?\)?$")
"""Click's suggestions, as each of its versions writes them."""


def print_error(error: ClusterctlError, form: Format) -> None:
    """Print an error on stderr: message and remedy, or the JSON or YAML document that the command line asks for."""
    if not form.text:
        echo(written({"error": error_json(error)}, form).rstrip(), err=True)
        return
    head = f"{error.where}: {error.message}" if error.where else error.message
    echo(_bounded(redacted(f"error: {head}")), err=True)
    if error.remedy:
        echo(_bounded(redacted(f"  → {error.remedy}")), err=True)


def _bounded(text: str) -> str:
    """Return a text in bounded lines, in which nothing is hidden: errors quote files and machines.

    Further lines are marked as such: none of them looks like an error or a remedy of ours.
    """
    first, *others = text.split("\n")
    lines = [first, *(f"{FURTHER}{line}" for line in others)]
    more = [f"… {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return "\n".join([*(visible(line, MAX_LINE) for line in lines[:MAX_LINES]), *more])


def error_json(error: ClusterctlError) -> dict[str, str]:
    """Return `{"kind", "message", "where", "remedy"}`."""
    return {"kind": error.kind, "message": error.message, "where": error.where, "remedy": error.remedy}


def from_click(error: click.ClickException) -> UsageError:
    """Return click's error about the command line as an error of ours."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "clusterctl"
    hint = _HINT.search(error.format_message())
    guesses = hint[1].replace("'", "").replace(", ", " or ") if hint else ""
    remedy = f"did you mean {guesses}?" if guesses else f"{path} --help lists what it takes"
    return UsageError(_message(error), where=_where(error) or path, remedy=remedy)


def _message(error: click.ClickException) -> str:
    """Return the message without the option's name, which `where` has, without click's hints and its full stop."""
    if isinstance(error, click.exceptions.NoSuchCommand):
        return f"there is no command {error.command_name!r}"
    if isinstance(error, click.MissingParameter):
        return "it is required"
    if isinstance(error, click.NoSuchOption):
        return "there is no such option"
    text = error.message if isinstance(error, click.BadParameter) else error.format_message()
    text = _HINT.sub("", " ".join(text.split())).replace("a valid integer range", "a whole number").rstrip(". ")
    return f"{text[:1].lower()}{text[1:]}"


def _where(error: click.ClickException) -> str:
    """Return the option or argument that is wrong; empty where it is the command line as a whole."""
    if isinstance(error, click.BadParameter) and error.param is not None:
        names = [name for name in error.param.opts if name.startswith("--")]
        return names[0] if names else error.param.human_readable_name
    return error.option_name if isinstance(error, (click.NoSuchOption, click.BadOptionUsage)) else ""
