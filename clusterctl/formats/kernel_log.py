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
_PIECE = 256 * 1024
"""Bytes that are split at once: what is made of them stays in the processor's cache."""
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
class KernelLog:
    kinds: tuple[Kind, ...]
    _text: bytes

    def counts(self, kinds: Collection[Kind]) -> Mapping[Kind, int]:
        """How many messages there are of each of these kinds."""
        wanted = {kind.key for kind in kinds}
        found = Counter(key for keys, _ in _keyed(self._text) for key in keys if key in wanted) if wanted else {}
        return {kind: found[kind.key] for kind in kinds}

    def messages(self, wanted: Callable[[str], bool]) -> tuple[Message, ...]:
        """Every message of the kinds whose text is `wanted`, as it stands or with ones for digits; in order."""
        chosen = {kind.key for kind in self.kinds if wanted(kind.message.text) or wanted(kind.ones)}
        lines: list[bytes] = []
        for keys, piece in _keyed(self._text) if chosen else ():
            if not chosen.isdisjoint(keys):
                lines += [line for line, key in zip(piece.split(b"\n"), keys, strict=True) if key in chosen]
        return _parsed(b"\n".join(lines)) if lines else ()


def read_kernel_log(text: str) -> KernelLog:
    """Read the log; a line without a stamp belongs to the message before. `ParseError` when no line has one."""
    data = text.encode()
    samples = _samples(data)
    if not all(_STAMPED.match(line.decode()) for line in samples.values()):
        data = _joined(text).encode()
        samples = _samples(data)
    if not samples:
        raise ParseError("no kernel message in it", where="dmesg")
    return KernelLog(tuple(Kind(_parsed(line)[0], key) for key, line in samples.items()), data)


def _samples(text: bytes) -> Mapping[bytes, bytes]:
    """One line of each kind."""
    samples: dict[bytes, bytes] = {b"": b""}
    for keys, piece in _keyed(text):
        if not samples.keys() >= set(keys):
            samples = {**dict(zip(keys, piece.split(b"\n"), strict=True)), **samples}
    del samples[b""]
    return samples


def _keyed(text: bytes) -> Iterator[tuple[list[bytes], bytes]]:
    """The text in pieces of whole lines, with the key of each line."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", at + _PIECE)
        piece = text[at : end if end >= 0 else len(text)]
        yield piece.translate(_DIGITS).split(b"\n"), piece
        at += len(piece) + 1


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
