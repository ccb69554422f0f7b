"""`-v` of every command: what is read, how long it takes and how much is asked of machines, on stderr."""

from __future__ import annotations

import logging
import time

import click

from clusterctl.operations.run_log import FORM, PROGRESS, RedactingFormatter, requests_made
from clusterctl_cli.text import echo

SAFE_LOGGERS = ("clusterctl", "clusterctl_cli", "paramiko", "urllib3")
"""Loggers that log no secret. Others do: requests_oauthlib, oauthlib and redfish log whole headers and bodies."""
VERBOSE = "clusterctl.verbose"
"""Key in click's context: whether `-v` was given."""

log = logging.getLogger(__name__)


class StderrHandler(logging.Handler):
    """Writes to today's `sys.stderr`: a progress view replaces it, and keeps its table below the lines."""

    def emit(self, record: logging.LogRecord) -> None:
        echo(self.format(record), err=True)


def add_verbose(command: click.Command) -> click.Command:
    """Add `-v` to a command, and to the commands of a group; return it. A second call adds nothing."""
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            add_verbose(subcommand)
        if not command.invoke_without_command:
            return command
    if not any("--verbose" in parameter.opts for parameter in command.params):
        _verbose_option(command)
    return command


def _apply(ctx: click.Context, _param: click.Parameter, value: int) -> None:
    ctx.meta[VERBOSE] = bool(value) or ctx.meta.get(VERBOSE, False)
    level = {0: logging.ERROR, 1: logging.INFO}.get(value, logging.DEBUG)
    handler = StderrHandler()
    handler.setLevel(level)
    handler.addFilter(lambda record: record.name != PROGRESS)  # the progress view prints these itself
    handler.setFormatter(RedactingFormatter(FORM))
    logging.basicConfig(level=max(level, logging.WARNING), handlers=[handler])
    for name in SAFE_LOGGERS:
        logging.getLogger(name).setLevel(level)
    if not value:  # a silent host is a finding; paramiko logs it as an error, with a traceback
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)
        return
    began = time.monotonic()
    ctx.call_on_close(
        lambda: log.info("%s took %.2f s; %s", ctx.command_path, time.monotonic() - began, requests_made())
    )


_verbose_option = click.option(
    "-v",
    "--verbose",
    count=True,
    envvar="CLUSTERCTL_VERBOSE",
    callback=_apply,
    expose_value=False,
    help="Log more on stderr (-vv: in detail; or CLUSTERCTL_VERBOSE=1, 2).",
)
