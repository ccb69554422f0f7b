"""Processors and memory of a host: dmidecode, turbostat, and the node's built-in `edac-counters` and `cpu-share`.

dmidecode prints SMBIOS types 17 (memory device) and 4 (processor): DMTF DSP0134 §7.18 and §7.5.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Count, Figure, Within, read_document

_SIZE = re.compile(r"^(?P<number>\d+) (?P<unit>MB|GB|TB)$")
_GIB = {"MB": 1 / 1024, "GB": 1, "TB": 1024}
_MODULES = "dmidecode -t 17"
_PROCESSORS = "dmidecode -t 4"
_SHARE = "cpu-share"
_DIGITS = 5
"""No number of processors has more."""


@dataclass(frozen=True, slots=True)
class MemoryModule:
    """One slot: `locator` as printed on the board, size in GiB, 0 for an empty slot."""

    locator: str
    gib: float


@functools.lru_cache(maxsize=16)
def parse_memory_modules(text: str) -> tuple[MemoryModule, ...]:
    """Return all slots of `dmidecode -t 17`. Raises `ParseError` where there is none, or a size is not understood."""
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
        raise ParseError("no memory device in it", where=_MODULES)
    return tuple(modules)


@dataclass(frozen=True, slots=True)
class ProcessorSocket:
    """One socket: `designation` as printed on the board, dmidecode's status: `Populated, Enabled`, `Unpopulated` …

    `cores` and `cores_enabled` are None where the firmware does not report them.
    """

    designation: str
    status: str
    cores: int | None = None
    cores_enabled: int | None = None

    @property
    def works(self) -> bool:
        return self.status == "Populated, Enabled"


def parse_processors(text: str) -> tuple[ProcessorSocket, ...]:
    """Return all CPU sockets of `dmidecode -t 4`. Raises `ParseError` where there is none, or one has no status."""
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
        cores, enabled = (_cores(fields.get(key, "")) for key in ("Core Count", "Core Enabled"))
        sockets.append(ProcessorSocket(fields.get("Socket Designation", ""), fields["Status"], cores, enabled))
    if not sockets:
        raise ParseError("no processor in it", where=_PROCESSORS)
    return tuple(sockets)


def _cores(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


def _gib(size: str) -> float:
    if size == "No Module Installed":
        return 0.0
    match = _SIZE.match(size)
    if match is None:
        raise ParseError(f"the size {size!r} is not understood", where=_MODULES)
    return int(match["number"]) * _GIB[match["unit"]]


_EDAC = "edac-counters"


@dataclass(frozen=True, slots=True)
class MemoryErrors:
    """Memory errors within `seconds`: since the driver was loaded or the counters were reset.

    `name` is the module's EDAC label, or `mc0 dimm3` where it has none. Errors that the hardware cannot assign to a
    module have the controller's name, and `placed` is False.
    """

    name: str
    location: str
    corrected: int
    uncorrected: int
    seconds: int
    placed: bool = True


@dataclass(frozen=True, slots=True)
class _Module:
    name: str
    label: str | None
    location: str | None
    corrected: Count
    uncorrected: Count


@dataclass(frozen=True, slots=True)
class _Controller:
    name: str
    driver: str | None
    seconds: Count
    corrected_nowhere: Count
    uncorrected_nowhere: Count
    modules: tuple[_Module, ...]


@dataclass(frozen=True, slots=True)
class _EdacDocument:
    controllers: tuple[_Controller, ...]


def parse_edac_counters(text: str) -> tuple[MemoryErrors, ...]:
    """Return the errors of each module, and of each controller those of no known module. Empty without an EDAC driver.

    Raises `ParseError` for another document, or where a count could not be read.
    """
    document = read_document(_EdacDocument, text, _EDAC)
    return tuple(found for controller in document.controllers for found in _errors(controller))


def _errors(mc: _Controller) -> Iterator[MemoryErrors]:
    for module in mc.modules:
        name = module.label or f"{mc.name} {module.name}"
        yield MemoryErrors(name, module.location or "", module.corrected, module.uncorrected, mc.seconds)
    yield MemoryErrors(mc.name, mc.driver or "", mc.corrected_nowhere, mc.uncorrected_nowhere, mc.seconds, placed=False)


_LSCPU = "lscpu --json"


@dataclass(frozen=True, slots=True)
class KernelCpus:
    """The logical processors that the kernel uses, and those that it has and does not use.

    `sockets` are those with a logical processor in use; None where lscpu does not report them.
    """

    online: frozenset[int]
    offline: frozenset[int]
    sockets: int | None = None


@dataclass(frozen=True, slots=True)
class _LscpuRow:
    field: str
    data: str | None = None
    children: tuple[_LscpuRow, ...] = ()

    def rows(self) -> Iterator[tuple[str, str]]:
        yield self.field.rstrip(":"), self.data or ""
        for child in self.children:
            yield from child.rows()


@dataclass(frozen=True, slots=True)
class _LscpuDocument:
    lscpu: tuple[_LscpuRow, ...]


def parse_lscpu(text: str) -> KernelCpus:
    """Return the processors of `lscpu --json`. Raises `ParseError` where their number and their list disagree."""
    document = read_document(_LscpuDocument, text, _LSCPU)
    fields = {name: value for row in document.lscpu for name, value in row.rows()}
    online = _cpu_list(fields.get("On-line CPU(s) list", ""))
    offline = _cpu_list(fields.get("Off-line CPU(s) list", ""))
    if not online or fields.get("CPU(s)") != str(len(online | offline)) or online & offline:
        raise ParseError("the number of CPUs and the lists of CPUs disagree", where=_LSCPU)
    return KernelCpus(online, offline, _cores(fields.get("Socket(s)", "")))


def _cpu_list(text: str) -> frozenset[int]:
    """Return the numbers of `0-3,8`; `hex` masks are not printed without an option."""
    numbers: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not all(word.isascii() and word.isdigit() and len(word) <= _DIGITS for word in (first, last or first)):
            raise ParseError(f"a list of CPUs is not understood: {text[:40]!r}", where=_LSCPU)
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


_TURBOSTAT = "turbostat"


@dataclass(frozen=True, slots=True)
class CpuClock:
    """One logical processor: its package (socket), and its mean clock in MHz while it was busy."""

    package: int
    cpu: int
    busy_mhz: float


@functools.lru_cache(maxsize=16)
def parse_turbostat(text: str) -> tuple[CpuClock, ...]:
    """Return the processors of `turbostat --quiet --show Package,CPU,Bzy_MHz`, without the line of means (`-`).

    Raises `ParseError` where a column or every processor is missing, or a figure is not understood (turbostat(8)).
    """
    lines = list(filter(None, map(str.split, text.splitlines())))
    start = next((i for i, words in enumerate(lines) if {"CPU", "Bzy_MHz"} <= set(words)), None)
    if start is None:
        raise ParseError("no table with the columns CPU and Bzy_MHz", where=_TURBOSTAT)
    header = lines[start]
    rows = [dict(zip(header, words, strict=True)) for words in lines[start + 1 :] if len(words) == len(header)]
    clocks = tuple(_clock(row) for row in rows if row["CPU"] != "-")
    if not clocks:
        raise ParseError("no processor in the table", where=_TURBOSTAT)
    return clocks


def _clock(row: dict[str, str]) -> CpuClock:
    """Return one row. A machine with one package has no column `Package`."""
    try:
        return CpuClock(int(row.get("Package", "0")), int(row["CPU"]), float(row["Bzy_MHz"]))
    except ValueError as error:
        raise ParseError(f"a figure is not understood: {error}", where=_TURBOSTAT) from None


@dataclass(frozen=True, slots=True)
class CpuTry:
    """One run of a fixed amount of work.

    share      processor time per wall time (1: a whole processor)
    runnable   tasks that the kernel had to run meanwhile, this one included
    seconds    wall time; None in a document of an older program
    idle       seconds that the processors were idle, all of them together; None where the kernel does not count them
    stolen     likewise, seconds that a hypervisor had them
    throttled  likewise, seconds that the quotas of the cgroups held back their tasks
    """

    share: Figure
    runnable: Count
    seconds: Figure | None = None
    idle: Figure | None = None
    stolen: Figure | None = None
    throttled: Figure = 0.0


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """A cgroup that the work ran in may use so many processors."""

    cgroup: str
    cpus: Figure


@dataclass(frozen=True, slots=True)
class CpuShare:
    """Tries on `cpus` processors, under the quotas of the work's own cgroup and of those above it.

    `quotas` is empty where none has a quota, None where that could not be read.
    """

    cpus: Annotated[int, Within(ge=1)]
    tries: tuple[CpuTry, ...]
    quotas: tuple[CpuQuota, ...] | None = None

    @property
    def best(self) -> float:
        """The greatest share of a processor."""
        return max(one.share for one in self.tries)


def parse_cpu_share(text: str) -> CpuShare:
    """Return the document of `cpu-share`. Raises `ParseError` for another document, or one without a try."""
    found = read_document(CpuShare, text, _SHARE)
    if not found.tries:
        raise ParseError("it has no try", where=_SHARE)
    return found
