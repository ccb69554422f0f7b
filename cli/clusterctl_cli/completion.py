"""Shell completion of nodes, selectors, parts, checks and suites; click completes commands and options by itself.

A shell asks the command: `eval "$(_CLUSTERCTL_COMPLETE=bash_source clusterctl)"`, likewise `zsh_source` and
`fish_source`. Where the site cannot be read, nothing is completed: the command itself prints the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext


@contextmanager
def _site(ctx: click.Context) -> Iterator[SiteContext | None]:
    """Yield the site of the command line; None where it cannot be read."""
    from clusterctl.fleet.errors import ClusterctlError
    from clusterctl.operations.context import open_site

    try:
        context = open_site(Path(ctx.params.get("folder") or Path()))
    except ClusterctlError:
        yield None
        return
    try:
        yield context
    finally:
        context.journal.close()


def complete_nodes(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names that begin with `incomplete`, each with its stage."""
    with _site(ctx) as context:
        nodes = context.nodes() if context else ()
    return [CompletionItem(node.name, help=node.stage.value) for node in nodes if node.name.startswith(incomplete)]


def complete_selectors(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return keys of selectors, and after `KEY=` the values of the site's nodes: stages, racks, SKUs."""
    from clusterctl.fleet.selectors import SELECTOR_KEYS

    before, comma, last = incomplete.rpartition(",")
    key, equals, value = last.partition("=")
    if not equals:
        return [CompletionItem(f"{before}{comma}{name}=") for name in SELECTOR_KEYS if name.startswith(key)]
    read = SELECTOR_KEYS.get(key.removesuffix("!"))
    with _site(ctx) as context:
        values = sorted({read(node) for node in context.nodes()}) if context and read else []
    return [CompletionItem(f"{before}{comma}{key}={item}") for item in values if item and item.startswith(value)]


def complete_runs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids of detached runs that begin with `incomplete`, each with its state."""
    from clusterctl.operations.runs import read

    with _site(ctx) as context:
        found = read(context) if context else ()
    return [CompletionItem(one.name, help=one.state.value) for one in found if one.name.startswith(incomplete)]


def complete_plans(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of plans that have begun, each with how far it came."""
    from clusterctl.operations.maintenance_status import every

    with _site(ctx) as context:
        found = every(context) if context else ()
    return [CompletionItem(one.name, help=one.line()) for one in found if one.name.startswith(incomplete)]


def complete_incidents(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids of open incidents that begin with `incomplete`, each with its cause."""
    from clusterctl.operations.incidents import listed

    with _site(ctx) as context:
        found = listed(context) if context else ()
    return [CompletionItem(one.state.id, help=one.facts.cause) for one in found if one.state.id.startswith(incomplete)]


def complete_parts(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the parts that the BMCs of the named nodes report, by slot; of all nodes where none is named yet."""
    from clusterctl.fleet.hardware.parts import fitted

    named = set(ctx.params.get("nodes") or ctx.args)  # of a command line that is not complete yet, click has args
    with _site(ctx) as context:
        states = context.journal.each_state() if context else iter(())
        slots = {part.slot for state in states if not named or state.name in named for part in fitted(state)}
    return _beginning(sorted(slots), incomplete)


def complete_checks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of checks and loads."""
    from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS

    return _beginning((*CHECKS, *NODE_LOADS, *GROUP_LOADS), incomplete)


def complete_suites(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of the shipped suites, and of the site's own."""
    from clusterctl_burnin.package_data import names_in

    folder = Path(ctx.params.get("folder") or Path()) / "suites"
    return _beginning(
        sorted({*names_in("suites", suffix=".yml"), *(file.stem for file in folder.glob("*.yml"))}), incomplete
    )


def _beginning(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
