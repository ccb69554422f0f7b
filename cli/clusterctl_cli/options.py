"""Options that many commands share, and what they mean."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from clusterctl.fleet.durations import parse_duration
from clusterctl_cli.completion import complete_nodes, complete_selectors
from clusterctl_cli.formats import format_option
from clusterctl_cli.text import echo

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
MOST_NAME = 64
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def gathered(options: Callable[..., Any]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Return the decorator that gives all values of a command's parameters as one `options`, after the context.

    It stands next to the function. The fields of `options` have the names of the parameters.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def call(*context: click.Context, **values: object) -> T:
            return function(*context, options(**values))

        return call

    return decorate


def duration_seconds(_ctx: click.Context, _param: click.Parameter, value: str | None) -> float | None:
    """Return the seconds of a duration that is above zero; None for none. A callback of options."""
    if value is None:
        return None
    found = parse_duration(value)
    if not found:
        raise click.BadParameter(f"{value!r} is no duration: give one like 90s, 10min, 4h or 1d")
    return found.total_seconds()


site_option = click.option(
    "--site",
    "folder",
    type=click.Path(path_type=Path),
    envvar="CLUSTERCTL_SITE",
    default=Path(),
    show_default="the current directory",
    help="The site directory (or CLUSTERCTL_SITE).",
)
partner_option = click.option(
    "--partner",
    "partners",
    metavar="NODE",
    multiple=True,
    shell_complete=complete_nodes,
    help="A gold node that is idle and may be loaded to measure a few others with; repeatable.",
)
selector_option = click.option(
    "-l",
    "--selector",
    "selectors",
    metavar="KEY=VALUE,...",
    multiple=True,
    shell_complete=complete_selectors,
    help="Only nodes that meet it: stage=gold,rack=A01; also name, sku, verdict, serial, != and shell patterns.",
)
yes_option = click.option("--yes", is_flag=True, help="Do it without a question.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only preview; change nothing.")


detach_option = click.option(
    "--detach", is_flag=True, help="Run without this terminal: clusterctl runs lists, shows and cancels it."
)


def queue_options(function: F) -> F:
    """Add `--detach`, `--queue` and `--priority`: `queueing.Placement` reads them."""
    pool = "Have a worker of this pool do it, and follow it here; with --detach, only order it. auto: by reach."
    rank = "With --queue: before the pool's runs of a lower one."
    for option in (
        click.option("--priority", type=click.IntRange(-100, 100), default=0, show_default=True, help=rank),
        click.option("--queue", "pool", metavar="POOL", callback=_pool, default="", help=pool),
        detach_option,
    ):
        function = option(function)
    return function


def _pool(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    return pool_name(value) if value else ""


def pool_name(value: str) -> str:
    """Return the name of a pool or worker: letters, digits, `.`, `_` and `-`, up to 64."""
    if (
        not value
        or len(value) > MOST_NAME
        or not all(one.isascii() and (one.isalnum() or one in "._-") for one in value)
    ):
        raise click.BadParameter(f"{value!r} is no name: letters, digits, '.', '_' and '-', up to {MOST_NAME}")
    return value


def nodes_argument(function: F) -> F:
    """Add the names of nodes, and `-l`: `context.select_nodes` reads both."""
    return click.argument("nodes", metavar="NODE...", nargs=-1, shell_complete=complete_nodes)(
        selector_option(function)
    )


def optional_nodes_argument(function: F) -> F:
    """Add names of nodes that may be left out, and `-l`."""
    argument = click.argument("nodes", metavar="[NODE...]", nargs=-1, shell_complete=complete_nodes)
    return argument(selector_option(function))


def limit_option(function: F) -> F:
    """Add `--limit` and `-l`: `context.select_nodes` reads both."""
    return click.option(
        "--limit",
        metavar="PATTERN",
        multiple=True,
        shell_complete=complete_nodes,
        help="Only nodes with a matching name (shell pattern); repeatable.",
    )(selector_option(function))


def reason_option(what: str = "Why") -> Callable[[F], F]:
    """Return the required option `--reason`."""
    return click.option("--reason", required=True, help=f"{what}; kept in the node's history with your name.")


def decision_options(function: F) -> F:
    """Add the options of every command that changes something."""
    return site_option(_acting_options(function))


def step_options(function: F) -> F:
    """Add the options of every command that runs steps."""
    return site_option(limit_option(_acting_options(queue_options(function))))


def wave_options(function: F) -> F:
    """Add the options of every command that changes machines in waves."""
    from_pool = "Gold nodes, too: each is held just before its turn, and stays held."
    failures = "Begin the next wave with at most so many failed."
    for option in (
        click.option("--from-pool", is_flag=True, help=from_pool),
        click.option("--max-failures", type=click.IntRange(min=0), default=0, show_default=True, help=failures),
        click.option("--wave", type=click.IntRange(1, 64), default=4, show_default=True, help="Machines at a time."),
        reason_option(),
    ):
        function = option(function)
    return function


def _acting_options(function: F) -> F:
    for option in (format_option(), dry_run_option, yes_option):
        function = option(function)
    return function


def print_warnings(notices: Iterable[str]) -> None:
    """Print on stderr what is trusted without a proof: every run shows it."""
    for notice in notices:
        echo(f"warning: {notice}", err=True)
