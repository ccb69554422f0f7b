"""Links of GPUs: `nvidia-smi nvlink --status` and `-e`, `nvidia-smi topo -m`, the version of the fabric manager.

`topo -m` separates columns by tabs and calls adapters NIC0, NIC1 …, with their names below the table (recorded on
8 x H100 in NVIDIA/nccl#1264; older drivers use the adapters' names as columns). `NV18`: 18 NVLinks, `PIX` one PCIe
bridge, `PXB` several, `PHB` the host bridge, `NODE` and `SYS` beyond it.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.plain_numbers import is_number

_GPU = re.compile(r"^GPU (?P<index>\d{1,18}): (?P<model>.+) \(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)$")
_LINK = re.compile(r"^\s+Link (?P<link>\d{1,18}): (?:(?P<rate>\d+(?:\.\d+)?) GB/s|<inactive>)$")
_INACTIVE = re.compile(r"all links are inactive", re.IGNORECASE)
_STATUS = "nvidia-smi nvlink --status"


@dataclass(frozen=True, slots=True)
class GpuLinks:
    """One GPU's NVLinks: rate in GB/s by link number, None where the link is inactive."""

    index: int
    uuid: str
    rates: tuple[float | None, ...]

    @property
    def active(self) -> tuple[float, ...]:
        return tuple(rate for rate in self.rates if rate is not None)


def parse_nvlink_status(text: str) -> tuple[GpuLinks, ...]:
    """Return the links of all GPUs. Raises `ParseError` that names the first line that is not understood."""
    gpus: list[tuple[int, str, list[float | None]]] = []
    for where, line in _lines(text, _STATUS):
        if gpu := _GPU.match(line):
            gpus.append((int(gpu["index"]), gpu["uuid"], []))
        elif gpus and (link := _LINK.match(line)):
            gpus[-1][2].append(_rate(link, len(gpus[-1][2]), where))
        elif not (gpus and _INACTIVE.search(line)):
            raise _not_understood(line, where)
    if not gpus:
        raise ParseError("no GPU in it", where=_STATUS)
    return tuple(GpuLinks(index, uuid, tuple(rates)) for index, uuid, rates in gpus)


def _lines(text: str, command: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, each with the command and its number."""
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield f"{command}:{number}", line


def _not_understood(line: str, where: str) -> ParseError:
    return ParseError(f"line not understood: {line.strip()[:100]!r}", where=where)


def _rate(link: re.Match[str], expected: int, where: str) -> float | None:
    if int(link["link"]) != expected:
        raise ParseError(f"link {link['link']} instead of link {expected}", where=where)
    return float(link["rate"]) if link["rate"] else None


class NvLinkError(enum.StrEnum):
    """An error counter of a link, by the name that nvidia-smi prints: the first three up to Hopper, the others since
    Blackwell. Blackwell's FEC histogram, raw errors and bit error rates are left out: they count on healthy links.
    """

    REPLAY = "Replay Errors"
    RECOVERY = "Recovery Errors"
    CRC = "CRC Errors"
    MALFORMED_PACKET = "Malformed packet Errors"
    BUFFER_OVERRUN = "Buffer overrun Errors"
    RX = "Rx Errors"
    RX_REMOTE = "Rx remote Errors"
    RX_GENERAL = "Rx General Errors"
    LOCAL_INTEGRITY = "Local link integrity Errors"
    TX_DISCARDS = "Tx discards"
    RECOVERY_SUCCESSFUL = "Link recovery successful events"
    RECOVERY_FAILED = "Link recovery failed events"
    EFFECTIVE = "Effective Errors"
    SYMBOL = "Symbol Errors"


@dataclass(frozen=True, slots=True)
class GpuLinkErrors:
    """One GPU's error counters, by link number; an inactive link has none."""

    index: int
    uuid: str
    links: Mapping[int, Mapping[NvLinkError, int]]


_COUNTER = re.compile(r"^\s+Link (?P<link>\d{1,18}): (?P<name>.+?): (?P<value>\S.*)$")
_INACTIVE_LINK = re.compile(r"^\s+Link \d+: <inactive>$")
_LINK_ERRORS = {error.value: error for error in NvLinkError}
_ERRORS = "nvidia-smi nvlink -e"


@functools.lru_cache(maxsize=4)
def parse_nvlink_errors(text: str) -> tuple[GpuLinkErrors, ...]:
    """Return the error counters of all GPUs.

    Raises `ParseError` for text that is not understood, and for a link without any known counter.
    """
    gpus: list[GpuLinkErrors] = []
    found: dict[int, dict[NvLinkError, int]] = {}
    for where, line in _lines(text, _ERRORS):
        if gpus and (counter := _COUNTER.match(line)):  # nearly every line
            link, name, value = counter.groups()
            _add_counter(found.setdefault(int(link), {}), name, value, where)
        elif gpu := _GPU.match(line):
            found = {}
            gpus.append(GpuLinkErrors(int(gpu["index"]), gpu["uuid"], found))
        elif not (gpus and (_INACTIVE_LINK.match(line) or _INACTIVE.search(line))):
            raise _not_understood(line, where)
    if not gpus:
        raise ParseError("no GPU in it", where=_ERRORS)
    _require_counters(gpus)
    return tuple(gpus)


def _add_counter(link: dict[NvLinkError, int], name: str, value: str, where: str) -> None:
    error = _LINK_ERRORS.get(name)
    if error is not None:
        link[error] = _count(value, where)


def _require_counters(gpus: Iterable[GpuLinkErrors]) -> None:
    for gpu in gpus:
        for link, counters in gpu.links.items():
            if not counters:
                raise ParseError(f"no known error counter of link {link} of GPU {gpu.index}", where=_ERRORS)


def _count(value: str, where: str) -> int:
    if not is_number(value, _COUNTER_DIGITS):
        raise ParseError(f"no count: {value[:40]!r}", where=where)
    return int(value)


_COUNTER_DIGITS = 20
"""Of a counter of 64 bits."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LEGEND = re.compile(r"^\s+(NIC\d+): (\S+)\s*$")
_PART = re.compile(r"^(?:GPU\d+|NIC\d+|mlx\d_\d+)$")
_WORD = re.compile(r"^(?:X|NV\d+|PIX|PXB|PHB|NODE|SYS)$")
_TOPOLOGY = "nvidia-smi topo -m"


@dataclass(frozen=True, slots=True)
class GpuTopology:
    """`gpus` as `GPU0`, `adapters` as `mlx5_0`; `links` by pair, in both orders."""

    gpus: tuple[str, ...]
    adapters: tuple[str, ...]
    links: Mapping[tuple[str, str], str]


def parse_gpu_topology(text: str) -> GpuTopology:
    """Return the table of `nvidia-smi topo -m`. Raises `ParseError` without a table, or for an unknown cell."""
    lines = [_COLOUR.sub("", line) for line in text.splitlines()]
    names = {match[1]: match[2] for line in lines if (match := _LEGEND.match(line))}
    head = _head(lines)
    parts = [names.get(cell, cell) for cell in _cells(lines[head]) if _PART.match(cell)]
    if not parts:
        raise ParseError("no table of GPUs in it", where=_TOPOLOGY)
    links: dict[tuple[str, str], str] = {}
    for number, line in enumerate(lines[head + 1 :], start=head + 2):
        name, *words = _cells(line) or [""]
        if _PART.match(name):
            _row(names.get(name, name), parts, words, links, number)
    return _topology(parts, links)


def _head(lines: Sequence[str]) -> int:
    """Return the place of the line that names the columns."""
    for place, line in enumerate(lines):
        if "GPU0" in line.split("\t") or "GPU0" in line.split()[:1]:
            return place
    raise ParseError("no table of GPUs in it", where=_TOPOLOGY)


def _topology(parts: Sequence[str], links: Mapping[tuple[str, str], str]) -> GpuTopology:
    missing = next((name for name in parts if (name, parts[0]) not in links), None)
    if missing is not None:
        raise ParseError(f"no row for {missing}", where=_TOPOLOGY)
    gpus = tuple(name for name in parts if name.startswith("GPU"))
    return GpuTopology(gpus, tuple(name for name in parts if name not in gpus), links)


def _cells(line: str) -> list[str]:
    """Return the cells that are not empty: the head begins with an empty one."""
    return [cell.strip() for cell in line.split("\t") if cell.strip()]


def _row(
    name: str, columns: Sequence[str], words: Sequence[str], links: dict[tuple[str, str], str], number: int
) -> None:
    if len(words) < len(columns):
        raise ParseError(f"the row of {name} has {len(words)} of {len(columns)} cells", where=f"{_TOPOLOGY}:{number}")
    for column, word in zip(columns, words, strict=False):
        if not _WORD.match(word):
            raise ParseError(f"{name} to {column} is not understood: {word[:20]!r}", where=f"{_TOPOLOGY}:{number}")
        links[name, column] = word


_VERSION = re.compile(r"version is\s*:\s*(\d+(?:\.\d+)+)\s*$", re.MULTILINE)


def parse_fabric_manager_version(text: str) -> str:
    """Return the version of `nv-fabricmanager --version`: `Fabric Manager version is : 550.127.08` (user guide)."""
    match = _VERSION.search(text)
    if match is None:
        raise ParseError(f"no version in it: {text.strip()[:100]!r}", where="nv-fabricmanager --version")
    return match[1]
