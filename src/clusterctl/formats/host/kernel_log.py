"""The kernel log of `dmesg -T -x`: messages of NVIDIA's drivers and the PCI core, and lines grouped by kind.

Lines of one kind differ only in decimal or hexadecimal digits. A log has a hundred thousand lines and some hundred
kinds, so a question about each kind costs a tenth of a question about each line. (Words that differ only in letters a
to f, like `added` and `faded`, have the same kind.) Layout of a line: dmesg(1) of util-linux, `--decode`, `--ctime`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.pci import normal_address

STAMPED = r"(?:[a-z0-9]+ *:(?P<level>[a-z]+) *: )?\[(?P<at>[^\]]+)\] ?"
"""Beginning of a message: facility and level where dmesg decodes them (`kern  :warn  : `), and the time."""
_MESSAGE = re.compile(rf"^{STAMPED}(?P<text>.*)$")
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)(?P<mig>(?: GPU-C?I:\d+)*)\)[^:]*: (?P<code>\d+)(?:, )?(?P<text>.*)"
)
_SXID = re.compile(
    r"nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>[0-9A-Fa-f:.]+)\): (?:(?P<code>\d{5})(?:, ?|$))?(?P<text>.*)"
)
_NAMED = re.compile(
    r"NVRM:.*\bGPU (?:at PCI:)?(?P<pci>(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.[0-7])?)\b"
)
_SERIAL = re.compile(r"NVRM:.*\b(?:Board Serial Number:|serial number is) (?P<serial>\w+)")
_OFF_BUS = re.compile(r"NVRM:.*fallen off the bus")
_LIMITED = re.compile(
    r"(?P<pci>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): (?P<have>[\d.]+) Gb/s available PCIe bandwidth, "
    r"limited by (?P<link>[\d.]+ GT/s PCIe x\d+) link at \S+ \(capable of (?P<capable>[\d.]+) Gb/s"
)
OFF_THE_BUS = 79


@dataclass(frozen=True, slots=True)
class Message:
    """One message; `at` as printed: seconds since boot, or local time. `level` (`info`, `warn`) may be empty."""

    at: str
    text: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class Xid:
    """An error that a GPU's (or NVSwitch's) driver reported.

    `pci` is empty where the message names no device. `mig` is the GPU instance of a MIG GPU (`GPU-I:05`), else empty.
    """

    pci: str
    code: int
    text: str
    at: str
    mig: str = ""


@dataclass(frozen=True, slots=True)
class LimitedLink:
    """A device behind a slower link than it supports, as the PCI core reports it; bandwidths in Gb/s."""

    pci: str
    have: float
    capable: float
    link: str


def _of_driver(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first match at a line's first mark of the driver: a line of many marks is read in linear time."""
    lines = (line[line.index("NVRM:") :] for line in text.splitlines() if "NVRM:" in line)
    return next((match for line in lines if (match := pattern.match(line))), None)


def parse_dmesg(text: str) -> tuple[Message, ...]:
    """Return the messages; a line without a time belongs to the previous one. Raises `ParseError` without any time."""
    messages: list[Message] = []
    for line in text.splitlines():
        if match := _MESSAGE.match(line):
            messages.append(Message(match["at"].strip(), match["text"], match["level"] or ""))
        elif messages:
            last = messages[-1]
            messages[-1] = replace(last, text=f"{last.text}\n{line}")
    if not messages:
        raise ParseError("no kernel message in it", where="dmesg")
    return tuple(messages)


def xids(messages: Iterable[Message]) -> tuple[Xid, ...]:
    """Return all Xids, in order. A GPU that fell off the bus without an Xid line counts as Xid 79.

    The driver may report that over several messages, of which an earlier one names the GPU.
    """
    found: list[Xid] = []
    lost: dict[str, Xid] = {}
    named = ""
    for message in messages:
        if match := _XID.search(message.text):
            address, mig = _address(match["pci"]), match["mig"].strip()
            found.append(Xid(address, int(match["code"]), match["text"], message.at, mig))
            continue
        if match := _of_driver(_NAMED, message.text):
            named = normal_address(match["pci"])
        if _of_driver(_OFF_BUS, message.text):
            lost.setdefault(named, Xid(named, OFF_THE_BUS, "GPU has fallen off the bus.", message.at))
    reported = {xid.pci for xid in found if xid.code == OFF_THE_BUS}
    return (*found, *(xid for pci, xid in lost.items() if pci not in reported))


def _address(text: str) -> str:
    """Return the address in one spelling; empty where the driver prints none that can be read."""
    try:
        return normal_address(text)
    except ParseError:
        return ""


def board_serials(messages: Iterable[Message]) -> Mapping[str, str]:
    """Return the GPU serials that the driver prints with errors, by PCI address; it uses one message or two."""
    named, found = "", {}
    for message in messages:
        if match := _of_driver(_NAMED, message.text):
            named = normal_address(match["pci"])
        if named and (match := _of_driver(_SERIAL, message.text)):
            found[named] = match["serial"]
    return found


def sxids(messages: Iterable[Message]) -> Iterator[Xid]:
    """Yield NVSwitch errors; `code` is 0 where the line has none that can be read."""
    for message in messages:
        if match := _SXID.search(message.text):
            yield Xid(_address(match["pci"]), int(match["code"] or 0), match["text"], message.at)


def limited_links(messages: Iterable[Message]) -> Iterator[LimitedLink]:
    """Yield the links that the PCI core reports as limited."""
    for message in messages:
        if match := _LIMITED.search(message.text):
            yield LimitedLink(match["pci"], float(match["have"]), float(match["capable"]), match["link"])


@dataclass(frozen=True, slots=True)
class AddedLines:
    """Lines of a second reading that the first did not have; `overrun`: the kernel's buffer lost others in between."""

    lines: tuple[str, ...]
    overrun: bool


def _overlap(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many lines at the end of `old` are the beginning of `new`: the most that are; 0 where none are."""
    for start in (place for place, text in enumerate(old) if new and text == new[0]):
        if old[start:] == new[: len(old) - start]:
            return len(old) - start
    return 0


def added_lines(before: str, after: str) -> AddedLines:
    """Compare two readings of one kernel's log, from the same boot.

    The times are left out: `dmesg -T` prints other ones after the clock was set. The buffer is a ring, so the second
    reading may lack the first's beginning. Where it lacks all of it, what was logged in between is lost in part.
    """
    old, new = before.splitlines(), after.splitlines()
    plain_old, plain_new = ([_STAMPED.sub("", line) for line in lines] for lines in (old, new))
    common = _overlap(plain_old, plain_new)
    if common:
        return AddedLines(tuple(new[common:]), overrun=False)
    known = Counter(plain_old)
    added = []
    for line, text in zip(new, plain_new, strict=True):
        known[text] -= 1
        if known[text] < 0:
            added.append(line)
    return AddedLines(tuple(added), overrun=not plain_new or plain_new[0] not in plain_old)


_DIGITS = bytes.maketrans(b"023456789abcdef", b"1" * 15)
_ONES = str.maketrans("023456789", "1" * 9)
_STAMPED = re.compile(rf"^(?:{STAMPED})")
_PIECE = 32 * 1024
"""Bytes that are split at once: the pieces stay in the processor's cache, and the search for a line of a rare kind
reads only this much text.
"""
_WITHIN = "\x1f"
"""Replaces a line end within a message."""


@dataclass(frozen=True, slots=True)
class LineKind:
    """Lines that differ only in digits; `message` is one of them."""

    message: Message
    key: bytes

    @property
    def ones(self) -> str:
        """The text with each decimal digit replaced by one: `0 errors` and `3 errors` are of one kind."""
        return self.message.text.translate(_ONES)


@dataclass(frozen=True, slots=True)
class _Index:
    """One line of each kind, and the offsets of the pieces of the text that contain the kind."""

    samples: Mapping[bytes, bytes]
    places: Mapping[bytes, Collection[int]]

    def of(self, keys: Collection[bytes]) -> list[int]:
        return sorted({at for key in keys for at in self.places[key]})


@dataclass(frozen=True, slots=True)
class KernelLog:
    """A log, searchable by kind of line."""

    kinds: tuple[LineKind, ...]
    _text: bytes
    _index: _Index

    def counts(self, kinds: Collection[LineKind]) -> Mapping[LineKind, int]:
        """Return the number of messages of each of these kinds."""
        wanted = {kind.key for kind in kinds}
        pieces = (_keyed(_piece(self._text, at)) for at in self._index.of(wanted))
        found = Counter(key for keys in pieces for key in keys if key in wanted)
        return {kind: found[kind.key] for kind in kinds}

    def messages(self, wanted: Callable[[str], bool]) -> tuple[Message, ...]:
        """Return the messages of each kind with a text (plain, or with ones for digits) that is `wanted`; in order."""
        chosen = {kind.key for kind in self.kinds if wanted(kind.message.text) or wanted(kind.ones)}
        lines: list[bytes] = []
        for at in self._index.of(chosen):
            piece = _piece(self._text, at)
            lines += [line for line, key in zip(piece.split(b"\n"), _keyed(piece), strict=True) if key in chosen]
        return _parsed(b"\n".join(lines)) if lines else ()


def read_kernel_log(text: str) -> KernelLog:
    """Return the log; a line without a time belongs to the previous message. Raises `ParseError` without any time."""
    data = text.encode(errors="replace")
    index = _indexed(data)
    if not all(_STAMPED.match(line.decode()) for line in index.samples.values()):
        data = _joined(text).encode(errors="replace")
        index = _indexed(data)
    if not index.samples:
        raise ParseError("no kernel message in it", where="dmesg")
    return KernelLog(tuple(LineKind(_parsed(line)[0], key) for key, line in index.samples.items()), data, index)


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
    """Yield the offsets of the pieces; each piece has whole lines."""
    at = 0
    while at < len(text):
        yield at
        at += len(_piece(text, at)) + 1


def _piece(text: bytes, at: int) -> bytes:
    end = text.find(b"\n", at + _PIECE)
    return text[at : end if end >= 0 else len(text)]


def _keyed(piece: bytes) -> list[bytes]:
    """Return the key of each line."""
    return piece.translate(_DIGITS).split(b"\n")


def _parsed(lines: bytes) -> tuple[Message, ...]:
    return parse_dmesg(lines.decode().replace(_WITHIN, "\n"))


def _joined(text: str) -> str:
    """Return the log with one line per message, without lines before the first time."""
    found: list[str] = []
    for line in text.split("\n"):
        if _STAMPED.match(line):
            found.append(line)
        elif found and line:
            found[-1] += f"{_WITHIN}{line}"
    return "\n".join(found)


_PLACES = (
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", "<mac>"),
    (r"\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b", "<pci>"),
    (r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\b", "<pci>"),
    (r"\b[0-9a-f]{4}:[0-9a-f]{4}\b", "<id>"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}\b", "<ip>"),
    (r"\b0x[0-9a-f]+\b", "<hex>"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}\b", "<hex>"),
    (r"\bsd[a-z]{1,2}(?=\d*\b)", "sd<disk>"),
    (r"\d+(?:\.\d+)?", "<n>"),
)
_PLACE = re.compile("|".join(f"({regex})" for regex, _ in _PLACES), re.IGNORECASE)
_NAMES = tuple(name for _, name in _PLACES)


def template(text: str) -> str:
    """Return the first line with placeholders: `nvme nvme3: 96/0/0 queues` → `nvme nvme<n>: <n>/<n>/<n> queues`."""
    line = text.partition("\n")[0].strip()
    return _PLACE.sub(lambda match: _NAMES[(match.lastindex or 1) - 1], line)
