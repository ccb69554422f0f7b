"""The one way in which a command changes something: preview it, ask, run it, print what became of it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from clusterctl.fleet.durations import fixed_until
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.operations.operation import Control, Event, Preview, Result, current_time
from clusterctl.operations.run_log import PROGRESS, run_log
from clusterctl_cli import output
from clusterctl_cli.stopping import stoppable
from clusterctl_cli.text import echo
from clusterctl_cli.verbosity import VERBOSE

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
RequestT = TypeVar("RequestT")
INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """Values of `--yes`, `--dry-run` and `--json`."""

    yes: bool = False
    dry_run: bool = False
    as_json: bool = False

    @classmethod
    def taken(cls, options: dict[str, Any]) -> Flags:
        """Return the flags among a command's options, and take them out of these."""
        return cls(**{name: options.pop(name) for name in ("yes", "dry_run", "as_json") if name in options})


def fix_moments(options: dict[str, Any]) -> None:
    """Turn durations of `--until` and `--due` into the moments at which they end: those are previewed and approved."""
    for name in ("until", "due"):
        if options.get(name):
            options[name] = fixed_until(options[name], current_time())


@dataclass(frozen=True, slots=True)
class RunLog:
    """The log file of a run. `verbose`: its path is printed where the run did not fail, too."""

    context: SiteContext
    file: Path
    verbose: bool

    def print_path(self, exit_code: int) -> None:
        """Print the path where the run failed, or `-v` was given, and log the exit code there. Nothing is printed where
        the file cannot be written. Wrong usage that was found before anything was logged makes no file.
        """
        wrong_usage = exit_code == UsageError.exit_code and not self.file.exists()
        if wrong_usage or not (exit_code or self.verbose):
            return
        with run_log(self.context):
            logging.getLogger(PROGRESS).info("exit code %s", exit_code)
        with suppress(OSError):
            if self.file.exists():
                echo(f"log: {self.file}", err=True)


@contextmanager
def logged(context: SiteContext) -> Iterator[RunLog]:
    """Write the log file of a run, and print its path where the run raises an error or is stopped."""
    with run_log(context) as file:
        command = click.get_current_context(silent=True)
        log = RunLog(context, file, command is not None and command.meta.get(VERBOSE, False))
        try:
            yield log
        except (ClusterctlError, KeyboardInterrupt, click.Abort) as error:
            log.print_path(error.exit_code if isinstance(error, ClusterctlError) else INTERRUPTED)
            raise
        except Exception:
            logging.getLogger(PROGRESS).exception("clusterctl itself failed")
            log.print_path(1)
            raise


@contextmanager
def observed(context: SiteContext) -> Iterator[tuple[RunLog, threading.Event]]:
    """Write the log file of a run that can be stopped; yield the log, and the event that stops the run."""
    with logged(context) as log, stoppable() as cancelled:
        yield log, cancelled


class Operation(Protocol[RequestT_contra]):
    """A module of `clusterctl.operations` that changes something."""

    def preview(self, context: SiteContext, request: RequestT_contra, /) -> Preview: ...
    def run(self, context: SiteContext, request: RequestT_contra, control: Control, /) -> Result: ...


def carry_out(operation: Operation[RequestT], context: SiteContext, request: RequestT, flags: Flags) -> int:
    """Preview the operation, ask, run it and print its result; return the exit code."""
    preview = operation.preview(context, request)
    if not approve(preview, flags):
        return 0
    with observed(context) as (log, cancelled):
        result = operation.run(context, request, Control(preview.digest, print_event, cancelled))
    output.print_result(result, as_json=flags.as_json)
    log.print_path(result.exit_code)
    return result.exit_code


def approve(preview: Preview, flags: Flags) -> bool:
    """Print the preview and ask; return False for `--dry-run`. Raises `DeclinedError` where the answer is no,
    and `UsageError` where there is no terminal to ask on.
    """
    if flags.dry_run:
        output.print_preview(preview, as_json=flags.as_json)
        return False
    for warning in preview.warnings:
        echo(f"warning: {warning}", err=True)
    if not flags.yes:
        for line in output.preview_lines(preview):
            echo(line, err=True)
        confirm(preview.question)
    return True


class DeclinedError(click.Abort):
    """The operator answered no: nothing was done."""


def confirm(question: str) -> None:
    """Ask a question that is answered with yes or no. Raises `DeclinedError` for no, `UsageError` where no answer can
    come.
    """
    with _answered("--yes", "pass --yes, or --dry-run to look first"):
        if click.confirm(question, err=True):
            return
    raise DeclinedError


def ask(question: str, *, option: str, remedy: str, hidden: bool = False) -> str:
    """Ask for a text, which `option` takes, too; `hidden`: for a password, twice. Raises `UsageError` with the remedy
    where no answer can come.
    """
    with _answered(option, remedy):
        if hidden and not sys.stdin.isatty():  # it would be read from the controlling terminal
            raise click.Abort
        return str(click.prompt(question, hide_input=hidden, confirmation_prompt=hidden, err=True))


@contextmanager
def _answered(option: str, remedy: str) -> Iterator[None]:
    """Raise `UsageError` where a question ends without an answer, and there is no terminal to ask on."""
    try:
        yield
    except click.Abort:
        if sys.stdin.isatty():
            raise
        echo(err=True)  # the question has no line end
        raise UsageError("there is no terminal to ask on", where=option, remedy=remedy) from None


def print_event(event: Any) -> None:
    """Print one event of an operation on stderr."""
    if isinstance(event, Event):
        line = output.event_line(event)
        logging.getLogger(PROGRESS).info(line)
        echo(line, err=True)
