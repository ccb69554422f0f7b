"""The kernel log as `dmesg` prints it, and the messages of NVIDIA's drivers and the PCI core in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.pci import normal_address

STAMPED = r"(?:[a-z0-9]+ *:(?P<level>[a-z]+) *: )?\[(?P<at>[^\]]+)\] ?"
"""How a message begins: facility and level where dmesg decodes them (`kern  :warn  : `), and when it was logged."""
_MESSAGE = re.compile(rf"^{STAMPED}(?P<text>.*)$")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)\)[^:]*: (?P<code>\d+)(?:, )?(?P<text>.*)")
_SXID = re.compile(r"nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>[0-9A-Fa-f:.]+)\): (?P<code>\d{5}), ?(?P<text>.*)")
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
    """One line; `at` as printed: seconds since boot, or local time. `level` (`info`, `warn`) empty where not told."""

    at: str
    text: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class Xid:
    """An error that a GPU's (or NVSwitch's) driver reported; `pci` of the device, empty where none was named."""

    pci: str
    code: int
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class LimitedLink:
    """The PCI core found a device behind a slower link than it can use; bandwidths in Gb/s."""

    pci: str
    have: float
    capable: float
    link: str


def parse_dmesg(text: str) -> tuple[Message, ...]:
    """Read the log; lines without a stamp belong to the message before. `ParseError` when no line has one."""
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
    """All Xids, in order. A GPU that fell off the bus without an Xid line is told as the Xid 79 that it is.

    The driver may say so over several messages, of which an earlier one names the GPU.
    """
    found: list[Xid] = []
    lost: dict[str, Xid] = {}
    named = ""
    for message in messages:
        if match := _XID.search(message.text):
            found.append(Xid(normal_address(match["pci"]), int(match["code"]), match["text"], message.at))
            continue
        if match := _NAMED.search(message.text):
            named = normal_address(match["pci"])
        if _OFF_BUS.search(message.text):
            lost.setdefault(named, Xid(named, OFF_THE_BUS, "GPU has fallen off the bus.", message.at))
    told = {xid.pci for xid in found if xid.code == OFF_THE_BUS}
    return (*found, *(xid for pci, xid in lost.items() if pci not in told))


def board_serials(messages: Iterable[Message]) -> Mapping[str, str]:
    """PCI address → serial of the GPUs that the driver introduces beside their errors, in one message or two."""
    named, found = "", {}
    for message in messages:
        if match := _NAMED.search(message.text):
            named = normal_address(match["pci"])
        if named and (match := _SERIAL.search(message.text)):
            found[named] = match["serial"]
    return found


def sxids(messages: Iterable[Message]) -> Iterator[Xid]:
    """NVSwitch errors; `text` begins with the severity where the line carries one."""
    for message in messages:
        if match := _SXID.search(message.text):
            yield Xid(normal_address(match["pci"]), int(match["code"]), match["text"], message.at)


def limited_links(messages: Iterable[Message]) -> Iterator[LimitedLink]:
    for message in messages:
        if match := _LIMITED.search(message.text):
            yield LimitedLink(match["pci"], float(match["have"]), float(match["capable"]), match["link"])
