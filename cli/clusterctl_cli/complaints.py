"""Errors in words, in one form for all of them, click's own among them: message, where, remedy."""

from __future__ import annotations

import json
import re

import click

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.operations.documents import redacted

_HINT = re.compile(r"\(?Did you mean (?:one of: )?(.*?)\?\)?$")
"""Click's own guess at what was meant, in each of its versions' words."""


def tell(error: ClusterctlError, *, as_json: bool) -> None:
    """Say it on stderr: two lines for a person, or one JSON document."""
    if as_json:
        click.echo(redacted(json.dumps({"error": error_json(error)})), err=True)
        return
    head = f"{error.where}: {error.message}" if error.where else error.message
    click.echo(redacted(f"error: {head}"), err=True)
    if error.remedy:
        click.echo(redacted(f"  → {error.remedy}"), err=True)


def error_json(error: ClusterctlError) -> dict[str, str]:
    """`{"kind":…, "message":…, "where":…, "remedy":…}`."""
    return {"kind": error.kind, "message": error.message, "where": error.where, "remedy": error.remedy}


def of_click(error: click.ClickException) -> UsageError:
    """What click says of wrong words on the command line, as an error of ours."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context is not None else "clusterctl"
    hint = _HINT.search(error.format_message())
    remedy = f"did you mean {hint[1]}?" if hint else f"{path} --help shows what it takes"
    return UsageError(_message(error), where=_where(error) or path, remedy=remedy)


def _message(error: click.ClickException) -> str:
    """Without the option's name, which `where` has, without click's hints and its full stop."""
    if isinstance(error, click.MissingParameter):
        return "it is required"
    if isinstance(error, click.NoSuchOption):
        return "there is no such option"
    text = error.message if isinstance(error, click.BadParameter) else error.format_message()
    text = _HINT.sub("", " ".join(text.split())).rstrip(". ")
    return f"{text[:1].lower()}{text[1:]}"


def _where(error: click.ClickException) -> str:
    """The option or argument that is wrong; empty where it is the command line as a whole."""
    if isinstance(error, click.BadParameter) and error.param is not None:
        names = [name for name in error.param.opts if name.startswith("--")]
        return names[0] if names else error.param.human_readable_name
    return error.option_name if isinstance(error, (click.NoSuchOption, click.BadOptionUsage)) else ""
