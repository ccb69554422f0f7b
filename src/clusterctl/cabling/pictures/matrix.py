"""The measured pairs of nodes, as a square: rows send, columns receive."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.natural_order import natural_key

MOST_SINGLE = 48
"""More hosts than this are drawn together, so many in a row that no more squares than this are side by side."""
_SHADES = 4
_Positive = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Pair(BaseModel):
    """One measurement: `value` from `from` to `to`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    source: Annotated[str, Field(alias="from", min_length=1, max_length=200)]
    target: Annotated[str, Field(alias="to", min_length=1, max_length=200)]
    value: _Positive


class PairTrial(BaseModel):
    """`{"unit": "Gb/s", "at_least": 360, "pairs": [{"from": "node001", "to": "node002", "value": 391.2}]}`."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    unit: Annotated[str, Field(max_length=20)] = "Gb/s"
    at_least: _Positive
    pairs: Annotated[tuple[Pair, ...], Field(min_length=1, max_length=1_000_000)]


@dataclass(frozen=True, slots=True)
class Cell:
    """The slowest of `pairs` measurements; `shade` 0 (fastest) to 3 (slowest above the limit), `below` the limit."""

    row: int
    column: int
    slowest: float
    pairs: int
    shade: int
    below: bool
    description: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """`names` label rows and columns alike; `worst` are the pairs below the limit, the slowest first."""

    unit: str
    at_least: float
    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    worst: tuple[Pair, ...]
    measured: int


def read_trial(data: bytes, file: str) -> PairTrial:
    """Return the trial of a file. Raise `UsageError` that names the wrong field."""
    try:
        return PairTrial.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        remedy = 'give {"at_least": …, "pairs": [{"from": …, "to": …, "value": …}]}'
        raise UsageError(str(first["msg"]), where=f"{file} {field}".rstrip(), remedy=remedy) from error


def matrix(trial: PairTrial) -> Matrix:
    """Return the measured pairs as cells."""
    blocks = _blocks(trial)
    number = {host: row for row, block in enumerate(blocks) for host in block}
    names = tuple(block[0] if len(block) == 1 else f"{block[0]} – {block[-1]}" for block in blocks)
    values: dict[tuple[int, int], list[float]] = {}
    for pair in trial.pairs:
        values.setdefault((number[pair.source], number[pair.target]), []).append(pair.value)
    top = max(pair.value for pair in trial.pairs)
    cells = tuple(_cell(key, values[key], trial, top, names) for key in sorted(values))
    worst = sorted((pair for pair in trial.pairs if pair.value < trial.at_least), key=lambda pair: pair.value)
    return Matrix(trial.unit, trial.at_least, names, cells, tuple(worst), len(trial.pairs))


def _blocks(trial: PairTrial) -> list[list[str]]:
    """Return the hosts of each row and column: one, or several neighbours where there are too many hosts."""
    hosts = sorted({name for pair in trial.pairs for name in (pair.source, pair.target)}, key=natural_key)
    size = -(-len(hosts) // MOST_SINGLE)
    return [hosts[start : start + size] for start in range(0, len(hosts), size)]


def _cell(key: tuple[int, int], values: Iterable[float], trial: PairTrial, top: float, names: tuple[str, ...]) -> Cell:
    row, column = key
    found = tuple(values)
    slowest = min(found)
    room = max(top - trial.at_least, 1e-9)
    shade = min(_SHADES - 1, max(0, int(_SHADES * (top - slowest) / room)))
    description = f"{names[row]} → {names[column]}: {slowest:g} {trial.unit}" + (
        f", the slowest of {len(found)}" if len(found) > 1 else ""
    )
    return Cell(row, column, slowest, len(found), shade, slowest < trial.at_least, description)
