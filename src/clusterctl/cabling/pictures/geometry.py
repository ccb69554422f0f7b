"""Where the picture puts what: tiles of devices in bands, and curves between them. In units of the SVG, near pixels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from clusterctl.cabling.pictures.marks import Mark, MarkKind
from clusterctl.cabling.pictures.tiers import Band, Group, State, SwitchTile

WIDTH = 1160
TILE, _STEP = 16, 19
_LABEL, _LABEL_EM = 15, 6.4
_GAP, _BAND_HEAD, _BAND_GAP = 12, 24, 26
_COLUMNS = 16
_LONGEST_LABEL = 40
_ROWS = 12
"""Rows that a large group may have next to others."""
_MOST_CURVES = 160
_ORDER = {kind: place for place, kind in enumerate(MarkKind)}


@dataclass(frozen=True, slots=True)
class PlacedTile:
    tile: SwitchTile
    x: float
    y: float

    @property
    def centre(self) -> tuple[float, float]:
        return self.x + TILE / 2, self.y + TILE / 2


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """`x`, `y` are the start of the text's base line."""

    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Curve:
    """All links of one kind between two devices: `path` is SVG's `d`; `echo`: missing since one of them is absent."""

    kind: MarkKind
    path: str
    description: str
    echo: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """`hidden` counts the curves that are not drawn: too many to be distinguished."""

    width: int
    height: float
    bands: tuple[PlacedLabel, ...]
    racks: tuple[PlacedLabel, ...]
    tiles: tuple[PlacedTile, ...]
    curves: tuple[Curve, ...]
    hidden: int


def draw(rows: Sequence[Band], found: Iterable[Mark]) -> Chart:
    """Return the chart: bands from top to bottom, racks next to each other in as many lines as it takes."""
    y = 0.0
    heads: list[PlacedLabel] = []
    racks: list[PlacedLabel] = []
    tiles: list[PlacedTile] = []
    for row in rows:
        heads.append(PlacedLabel(f"{row.name.capitalize()} ({len(row.tiles)})", 0, y + 16))
        y = _place_band(row, y + _BAND_HEAD, racks, tiles) + _BAND_GAP
    curves, hidden = _curves(tiles, found)
    return Chart(WIDTH, y, tuple(heads), tuple(racks), tuple(tiles), curves, hidden)


def _place_band(row: Band, y: float, racks: list[PlacedLabel], tiles: list[PlacedTile]) -> float:
    """Return the end of the band."""
    x, height = 0.0, 0.0
    for group in row.groups:
        most = max(_COLUMNS, len(group.tiles) // _ROWS) if len(row.groups) > 1 else WIDTH // _STEP
        columns = min(len(group.tiles), most, WIDTH // _STEP)
        width = max(columns * _STEP, len(_shortened(group.name)) * _LABEL_EM)
        if x and x + width > WIDTH:
            x, y, height = 0.0, y + height + _GAP, 0.0
        _place_group(group, columns, (x, y), racks, tiles)
        height = max(height, _LABEL + -(-len(group.tiles) // columns) * _STEP)
        x += width + _GAP
    return y + height


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…"


def _place_group(
    group: Group, columns: int, at: tuple[float, float], racks: list[PlacedLabel], tiles: list[PlacedTile]
) -> None:
    x, y = at
    racks.append(PlacedLabel(_shortened(group.name), x, y + 10))
    for number, tile in enumerate(group.tiles):
        line, column = divmod(number, columns)
        tiles.append(PlacedTile(tile, x + column * _STEP, y + _LABEL + line * _STEP))


def _curves(tiles: Iterable[PlacedTile], found: Iterable[Mark]) -> tuple[tuple[Curve, ...], int]:
    """Return the curves, the worst first, and the number of those that are not drawn.

    Links between two absent devices are left out: their tiles show it. A device that counters name otherwise than the
    plan has no tile: its links are not drawn.
    """
    at = {placed.tile.device: placed for placed in tiles}
    pairs: Counter[tuple[MarkKind, str, str]] = Counter()
    unplaced: set[tuple[str, str]] = set()
    for mark in found:
        a, b = sorted((mark.a.device, mark.b.device))
        if a not in at or b not in at:
            unplaced.add((a, b))
        elif not at[a].tile.state is at[b].tile.state is State.ABSENT:
            pairs[mark.kind, a, b] += 1
    ordered = sorted(pairs, key=lambda key: (_ORDER[key[0]], key))
    drawn = ordered[:_MOST_CURVES]
    curves = tuple(_curve(kind, at[a], at[b], pairs[kind, a, b]) for kind, a, b in drawn)
    return curves, len(ordered) - len(drawn) + len(unplaced)


def _curve(kind: MarkKind, a: PlacedTile, b: PlacedTile, links: int) -> Curve:
    echo = kind is MarkKind.MISSING and State.ABSENT in (a.tile.state, b.tile.state)
    return Curve(kind, _path(a, b), f"{links} × {kind.value}: {a.tile.device} – {b.tile.device}", echo)


def _path(a: PlacedTile, b: PlacedTile) -> str:
    """Return the line: upright at its ends between bands, an arch within one."""
    (x1, y1), (x2, y2) = a.centre, b.centre
    if abs(y1 - y2) < _BAND_HEAD:
        rise = min(y1, y2) - _BAND_HEAD - abs(x1 - x2) / 8
        return f"M{x1:.0f} {y1:.0f}C{x1:.0f} {rise:.0f} {x2:.0f} {rise:.0f} {x2:.0f} {y2:.0f}"
    middle = (y1 + y2) / 2
    return f"M{x1:.0f} {y1:.0f}C{x1:.0f} {middle:.0f} {x2:.0f} {middle:.0f} {x2:.0f} {y2:.0f}"
