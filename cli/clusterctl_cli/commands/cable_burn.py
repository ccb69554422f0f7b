"""`clusterctl cable burn`: free hosts load every link in both directions; each link is judged by its counters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import (
    dry_run_option,
    duration_seconds,
    optional_nodes_argument,
    site_option,
    yes_option,
)
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.cabling.health.findings import HealthFinding
    from clusterctl.fleet.fabric.wiring import PortName
    from clusterctl.operations.burn_work import BurnWork
    from clusterctl.operations.cable_burn import CableBurnResult

_NAMED = 5
"""Unproven directions that are printed."""


@click.command("burn")
@optional_nodes_argument
@click.option(
    "--rail", "rails", type=click.IntRange(min=0), multiple=True, help="Only adapters of this rail; repeatable."
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="fabric (the default), rail:N, leaf:NAME, link:SWITCH:PORT, or nodes; repeatable, several with commas.",
)
@click.option(
    "--stage",
    callback=duration_seconds,
    metavar="SPAN",
    default="10min",
    show_default=True,
    help="How long each stage runs; ten times as long at most where a reading of the counters is slow.",
)
@click.option(
    "--for", "for_s", callback=duration_seconds, metavar="SPAN", help="Load all links again and again; else once each."
)
@click.option("--adaptive", is_flag=True, help="The switches route adaptively.")
@click.option("--limits", default="", show_default="the site's", help="Fabric limits by name, or a file of your own.")
@yes_option
@dry_run_option
@site_option
@format_option(*DOCUMENTS)
def burn(folder: Path, *, yes: bool, dry_run: bool, as_json: bool, **options: Any) -> int:
    """Write from host to host at line rate until every link was loaded in both directions, and judge each link.

    All hosts take part that are configured and that no job uses; names choose others. The scheduler keeps jobs off
    gold nodes meanwhile. A burn that was killed goes on with the links that it has not loaded.

    --scope rail:N loads and judges the links that adapters of this rail can load, --scope leaf:NAME the links of this
    switch, --scope link:SWITCH:PORT one link from the hosts whose packets cross it, --scope NODE the links that these
    nodes can load.

    The JSON is that of `cable health`, and what the burn adds: `cable disable --from` reads it.

    Exit code 0: every direction of every link was loaded and is healthy; 1: some are not, or were not loaded.
    """
    from clusterctl.operations import cable_burn as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, observed, print_event
    from clusterctl_cli.context import open_context, select_nodes

    context = open_context(folder)
    scope = parsed_scope(options["scopes"])
    options["nodes"] = (*options["nodes"], *scope.nodes)
    request = operation.CableBurnRequest(
        nodes=select_nodes(context, options),
        rails=(*options["rails"], *scope.rails),
        leaves=scope.leaves,
        links=scope.links,
        stage_s=round(options["stage"]),
        for_s=options["for_s"],
        adaptive=options["adaptive"],
        limits=options["limits"],
    )
    preview = operation.preview(context, request)
    if not approve(preview, Flags(yes=yes, dry_run=dry_run)):
        return 0
    with observed(context) as (log, cancelled):
        result = operation.run(context, request, Control(preview.digest, print_event, cancelled))
    if as_json:
        _print_document(result)
    else:
        _print(result)
    log.print_path(result.exit_code)
    return result.exit_code


@dataclass(frozen=True, slots=True)
class ScopeNames:
    """What `--scope` names."""

    rails: tuple[int, ...] = ()
    leaves: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


_EXAMPLES = {
    "rail": "rail:0 or rail:0,1",
    "leaf": "leaf:leaf-1 or leaf:leaf-1,leaf-2",
    "link": "link:leaf-1:33 or link:leaf-1:33,leaf-2:34",
}


def parsed_scope(scopes: Iterable[str]) -> ScopeNames:
    """Return what the values of `--scope` name. Raises `UsageError`."""
    rails: list[int] = []
    leaves: list[str] = []
    nodes: list[str] = []
    links: list[str] = []
    for scope in scopes:
        kind, colon, names = scope.partition(":")
        listed = [name.strip() for name in names.split(",")] if colon else []
        if kind in _EXAMPLES and not all(map(_is_port if kind == "link" else bool, listed or [""])):
            remedy = f"as in --scope {_EXAMPLES[kind]}"
            raise UsageError(f"which {kind} is missing", where=f"--scope {scope}", remedy=remedy)
        if kind == "rail":
            rails += _numbers(listed, scope)
        elif kind == "leaf":
            leaves += listed
        elif kind == "link":
            links += listed
        elif scope != "fabric":
            nodes.append(scope)
    if "fabric" in scopes and len(tuple(scopes)) > 1:
        raise UsageError("fabric is all there is", where="--scope", remedy="leave the other scopes out, or fabric")
    return ScopeNames(tuple(rails), tuple(leaves), tuple(nodes), tuple(links))


def _is_port(name: str) -> bool:
    device, colon, port = name.rpartition(":")
    return bool(device and colon and port)


def _numbers(names: Iterable[str], scope: str) -> list[int]:
    if not all(name.isascii() and name.isdigit() for name in names):
        raise UsageError("a rail is a number from 0 on", where=f"--scope {scope}", remedy="as in --scope rail:0")
    return [int(name) for name in names]


def _print_document(result: CableBurnResult) -> None:
    from clusterctl_cli.commands.cable_health import health_document
    from clusterctl_cli.formats import print_document

    found = result.report
    burned = {
        "hosts": list(result.hosts),
        "skipped": dict(result.skipped),
        "stages": result.stages,
        "stopped": result.stopped,
        "stuck": dict(result.stuck),
        "directions": len(found.directions) if found else 0,
        "loaded": found.loaded if found else 0,
        "at_goal": found.at_goal if found else 0,
        "goal": result.goal,
        "unproven": [
            {"from": _port_as_json(one.source), "to": _port_as_json(one.target), "reason": one.reason}
            for one in (found.unproven if found else ())
        ],
    }
    if result.work is not None:
        burned["work"] = _work_as_json(result.work)
    print_document(burned | (health_document(found.health) if found else {"verdict": "inconclusive", "findings": []}))


def _work_as_json(work: BurnWork) -> dict[str, object]:
    named = {kind: [list(one.subjects) for one in findings] for kind, findings in _by_kind(work).items()}
    return {
        "budget": work.budget,
        "out": work.out,
        "disable": [dict(one) for one in work.disable],
        "kept": dict(work.kept),
        **named,
    }


def _by_kind(work: BurnWork) -> dict[str, tuple[HealthFinding, ...]]:
    return {"clean": work.clean, "replace": work.replace, "check": work.check, "watch": work.watch}


def _print_work(work: BurnWork) -> None:
    """Print a line for each kind of work; findings above have the details."""
    from clusterctl.cabling.labels import shortened

    if work.disable:
        links = shortened(f"{one['port']} – {one['peer']}" for one in work.disable)
        echo(f"to disable ({work.out} of {work.budget} are out; cable disable --from): {links}")
    for link, reason in list(work.kept.items())[:_NAMED]:
        echo(f"stays in use: {link}: {reason}")
    for kind, findings in _by_kind(work).items():
        if findings:
            echo(f"to {kind}: {shortened(' – '.join(one.subjects) for one in findings)}")


def _port_as_json(port: PortName) -> dict[str, str]:
    return {"device": port.device, "port": port.port}


def _print(result: CableBurnResult) -> None:
    from clusterctl_cli.commands.cable_health import print_health

    found = result.report
    for name, reason in result.skipped.items():
        echo(f"left out: {name}: {reason}")
    if found is None:
        echo("no stage came to its end: no link was measured")
    else:
        print_health(found.health)
        total = len(found.directions)
        echo(
            f"{found.loaded} of {total} directions were loaded, {found.at_goal} reached {result.goal:g} % of their "
            f"rate; {len(result.hosts)} hosts, {result.stages} stages"
        )
        for one in found.unproven[:_NAMED]:
            echo(f"not proven: {one.source} → {one.target}: {one.reason}")
        if found.unproven[_NAMED:]:
            echo(f"not proven: {len(found.unproven) - _NAMED} more directions; --json has all of them")
    if result.work is not None:
        _print_work(result.work)
    for name, reason in result.stuck.items():
        echo(f"still without jobs: {name}: {reason}")
    if result.stopped:
        echo(f"stopped: {result.stopped}")
