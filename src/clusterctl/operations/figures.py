"""What metrics and pages need of one node, and its form in the record of figures (`edges/site/figure_record.py`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from clusterctl.edges.site.figure_record import Row
from clusterctl.fleet.node import Location, Serial, Stage
from clusterctl.fleet.quantity import Bound
from clusterctl.fleet.state import OperatorHold
from clusterctl.operations.expected_parts import ExpectedParts

WorstFigures = Mapping[tuple[str, str], tuple[float, Bound]]
FAMILIES = (
    "clusterctl_evidence_timestamp_seconds",
    "clusterctl_burnin_figure",
    "clusterctl_expected_parts",
    "clusterctl_expected_zpool",
)
"""Those with a sample for each node, in the order of their columns in the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFigures:
    """What the metrics need of one node.

    stopped    stage, step and code of what stopped it; None where nothing did
    acts       names of the acts in flight
    proven_at  when a gold node's last burn-in was recorded
    since      when it came to its stage
    worst      each check's worst figure and its limits, by check and unit
    bounds     the keys and limits of `worst` as text, which is the same for most nodes of a SKU (`bounds_text`)
    parts      slots, models and serials of its parts, for a search; no metric has them
    lines      the samples of the families that have a sample for each node, in the text format, by family: made once
               for each state of the node, since they are nearly all that an answer consists of
    expected   what the lines of the last two families were made of
    """

    name: str
    serial: Serial | None
    stage: Stage
    sku: str
    hold: OperatorHold | None
    stopped: tuple[str, str, str] | None
    acts: tuple[str, ...]
    proven_at: datetime | None
    worst: WorstFigures
    bounds: str
    lines: Mapping[str, str]
    since: datetime | None = None
    parts: str = ""
    address: str = ""
    location: Location = field(default_factory=Location)
    expected: str = ""


class KeptFigures(Mapping[tuple[str, str], tuple[float, Bound]]):
    """The worst figures of a node as they were kept; read when they are asked for, since most never are."""

    def __init__(self, bounds: str, figures: str) -> None:
        self._bounds, self._figures = bounds, figures
        self._found: WorstFigures | None = None

    def _read(self) -> WorstFigures:
        if self._found is None:
            pairs = zip(bounds_of(self._bounds), json.loads(self._figures), strict=True)
            self._found = {key: (value, bound) for (key, bound), value in pairs}
        return self._found

    def __getitem__(self, key: tuple[str, str]) -> tuple[float, Bound]:
        return self._read()[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def bounds_text(worst: WorstFigures) -> str:
    """Return check, unit and limits of each figure as JSON, in their order."""
    return json.dumps([[*key, bound.low, bound.high, bound.unit] for key, (_, bound) in worst.items()])


@lru_cache(maxsize=1024)
def bounds_of(text: str) -> tuple[tuple[tuple[str, str], Bound], ...]:
    """Return the keys and limits of such a text."""
    return tuple(((check, unit), Bound(low=low, high=high, unit=of)) for check, unit, low, high, of in json.loads(text))


def expected_text(parts: ExpectedParts) -> str:
    """Return a text that is the same for the same expected parts."""
    return json.dumps([sorted(parts.counts.items()), parts.zpools])


def to_row(node: NodeFigures, version: str) -> Row:
    """Return the figures as a row of the record; `version`: of the state that they were made of."""
    head = (
        *(node.name, node.serial, node.stage.value, node.sku, node.stopped, node.acts, node.parts, node.address),
        *(node.location.rack, node.location.unit, _text(node.proven_at), _text(node.since), _kept_hold(node.hold)),
    )
    figures = json.dumps([value for value, _ in node.worst.values()])
    return (version, node.expected, json.dumps(head), node.bounds, figures, *(node.lines[name] for name in FAMILIES))


def from_row(row: Row) -> NodeFigures:
    """Return the figures of a row. Raise `ValueError` or `TypeError` for one that `to_row` did not write."""
    _, expected, head, bounds, figures, *lines = row
    name, serial, stage, sku, stopped, acts, parts, address, rack, unit, proven_at, since, hold = json.loads(head)
    return NodeFigures(
        name=name,
        serial=serial,
        stage=Stage(stage),
        sku=sku,
        hold=None if hold is None else _hold(*hold),
        stopped=None if stopped is None else tuple(stopped),
        acts=tuple(acts),
        proven_at=_time(proven_at),
        since=_time(since),
        worst=KeptFigures(bounds, figures),
        bounds=bounds,
        parts=parts,
        address=address,
        location=Location(rack, unit),
        expected=expected,
        lines=dict(zip(FAMILIES, lines, strict=True)),
    )


def _kept_hold(hold: OperatorHold | None) -> Iterable[str | None] | None:
    return None if hold is None else (hold.reason, hold.by, _text(hold.at), _text(hold.until), hold.plan)


def _hold(reason: str, by: str, at: str, until: str | None, plan: str) -> OperatorHold:
    return OperatorHold(reason, by, datetime.fromisoformat(at), _time(until), plan)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
