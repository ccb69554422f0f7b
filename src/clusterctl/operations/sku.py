"""SKU files made of a discovered machine, and limits proposed from healthy nodes."""

from __future__ import annotations

import re
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.site import contents
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku_proposal import SkuField, propose, sku_text
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.node import FiguresMeasured
from clusterctl.fleet.reporting.figures import figures
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl_burnin.limits.limit import VERSION, LimitKey, Limits
from clusterctl_burnin.limits.reading import LOWER, UPPER, hardware_of_shipped
from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS, keys_of, limit_keys

LEAST_NODES = 8
"""Fewer healthy nodes than this propose no figure."""
QUANTILE = 20
"""A proposal begins at the worst twentieth of the healthy values …"""
MARGIN = 0.05
"""… and leaves so much room below or above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSkuRequest:
    """`node`: a discovered machine; `name`: of the SKU, empty to name it after the machine's model."""

    node: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSkuResult:
    """The file that was written, and the fields that wait for a decision, each with its question."""

    name: str
    file: Path
    open: Mapping[str, str]


def new_sku(context: SiteContext, request: NewSkuRequest) -> NewSkuResult:
    """Write skus/NAME.yml of the site from what a node's BMC reported. Raises `UsageError` where the file exists."""
    node = context.node(request.node)
    if node.inventory is None:
        raise UsageError("no inventory of it is known", where=node.name, remedy="clusterctl discover first")
    name = request.name or _slug(f"{node.inventory.manufacturer} {node.inventory.model}")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name):
        raise UsageError(f"{name!r} is no name of a file", where="--name", remedy="use letters, digits, - and .")
    file = context.site.folder / "skus" / f"{name}.yml"
    if file.exists() or file.is_symlink():
        raise UsageError("the file exists", where=str(file), remedy="give another --name, or move the file away")
    fields = propose(name, node.inventory, hardware_of_shipped())
    origin = f"the inventory of {node.name} ({node.inventory.manufacturer} {node.inventory.model})"
    with disk_explained("the SKU cannot be written", file):
        file.parent.mkdir(exist_ok=True)
        write_whole(file, sku_text(fields, origin).encode(), mode=0o644, over=False)
    return NewSkuResult(name=name, file=file, open={one.name: one.decide for one in _undecided(fields)})


def _undecided(fields: Iterable[SkuField]) -> Sequence[SkuField]:
    return [one for one in fields if one.decide]


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:60] or "sku"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateRequest:
    """`sku`: its healthy nodes give the figures."""

    sku: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """One limit: `now` is its figure (None: open), `proposed` what healthy nodes support (None: see `why`)."""

    name: str
    unit: str
    now: float | None
    proposed: float | None
    nodes: int
    values: int
    worst: float | None = None
    median: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateResult:
    """`limits`: the name of the file that the SKU uses; `text`: a limits file that extends it by the proposals."""

    sku: str
    limits: str
    nodes: int
    figures: tuple[Calibrated, ...]
    text: str


def calibrate(context: SiteContext, request: CalibrateRequest) -> CalibrateResult:
    """Propose limits from the healthy nodes of a SKU. Changes nothing.

    Healthy is a node that is gold, or whose last burn-in was INCONCLUSIVE for open limits alone.

    No proposal is laxer than the figure that the limits file has: that one was published or decided.
    """
    skus = {sku.name: sku for sku in context.site.skus}
    if request.sku not in skus:
        remedy = f"its SKUs are {', '.join(skus)}"
        raise UsageError(f"the site has no SKU {request.sku!r}", where="SKU", remedy=remedy)
    sku = skus[request.sku]
    limits = contents.limits(context.site, sku.limits)
    measured = _measured(context, sku.name)
    keys = [key for key in limit_keys().values() if key.unit != VERSION and key.name.endswith((LOWER, UPPER))]
    found = tuple(_calibrated(key, limits, measured) for key in keys)
    return CalibrateResult(
        sku=sku.name,
        limits=sku.limits,
        nodes=len(measured.nodes),
        figures=found,
        text=_limits_text(sku.limits, sku.name, found, current_time().date()),
    )


def _measured(context: SiteContext, sku: str) -> _Measured:
    """Return what the healthy nodes of a SKU measured."""
    states = (context.journal.state(one.id) for one in context.nodes() if one.sku == sku)
    healthy = {node.id: node for node in states if _healthy(node)}
    events = context.journal.latest(Stream.NODE, Kind.FIGURES_MEASURED)
    figures = [
        (event.subject, figure.metric, figure.value)
        for event in events
        if event.subject in healthy and isinstance(event.payload, FiguresMeasured)
        for figure in event.payload.figures
    ]
    return _Measured(tuple(healthy.values()), tuple(figures))


def _healthy(node: NodeState) -> bool:
    """Return True for a gold node, and for one with a last burn-in that lacks nothing but figures to be judged by."""
    if node.stage is Stage.GOLD:
        return True
    report = node.reports.get(Step.BURNIN.value)
    bad = [one for one in report.findings if not one.verdict.admits] if report else []
    return bool(bad) and all(one.code is Code.NO_LIMIT for one in bad)


@dataclass(frozen=True, slots=True)
class _Measured:
    """What healthy nodes measured: their last reports, and their figures (node, metric, value)."""

    nodes: tuple[NodeState, ...]
    figures: tuple[tuple[str, str, float], ...]

    def values(self, key: LimitKey) -> list[tuple[str, float]]:
        """Return (node, value) of each healthy measurement that a limit judges.

        A check's figures count where the limit is the only one in its unit that the check judges by.
        """
        metric = key.name.removesuffix(LOWER).removesuffix(UPPER)
        found = [(node, value) for node, name, value in self.figures if name == metric]
        return found or self._reported(key)

    def _reported(self, key: LimitKey) -> list[tuple[str, float]]:
        """Return the healthy figures of the last reports."""
        checks = {name for name in (*CHECKS, *NODE_LOADS, *GROUP_LOADS) if _is_only_key(key, keys_of(name))}
        found = (one for one in figures(self.nodes) if one.check in checks and one.unit == key.unit)
        return [(value.node, value.value) for figure in found for value in figure.values if not value.bad]


def _is_only_key(key: LimitKey, keys: Collection[LimitKey]) -> bool:
    """Return whether `key` is one of `keys`, and the only one in its unit."""
    return [one for one in keys if one.unit == key.unit] == [key]


def _calibrated(key: LimitKey, limits: Limits, measured: _Measured) -> Calibrated:
    now = None if key.name in limits.open else limits[key.name].value
    values = measured.values(key)
    nodes, numbers = len({node for node, _ in values}), sorted(value for _, value in values)
    base = Calibrated(name=key.name, unit=key.unit, now=now, proposed=None, nodes=nodes, values=len(numbers))
    if not numbers:
        return replace(base, why="the journal has no figure of it")
    upper = key.name.endswith(UPPER)
    base = replace(base, worst=numbers[-1] if upper else numbers[0], median=statistics.median(numbers))
    if nodes < LEAST_NODES:
        return replace(base, why=f"{nodes} healthy nodes measured it; {LEAST_NODES} are needed")
    proposed = _proposal(numbers, upper=upper)
    if now is not None and (proposed >= now if upper else proposed <= now):
        return replace(base, why="the figure in force is at least as strict")
    return replace(base, proposed=proposed)


def _proposal(numbers: Sequence[float], *, upper: bool) -> float:
    """Return the limit that all but the worst of these figures meet with some margin, in three digits."""
    cuts = statistics.quantiles(numbers, n=QUANTILE, method="inclusive")
    proposed = cuts[-1] * (1 + MARGIN) if upper else cuts[0] * (1 - MARGIN)
    return float(f"{proposed:.3g}")


def _limits_text(base: str, sku: str, found: Iterable[Calibrated], day: date) -> str:
    """Return a limits file with the proposals only; empty where there is none."""
    proposed = [one for one in found if one.proposed is not None]
    if not proposed:
        return ""
    lines = [
        f"# Proposed from healthy nodes of {sku} on {day:%Y-%m-%d}. Save it as limits/{base}-calibrated.yml",
        f"# of the site, check each figure, then name the file in the SKU: limits: {base}-calibrated",
        "version: 1",
        f"name: {base}-calibrated",
        f"hardware: as {base}",
        f"extends: {base}",
        "limits:",
    ]
    for one in proposed:
        source = (
            f"the worst twentieth of {one.values} values of {one.nodes} healthy nodes on {day:%Y-%m-%d}, "
            f"with {MARGIN:.0%} of room (worst {one.worst:g}, median {one.median:g})"
        )
        lines += [
            f"  {one.name}:",
            f"    value: {one.proposed:g}",
            f'    unit: "{one.unit}"',
            f'    source: "{source}"',
        ]
    return "\n".join([*lines, "versions: {}", "methods: {}"]) + "\n"
