"""The kernel log as `dmesg -T -x` prints it, sorted into kinds of lines before any line is looked at closely.

Lines of a kind differ in digits, decimal or hexadecimal, and in nothing else. A log has a hundred thousand lines and
some hundred kinds: whoever asks a question of each kind, and of the lines of the few kinds that matter, is ten times as
fast as line by line. (Words that differ in letters from a to f alone, like `added` and `faded`, are taken for one.)
Layout of a line: dmesg(1) of util-linux, `--decode` and `--ctime`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.dmesg import STAMPED, Message, parse_dmesg

_DIGITS = bytes.maketrans(b"023456789abcdef", b"1" * 15)
_ONES = str.maketrans("023456789", "1" * 9)
_STAMPED = re.compile(STAMPED)
_PIECE = 32 * 1024
"""Bytes that are split at once: what is made of them stays in the processor's cache, and a line of a rare kind is
looked for in this much text only.
"""
_WITHIN = "\x1f"
"""Stands for the end of a line within a message."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Lines alike but for their digits; `message` is one of them."""

    message: Message
    key: bytes

    @property
    def ones(self) -> str:
        """Its text with each decimal digit a one: `0 errors` is of one kind with `3 errors`, which is some."""
        return self.message.text.translate(_ONES)


@dataclass(frozen=True, slots=True)
class _Index:
    """One line of each kind, and in which pieces of the text (by where they begin) there are lines of it."""

    samples: Mapping[bytes, bytes]
    places: Mapping[bytes, Collection[int]]

    def of(self, keys: Collection[bytes]) -> list[int]:
        return sorted({at for key in keys for at in self.places[key]})


@dataclass(frozen=True, slots=True)
class KernelLog:
    kinds: tuple[Kind, ...]
    _text: bytes
    _index: _Index

    def counts(self, kinds: Collection[Kind]) -> Mapping[Kind, int]:
        """How many messages there are of each of these kinds."""
        wanted = {kind.key for kind in kinds}
        pieces = (_keyed(_piece(self._text, at)) for at in self._index.of(wanted))
        found = Counter(key for keys in pieces for key in keys if key in wanted)
        return {kind: found[kind.key] for kind in kinds}

    def messages(self, wanted: Callable[[str], bool]) -> tuple[Message, ...]:
        """Every message of the kinds whose text is `wanted`, as it stands or with ones for digits; in order."""
        chosen = {kind.key for kind in self.kinds if wanted(kind.message.text) or wanted(kind.ones)}
        lines: list[bytes] = []
        for at in self._index.of(chosen):
            piece = _piece(self._text, at)
            lines += [line for line, key in zip(piece.split(b"\n"), _keyed(piece), strict=True) if key in chosen]
        return _parsed(b"\n".join(lines)) if lines else ()


def read_kernel_log(text: str) -> KernelLog:
    """Read the log; a line without a stamp belongs to the message before. `ParseError` when no line has one."""
    data = text.encode()
    index = _indexed(data)
    if not all(_STAMPED.match(line.decode()) for line in index.samples.values()):
        data = _joined(text).encode()
        index = _indexed(data)
    if not index.samples:
        raise ParseError("no kernel message in it", where="dmesg")
    return KernelLog(tuple(Kind(_parsed(line)[0], key) for key, line in index.samples.items()), data, index)


def _indexed(text: bytes) -> _Index:
    samples: dict[bytes, bytes] = {}
    places: dict[bytes, list[int]] = {b"": []}
    for at in _beginnings(text):
        piece = _piece(text, at)
        keys = _keyed(piece)
        kinds = set(keys)
        if not places.keys() >= kinds:
            lines = dict(zip(keys, piece.split(b"\n"), strict=True))
            samples |= {key: line for key, line in lines.items() if key not in places}
            places |= {key: [] for key in lines if key not in places}
        for key in kinds:
            places[key].append(at)
    del places[b""]
    return _Index(samples, places)


def _beginnings(text: bytes) -> Iterator[int]:
    """Where the pieces begin, each of whole lines."""
    at = 0
    while at < len(text):
        yield at
        at += len(_piece(text, at)) + 1


def _piece(text: bytes, at: int) -> bytes:
    end = text.find(b"\n", at + _PIECE)
    return text[at : end if end >= 0 else len(text)]


def _keyed(piece: bytes) -> list[bytes]:
    """The key of each line."""
    return piece.translate(_DIGITS).split(b"\n")


def _parsed(lines: bytes) -> tuple[Message, ...]:
    return parse_dmesg(lines.decode().replace(_WITHIN, "\n"))


def _joined(text: str) -> str:
    """One line a message; what comes before the first stamp belongs to nothing."""
    found: list[str] = []
    for line in text.split("\n"):
        if _STAMPED.match(line):
            found.append(line)
        elif found and line:
            found[-1] += f"{_WITHIN}{line}"
    return "\n".join(found)
