"""Options that many commands share, and what they mean."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.discretion import DiscreetFormatter

F = TypeVar("F", bound=Callable[..., Any])

site_option = click.option(
    "--site",
    "folder",
    type=click.Path(path_type=Path),
    envvar="CLUSTERCTL_SITE",
    default=Path(),
    show_default="the current directory",
    help="The site directory (or CLUSTERCTL_SITE).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
limit_option = click.option(
    "--limit", metavar="PATTERN", multiple=True, help="Only nodes whose name matches (shell pattern); repeatable."
)
partner_option = click.option(
    "--partner",
    "partners",
    metavar="NODE",
    multiple=True,
    help="A gold node that is idle and may be loaded to measure a few others with; repeatable.",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")


DISCREET = ("clusterctl", "paramiko", "urllib3")
"""Loggers that tell no secret. Others do: requests_oauthlib, oauthlib and redfish print whole headers and bodies."""


def verbose_option(function: F) -> F:
    """`-v` logs what happens, `-vv` in detail, on stderr."""

    def apply(_ctx: click.Context, _param: click.Parameter, value: int) -> None:
        level = {0: logging.ERROR, 1: logging.INFO}.get(value, logging.DEBUG)
        shape = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
        handler = logging.StreamHandler()
        handler.setFormatter(DiscreetFormatter(shape))
        logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler])
        for name in DISCREET:
            logging.getLogger(name).setLevel(level)
        if not value:  # a silent host is a finding; paramiko logs it as an error, with a traceback
            logging.getLogger("paramiko").setLevel(logging.CRITICAL)

    return click.option(
        "-v", "--verbose", count=True, callback=apply, expose_value=False, help="Log more on stderr (-vv: in detail)."
    )(function)


def decision_options(function: F) -> F:
    """What every command of a person's decision takes."""
    return site_option(_acting_options(function))


def step_options(function: F) -> F:
    """What every command that takes nodes along takes."""
    return site_option(limit_option(_acting_options(function)))


def _acting_options(function: F) -> F:
    for option in (verbose_option, json_option, dry_run_option, yes_option):
        function = option(function)
    return function


def say_notices(notices: Iterable[str]) -> None:
    """What is trusted on mere word, on stderr: it must be seen in every run."""
    for notice in notices:
        click.echo(f"warning: {notice}", err=True)


def matching(names: Iterable[str], patterns: tuple[str, ...], where: str = "--limit") -> set[str]:
    """The names that match any pattern; all without patterns. A pattern that matches none is an error at `where`."""
    known = list(names)
    if not patterns:
        return set(known)
    found: set[str] = set()
    for pattern in patterns:
        hits = fnmatch.filter(known, pattern)
        if not hits:
            raise UsageError(f"no node matches {pattern!r}", where=where, remedy="clusterctl nodes lists their names")
        found.update(hits)
    return found
