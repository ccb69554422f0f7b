"""Reading how machines stand to their SKUs' baselines, and telling it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import click

from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Stage
from clusterctl.fleet.settings.drift import not_right
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.adapters import Edges, Outside
from clusterctl.operations.context import Office
from clusterctl.operations.decisions import chosen
from clusterctl.ports import Deadline
from clusterctl.steps.settings.read_baseline import BaselineQuery, BaselineReader, BaselineReading
from clusterctl_cli.render_settings import check_json, check_text
from clusterctl_cli.stopping import stoppable


@dataclass(frozen=True, slots=True)
class Selection:
    """Whom to ask; `passed` by name why others are not, `unknown` those of them that should be; `skus` by node."""

    asked: tuple[BaselineQuery, ...]
    skus: Mapping[str, str]
    passed: Mapping[str, str] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()


def check(office: Office, patterns: Sequence[str], seconds: float, *, as_json: bool) -> int:
    """Ask, tell; the exit code."""
    selection = select(office, patterns)
    cancelled = threading.Event()
    with closing(Edges(office.site, read_only=True)) as outside, stoppable(cancelled):
        looked = look(office, outside, selection.asked, Deadline.after(seconds, cancelled))
    if as_json:
        click.echo(json.dumps(check_json(looked, selection.skus, selection.passed)))
    else:
        click.echo(check_text(looked, selection.skus, selection.passed))
    if cancelled.is_set():
        return CancelledError.exit_code
    measured = bool(looked) and not selection.unknown
    return 0 if measured and not any(one.error or not_right(one.drifts) for one in looked) else 1


def look(office: Office, outside: Outside, asked: Sequence[BaselineQuery], deadline: Deadline) -> list[BaselineReading]:
    """By name."""
    looker = BaselineReader(outside.bmcs, office.site.bmc_address, office.site.settings.batch.discover)
    return sorted(looker.look(asked, deadline), key=lambda one: one.name)


def select(office: Office, patterns: Sequence[str]) -> Selection:
    """The nodes that are meant, as far as it is known what they should be; `UsageError` where no SKU has a baseline."""
    skus = {sku.name: sku for sku in office.site.skus}
    if not any(sku.baseline for sku in skus.values()):
        raise UsageError(
            "none of the site's SKUs has a baseline",
            where=office.site.where("skus"),
            remedy="name one in its file, baseline: NAME, and write baselines/NAME.yml (docs/settings.md)",
        )
    names = set(chosen(office, patterns or ("*",)))
    nodes = [node for node in office.nodes() if node.name in names and node.stage is not Stage.RETIRED]
    passed = dict(_passed(office, nodes, skus))
    asked = []
    for node in nodes:
        baseline = skus[node.sku].baseline if node.sku in skus else None
        if node.name not in passed and node.serial is not None and baseline is not None:
            asked.append(BaselineQuery(node.name, node.serial, baseline))
    exempt = {node.name for node in nodes if node.sku in skus and skus[node.sku].baseline is None}
    return Selection(tuple(asked), {node.name: node.sku for node in nodes}, passed, frozenset(passed) - exempt)


def _passed(office: Office, nodes: Sequence[NodeSummary], skus: Mapping[str, Sku]) -> Iterator[tuple[str, str]]:
    """Node → why it is not asked."""
    listed = {node.name for node in office.site.nodes}
    for node in nodes:
        if node.name not in listed:
            yield node.name, "the sheet no longer names it"
        elif node.serial is None or not node.sku:
            yield node.name, f"it is not known what it is: clusterctl discover --limit {node.name} first"
        elif node.sku not in skus:
            yield node.name, f"the site no longer has its SKU {node.sku}"
        elif skus[node.sku].baseline is None:
            yield node.name, f"its SKU {node.sku} has no baseline"
