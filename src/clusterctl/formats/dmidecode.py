"""`dmidecode -t 17` and `-t 4`: memory modules and processors (SMBIOS types 17 and 4, DMTF DSP0134 §7.18 and §7.5)."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_SIZE = re.compile(r"^(?P<number>\d+) (?P<unit>MB|GB|TB)$")
_GIB = {"MB": 1 / 1024, "GB": 1, "TB": 1024}
_WHERE = "dmidecode -t 17"
_PROCESSORS = "dmidecode -t 4"


@dataclass(frozen=True, slots=True)
class MemoryModule:
    """One slot: `locator` as printed on the board, `gib` 0 where no module is installed."""

    locator: str
    gib: float


@functools.lru_cache(maxsize=16)
def parse_memory_modules(text: str) -> tuple[MemoryModule, ...]:
    """All slots; `ParseError` when there is none or a size is not understood."""
    modules: list[MemoryModule] = []
    for block in text.split("\n\n"):
        if "Memory Device" not in block:
            continue
        lines = [line.strip() for line in block.splitlines()]
        if "Memory Device" not in lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        modules.append(MemoryModule(fields.get("Locator", ""), _gib(fields.get("Size", ""))))
    if not modules:
        raise ParseError("no memory device in it", where=_WHERE)
    return tuple(modules)


@dataclass(frozen=True, slots=True)
class ProcessorSocket:
    """`designation` as printed on the board; `status` in dmidecode's words: `Populated, Enabled`, `Unpopulated` …"""

    designation: str
    status: str

    @property
    def works(self) -> bool:
        return self.status == "Populated, Enabled"


def parse_processors(text: str) -> tuple[ProcessorSocket, ...]:
    """All sockets for central processors; `ParseError` when there is none or one tells no status."""
    sockets: list[ProcessorSocket] = []
    for block in text.split("\n\n"):
        lines = [line.strip() for line in block.splitlines()]
        if "Processor Information" not in lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines if ": " in line)
        if fields.get("Type", "Central Processor") != "Central Processor":
            continue
        if "Status" not in fields:
            raise ParseError("a processor without Status", where=_PROCESSORS)
        sockets.append(ProcessorSocket(fields.get("Socket Designation", ""), fields["Status"]))
    if not sockets:
        raise ParseError("no processor in it", where=_PROCESSORS)
    return tuple(sockets)


def _gib(size: str) -> float:
    if size == "No Module Installed":
        return 0.0
    match = _SIZE.match(size)
    if match is None:
        raise ParseError(f"the size {size!r} is not understood", where=_WHERE)
    return int(match["number"]) * _GIB[match["unit"]]
