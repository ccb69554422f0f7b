"""Finds the lines of a log that a rule knows, at the speed of a search for their words.

A log of a gigabyte has millions of lines and some thousand that hold a word of a rule. Those are looked at by the
rules; lines that differ only in digits are looked at a few times, then counted.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from ahocorasick_rs import BytesAhoCorasick, Implementation

from clusterctl.fleet.blame import Role
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.job_lines import TimeReader, nccl_host, read_line
from clusterctl.jobs.evidence import Observation, Source
from clusterctl.jobs.kernel_lines import kernel_meaning, process_of
from clusterctl.jobs.line_rules import shipped_lines
from clusterctl.jobs.meaning import MAX_LINE, Meaning

EXCEPTION = "python_exception"
"""The rule of lines for exceptions of Python."""
_STANDARD = re.compile(r"/lib/python\d\.\d{1,2}/(?!site-packages/|dist-packages/)")
_FRAME = re.compile(r'\s*File "(?P<file>[^"]{1,300})", line \d{1,7}, in ')
MAX_KINDS = 20_000
"""Observations of one log, and kinds of lines that are remembered as unknown."""
_LOOKED_AT = 64
"""Lines of one kind that the rules look at: more are counted with the last."""
_SHOWN = 500
_LINES_BACK, _BYTES_BACK = 40, 16 * 1024
_DIGITS = bytes.maketrans(b"023456789", b"1" * 9)
_HEXADECIMAL = bytes.maketrans(b"023456789abcdef", b"1" * 15)
"""Kernel logs are full of addresses; as in `formats.host.kernel_log`."""
_CHANGING = frozenset({"iteration", "sequence", "operation", "timeout", "status", "enqueued", "completed"})
"""Parts in which lines of one kind may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """A log: its name as the operator knows it, and the host that wrote it (empty: several, or unknown).

    `since`: messages of a kernel from before it are not the job's; the first of a kind after it counts.
    """

    name: str
    host: str
    source: Source
    since: datetime | None = None


def scan(pieces: Iterable[tuple[int, bytes]], log: LogFile, times: TimeReader) -> tuple[Observation, ...]:
    """Return what the rules know of a log, the first line of each kind. `pieces`: offset and whole lines."""
    scanner = _Scanner(log, times)
    for offset, piece in pieces:
        scanner.read(offset, piece)
    return scanner.observations


class _Scanner:
    """Reads one log."""

    def __init__(self, log: LogFile, times: TimeReader) -> None:
        self._log = log
        self._clock = times
        self._meaning: Callable[[str], Meaning | None] = (
            kernel_meaning if log.source is Source.KERNEL else shipped_lines().meaning
        )
        self._found: dict[object, Observation] = {}
        self._times_of: Counter[object] = Counter()
        self._looked: dict[bytes, tuple[int, object]] = {}
        self._unknown = _unknown(log.source)

    @property
    def observations(self) -> tuple[Observation, ...]:
        return tuple(replace(one, times=self._times_of[key]) for key, one in self._found.items())

    def read(self, offset: int, piece: bytes) -> None:
        lines = _of_kinds(piece, self._unknown) if self._log.source is Source.KERNEL else _of_words(piece)
        for start, line, kind in lines:
            if kind in self._unknown:
                continue
            looked, last = self._looked.get(kind, (0, None))
            if last in self._found and looked >= self._enough(last):
                self._times_of[last] += 1
            else:
                self._look(kind, offset + start, line, functools.partial(_before, piece, start))

    def _look(self, kind: bytes, at: int, line: bytes, before: Callable[[], Iterator[str]]) -> None:
        text = line.decode(errors="replace")
        meaning = self._meaning(text)
        if meaning is None:
            if len(self._unknown) < MAX_KINDS:
                self._unknown.add(kind)
            return
        if meaning.rule == EXCEPTION and (frame := _frame(text, before())):
            meaning = replace(meaning, parts={**meaning.parts, "frame": frame})
        parsed = read_line(text)
        fixed = frozenset((name, value) for name, value in meaning.parts.items() if name not in _CHANGING)
        kind_of_error = (meaning.rule, meaning.meaning)  # `kernel_node` is the rule of many kinds
        key = (kind_of_error, parsed.rank, fixed, process_of(meaning.rule, text))
        self._looked[kind] = (self._looked.get(kind, (0, None))[0] + 1, key)
        if key not in self._found:
            at_time = self._time(text, before)
            if len(self._found) >= MAX_KINDS or self._is_before(at_time):
                return
            self._found[key] = Observation(
                source=self._log.source,
                text=visible_line(text.strip(), _SHOWN),
                meaning=meaning,
                host=self._log.host or nccl_host(parsed.text),
                rank=parsed.rank if self._log.source is Source.JOB else None,
                task=parsed.task if self._log.source is Source.JOB else None,
                at=at_time,
                place=f"{self._log.name} at byte {at}",
                position=(self._log.name, at),
            )
        self._times_of[key] += 1

    def _is_before(self, at: datetime | None) -> bool:
        return at is not None and self._log.since is not None and at < self._log.since

    def _enough(self, key: object) -> int:
        """Return how many lines of a kind are looked at: they may name several parts or ranks; of context, one."""
        return 1 if self._found[key].meaning.blame.role is Role.CONTEXT else _LOOKED_AT

    def _time(self, line: str, before: Callable[[], Iterator[str]]) -> datetime | None:
        """Return the time of a line, else that of the nearest line above it that has one."""
        if (found := self._clock.read(line)) is not None:
            return found
        return next((at for above in before() if (at := self._clock.read(above)) is not None), None)


def _frame(line: str, above: Iterator[str]) -> str:
    """Return the file of the frame that raised an exception: the nearest above its line, of the same rank.

    Frames of Python's standard library are left out: they do what the frame above them asks.
    """
    rank = read_line(line).rank
    for one in above:
        found = read_line(one[:MAX_LINE])
        if found.rank == rank and (match := _FRAME.match(found.text)) and not _STANDARD.search(match["file"]):
            return match["file"]
        if found.rank == rank and found.text.startswith("Traceback (most recent call last)"):
            break
    return ""


def _before(piece: bytes, start: int) -> Iterator[str]:
    """Yield the lines above an offset, the nearest first; of one that a progress bar has written over, the last."""
    above = piece[max(0, start - _BYTES_BACK) : start].split(b"\n")
    for line in list(reversed(above))[: _LINES_BACK + 1]:
        yield line.rstrip(b"\r").rpartition(b"\r")[2].decode(errors="replace")


def _of_words(piece: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield offset, text and kind of each line that holds a word; of a long line, the part around the first word.

    A carriage return ends a line, too: progress bars write over theirs.
    """
    done = -1
    for _, at, _end in _words().find_matches_as_indexes(piece):
        if at < done:
            continue
        start = piece.rfind(b"\n", 0, at) + 1
        start = max(start, piece.rfind(b"\r", start, at) + 1)
        end = piece.find(b"\n", at)
        done = end if end >= 0 else len(piece)
        written_over = piece.find(b"\r", at, done)
        done = written_over if written_over >= 0 else done
        shown = start if at - start < MAX_LINE // 2 else at - MAX_LINE // 2
        line = piece[shown : min(done, shown + MAX_LINE)]
        yield shown, line, line.translate(_DIGITS)


def _of_kinds(piece: bytes, unknown: set[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield offset, text and kind of each line of a kind that is not known to mean nothing.

    The words of the kernel's rules are in most lines of a kernel log, but it has few kinds of lines.
    """
    keys = piece.translate(_HEXADECIMAL).split(b"\n")
    if unknown.issuperset(keys):
        return
    at = 0
    for kind, line in zip(keys, piece.split(b"\n"), strict=True):
        if kind not in unknown:
            yield at, line[:MAX_LINE], kind
        at += len(line) + 1


@functools.cache
def _unknown(_source: Source) -> set[bytes]:
    """Return the kinds of lines that no rule knows, of all logs that this process has read: hosts log the same."""
    return set()


@functools.cache
def _words() -> BytesAhoCorasick:
    """Return the search for the words of all rules for logs of jobs."""
    words = sorted(shipped_lines().words)
    return BytesAhoCorasick([word.encode() for word in words], implementation=Implementation.DFA)
