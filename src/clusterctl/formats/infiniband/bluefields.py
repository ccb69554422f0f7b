"""The document of the node's built-in `bluefields`: BlueField cards, with the rows of mlxconfig that give the mode.

Rows as of `mlxconfig -e query` (mstflint 4.21 and later): name, default, current, next boot, a star before what
differs; without `-e`, or of older tools, the next boot alone. Modes by NVIDIA's page "BlueField Modes of Operation":

| INTERNAL_CPU_MODEL | INTERNAL_CPU_OFFLOAD_ENGINE | mode |
|---|---|---|
| SEPARATED_HOST(0) | any | separated: host and Arm cores have a network function each (BlueField and BlueField-2) |
| EMBEDDED_CPU(1), or not listed | ENABLED(0) | dpu: the Arm cores own the network function |
| EMBEDDED_CPU(1), or not listed | DISABLED(1) | nic: the host owns it |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.plain_numbers import is_number
from clusterctl.formats.documents import read_document

_WHERE = "bluefields"
_SPEED = re.compile(r"(\d{1,3}(?:\.\d)?) GT/s(?: PCIe)?")
_NUMBER = re.compile(r"\w{1,40}\((\d{1,3})\)")
_COLUMNS = ("Default", "Current", "Next Boot")
_MODEL, _ENGINE = "INTERNAL_CPU_MODEL", "INTERNAL_CPU_OFFLOAD_ENGINE"


@dataclass(frozen=True, slots=True)
class PcieLink:
    """`speed` in GT/s per lane, `width` in lanes."""

    speed: float
    width: int

    def __str__(self) -> str:
        return f"{self.speed:g} GT/s ×{self.width}"


@dataclass(frozen=True, slots=True)
class BlueField:
    """A card. `address`: of its PCI function 0. None: not reported.

    mode, next_mode  `nic`, `dpu` or `separated`: now, and after the next power cycle
    error            what the tool printed where the settings could not be read
    link, full_link  as the PCIe link runs, and as the card could
    """

    address: str
    model: str
    firmware: str | None
    mode: str | None
    next_mode: str | None
    error: str
    link: PcieLink | None
    full_link: PcieLink | None


@dataclass(frozen=True, slots=True)
class _Card:
    address: str
    model: str
    firmware: str | None
    speed: str | None
    width: str | None
    max_speed: str | None
    max_width: str | None
    settings: tuple[str, ...]
    error: str


@dataclass(frozen=True, slots=True)
class _Document:
    cards: tuple[_Card, ...]


def parse_bluefields(text: str) -> tuple[BlueField, ...]:
    """Return the cards. A row with another number of columns gives no mode. Raises `ParseError` for
    another document.
    """
    return tuple(_card(one) for one in read_document(_Document, text, _WHERE).cards)


def _card(card: _Card) -> BlueField:
    now, later = _modes(card.settings)
    return BlueField(
        address=card.address,
        model=card.model,
        firmware=card.firmware,
        mode=now,
        next_mode=later,
        error=card.error,
        link=_link(card.speed, card.width),
        full_link=_link(card.max_speed, card.max_width),
    )


def _link(speed: str | None, width: str | None) -> PcieLink | None:
    """Return None for a link that is down or that the kernel does not know (`Unknown`, width 0 or 255)."""
    found = _SPEED.fullmatch(speed or "")
    if found is None or not is_number(width or "") or not 0 < int(width or 0) <= 32:
        return None
    return PcieLink(float(found[1]), int(width or 0))


def _modes(rows: Sequence[str]) -> tuple[str | None, str | None]:
    """Return the mode now, and that of the next boot; None where the rows do not give it."""
    head = next((row for row in rows if "Configurations:" in row), "")
    columns = [name for name in _COLUMNS if name in head]
    values = {name: _values(rows, name, columns) for name in (_MODEL, _ENGINE)}
    return _mode(values, "Current"), _mode(values, "Next Boot")


def _values(rows: Sequence[str], name: str, columns: Sequence[str]) -> dict[str, int]:
    for row in rows:
        first, *words = row.replace("*", " ").split() or [""]
        if first == name:
            numbers = [_NUMBER.fullmatch(word) for word in words]
            if len(numbers) == len(columns):
                return {column: int(found[1]) for column, found in zip(columns, numbers, strict=True) if found}
    return {}


def _mode(values: dict[str, dict[str, int]], column: str) -> str | None:
    model, engine = values[_MODEL].get(column), values[_ENGINE].get(column)
    if model == 0:
        return "separated"
    if engine is None or model not in (1, None):
        return None
    return {0: "dpu", 1: "nic"}.get(engine)
