"""The lines of raw output that a finding is about, few enough to be read. Pure."""

from __future__ import annotations

from collections.abc import Iterable

LINES = 14
WIDTH = 160
_AROUND = 2


def excerpt(content: bytes, words: Iterable[str]) -> str:
    """At most `LINES` lines: its first, and those round the one that names a word of `words` (the first word that any
    line names), else the next ones. What is left out shows as `[… N lines]`; lines are cut at `WIDTH`.
    """
    lines = content.decode(errors="replace").replace("\r", "").rstrip().split("\n")
    if len(lines) <= LINES:
        return "\n".join(map(_cut, lines))
    folded = [line.casefold() for line in lines]
    wanted = [word.casefold() for word in words if len(word) > 2]
    hit = next((at for word in wanted for at, line in enumerate(folded) if at and word in line), 1)
    start = min(max(1, hit - _AROUND), len(lines) - LINES + 1)
    end = start + LINES - 1
    before, after = start - 1, len(lines) - end
    shown = [_cut(lines[0]), *([_gap(before)] if before else []), *map(_cut, lines[start:end])]
    return "\n".join([*shown, *([_gap(after)] if after else [])])


def _gap(count: int) -> str:
    return f"[… {count} lines]" if count != 1 else "[… 1 line]"


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
