"""Excerpts of raw output for reports: the lines that show what failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from clusterctl.fleet.bmc.screen import kind_of

LINES = 14
WIDTH = 160
_AROUND = 2


def excerpt(content: bytes, part: Iterable[str], measured: Iterable[str] = (), about: str = "") -> str:
    """Return at most `LINES` lines of raw output: the first, the one that names the part, and those around the line
    with the measured value. Omitted lines show as `[… N lines]`; lines are cut at `WIDTH`.

    `part`, `measured`: words, the most specific first. The value is looked for behind the part's line, and before the
    next block of its kind: a line that begins as the part's line does. Of several lines with it, the one that has most
    words of `about`: the check's name and what it found.
    """
    if kind := kind_of(content):
        return f"(a {kind} picture of {len(content)} bytes: clusterctl nodes NODE --evidence DIGEST > FILE)"
    lines = content.decode(errors="replace").replace("\r", "").rstrip().split("\n")
    if len(lines) <= LINES:
        return "\n".join(map(_cut, lines))
    named = _line_with(lines, part, 1, len(lines))
    end = len(lines) if named is None else _end_of_block(lines, named)
    value = _line_of_value(lines[:end], measured, named or 1, about)
    hit = value if value is not None else named or 1
    start = min(max(1, hit - _AROUND), len(lines) - LINES + 1)
    end = start + LINES - 1
    kept = sorted({0, named or 0, *range(start, end)})
    shown = [_cut(lines[0])]
    for last, at in pairwise(kept):
        shown += [*_gap(at - last - 1), _cut(lines[at])]
    return "\n".join([*shown, *_gap(len(lines) - end)])


def _line_with(lines: Sequence[str], words: Iterable[str], start: int, end: int) -> int | None:
    """Return the first line of `lines[start:end]` with the first word that any of them has, in any letter case."""
    folded = [line.casefold() for line in lines[start:end]]
    wanted = [word.casefold() for word in words if len(word) > 2]
    return next((start + at for word in wanted for at, line in enumerate(folded) if word in line), None)


def _line_of_value(lines: Sequence[str], values: Iterable[str], start: int, about: str) -> int | None:
    """Return the line from `start` on with one of `values` as value: behind `:` or `=`, else a whole word.

    Of several the one that shares most words with `about`, then the first.
    """
    wanted = _words(about)
    for value in filter(None, values):
        word = rf"{re.escape(value)}(?!\w|\.\d)"
        for pattern in (rf"[:=]\s*{word}", rf"(?<![\w.]){word}"):
            found = [at for at in range(start, len(lines)) if re.search(pattern, lines[at], re.IGNORECASE)]
            if found:
                return max(found, key=lambda at: (len(wanted & _words(lines[at])), -at))
    return None


def _words(text: str) -> set[str]:
    """Return the words of a text in lower case, without the `s` of a plural."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{2,}", text.casefold())}


def _end_of_block(lines: Sequence[str], named: int) -> int:
    """Return the line behind the block that begins at `named`: where the same key of another part begins."""
    key = re.match(r"\s*[A-Za-z][\w /-]*", lines[named])
    if key is None:
        return len(lines)
    begins = re.compile(rf"{re.escape(key[0].rstrip())}\b")
    return next((at for at in range(named + 1, len(lines)) if begins.match(lines[at])), len(lines))


def _gap(count: int) -> list[str]:
    """Return the line that stands for omitted lines; nothing where none is omitted."""
    if not count:
        return []
    return [f"[… {count} lines]" if count != 1 else "[… 1 line]"]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


_DEVICE = re.compile(r'(?:Switch|Ca|Rt)\s*[0-9]+\s*"[^"]*"\s*#\s*"(?P<name>.*)"')
_END = re.compile(r"(?P<device>.+?)(?: port (?P<port>[0-9]+))?")
ADAPTER_PORTS = 2
"""An adapter's lines that are shown: it has one port, or two."""


def fabric_excerpt(content: bytes, ends: Sequence[str]) -> str:
    """Return the lines of `ibnetdiscover` output that show where the cables of `ends` lead; empty where there are none.

    `ends`: `node004 mlx5_0`, `leaf-1 port 4`. Each is shown by the line of its device and that of its port.
    """
    if not ends:
        return ""
    lines = content.decode(errors="replace").replace("\r", "").rstrip().split("\n")
    kept = sorted({at for end in ends for at in _lines_of_end(lines, end)})
    shown: list[str] = []
    for before, at in pairwise([-1, *kept]):
        shown += [*_gap(at - before - 1), _cut(lines[at])]
    return "\n".join([*shown, *_gap(len(lines) - kept[-1] - 1)]) if kept else ""


def _lines_of_end(lines: Sequence[str], end: str) -> Iterator[int]:
    """Yield the numbers of a device's line and of its port's line; nothing where one of them is not there."""
    parts = _END.fullmatch(end)
    if parts is None:
        return
    for at, line in enumerate(lines):
        found = _DEVICE.match(line)
        if found is None or not _is_named(found["name"], parts["device"]):
            continue
        wanted = _port_lines(lines, at + 1, parts["port"])
        yield from (at, *wanted) if wanted else ()


def _port_lines(lines: Sequence[str], begin: int, port: str | None) -> list[int]:
    """Return the numbers of a device's lines of this port; of its first ports where none is named."""
    end = next((number for number in range(begin, len(lines)) if not lines[number].startswith("[")), len(lines))
    ports = range(begin, end)
    if port is None:
        return list(ports)[:ADAPTER_PORTS]
    return [number for number in ports if lines[number].startswith(f"[{port}]")]


def _is_named(description: str, device: str) -> bool:
    """Return whether a node description is that of a device: `MF0;leaf-1:MQM9700/U1` is leaf-1."""
    names = {description, description.rpartition(";")[2].partition(":")[0]}
    return device.casefold() in {name.strip().casefold() for name in names}
