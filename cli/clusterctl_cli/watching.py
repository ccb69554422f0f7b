"""`--watch`: print a state again as it changes, until Ctrl-C or its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.formats import asked
from clusterctl_cli.text import echo, echo_rendered

F = TypeVar("F", bound=Callable[..., Any])

EVERY_S = 2.0
INTERRUPTED = 130


def watch_option(function: F) -> F:
    """Add `--watch`."""
    return click.option("--watch", "watching", is_flag=True, help="Print again as it changes, until Ctrl-C.")(function)


@dataclass(frozen=True, slots=True)
class View:
    """One view of a state: its text, and `state`, which is equal as long as nothing has changed.

    end  the exit code, where this is the last view
    """

    text: str
    state: object
    end: int | None = None


def watch(look: Callable[[], View], every_s: float = EVERY_S) -> int:
    """Show what `look` returns again and again; return the exit code.

    A terminal is redrawn, so that ages stay right; elsewhere the text is printed once per change, below the time.
    """
    if not asked().text:
        raise UsageError("it shows a table", where="--watch", remedy=f"leave out --watch, or -o {asked().value}")
    terminal, before = sys.stdout.isatty(), None
    try:
        while True:
            view = look()
            if terminal:
                click.clear()
            if terminal or view.state != before:
                echo(time.strftime("%H:%M:%S"))
                echo_rendered(view.text)
            before = view.state
            if view.end is not None:
                return view.end
            time.sleep(every_s)
    except KeyboardInterrupt:
        return INTERRUPTED
