"""`nvidia-smi topo -m`: how each GPU is connected to each other GPU and adapter.

Columns stand between tabs, adapters are called NIC0, NIC1 … and named below the table (recorded on 8 x H100 in
NVIDIA/nccl#1264; older drivers name the adapters in the table's head). Words: `NV18` so many NVLinks, `PIX` one PCIe
bridge, `PXB` several, `PHB` the host bridge, `NODE` and `SYS` beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LEGEND = re.compile(r"^\s+(NIC\d+): (\S+)\s*$")
_PART = re.compile(r"^(?:GPU\d+|NIC\d+|mlx\d_\d+)$")
_WORD = re.compile(r"^(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS)$")
_WHERE = "nvidia-smi topo -m"


@dataclass(frozen=True, slots=True)
class GpuTopology:
    """`gpus` as `GPU0`, `adapters` as `mlx5_0`; `links` by pair of them, both ways."""

    gpus: tuple[str, ...]
    adapters: tuple[str, ...]
    links: Mapping[tuple[str, str], str]


def parse_gpu_topology(text: str) -> GpuTopology:
    """Read the table; `ParseError` where it is none, or a cell of it is not understood."""
    lines = [_COLOUR.sub("", line) for line in text.splitlines()]
    legend = {match[1]: match[2] for line in lines if (match := _LEGEND.match(line))}
    head = next((at for at, line in enumerate(lines) if "GPU0" in line.split("\t") or "GPU0" in line.split()[:1]), None)
    columns = [name for name in _cells(lines[head]) if _PART.match(name)] if head is not None else []
    if head is None or not columns:
        raise ParseError("no table of GPUs in it", where=_WHERE)
    links: dict[tuple[str, str], str] = {}
    for number, line in enumerate(lines[head + 1 :], start=head + 2):
        name, *words = _cells(line) or [""]
        if _PART.match(name):
            _row(legend.get(name, name), [legend.get(c, c) for c in columns], words, links, number)
    parts = [legend.get(name, name) for name in columns]
    if missing := [name for name in parts if (name, parts[0]) not in links]:
        raise ParseError(f"no row for {missing[0]}", where=_WHERE)
    gpus = tuple(name for name in parts if name.startswith("GPU"))
    return GpuTopology(gpus, tuple(name for name in parts if name not in gpus), links)


def _cells(line: str) -> list[str]:
    """Without what is empty: the head begins with an empty cell."""
    return [cell.strip() for cell in line.split("\t") if cell.strip()]


def _row(
    name: str, columns: Sequence[str], words: Sequence[str], links: dict[tuple[str, str], str], number: int
) -> None:
    if len(words) < len(columns):
        raise ParseError(f"the row of {name} has {len(words)} of {len(columns)} cells", where=f"{_WHERE}:{number}")
    for column, word in zip(columns, words, strict=False):
        if not _WORD.match(word):
            raise ParseError(f"{name} to {column} is not understood: {word[:20]!r}", where=f"{_WHERE}:{number}")
        links[name, column] = word
