"""`dmidecode -t 17` and `-t 4`: memory modules and processors (SMBIOS types 17 and 4, DMTF DSP0134 §7.18 and §7.5)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import pydantic

from clusterctl.fleet.errors import ParseError

_SIZE = re.compile(r"^(?P<number>\d+) (?P<unit>MB|GB|TB)$")
_GIB = {"MB": 1 / 1024, "GB": 1, "TB": 1024}
_MODULES = "dmidecode -t 17"
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
        raise ParseError("no memory device in it", where=_MODULES)
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
        raise ParseError(f"the size {size!r} is not understood", where=_MODULES)
    return int(match["number"]) * _GIB[match["unit"]]


_EDAC = "edac-counters"
Count = Annotated[int, pydantic.Field(ge=0)]


@dataclass(frozen=True, slots=True)
class MemoryErrors:
    """What was counted in `seconds`, since the driver was loaded or the counters were reset.

    `name`: the module by its EDAC label, or `mc0 dimm3` where it has none; a controller's errors that the hardware
    could not place have the controller's name, and `placed` is False.
    """

    name: str
    location: str
    corrected: int
    uncorrected: int
    seconds: int
    placed: bool = True


class _Module(pydantic.BaseModel):
    name: str
    label: str | None
    location: str | None
    corrected: Count
    uncorrected: Count


class _Controller(pydantic.BaseModel):
    name: str
    driver: str | None
    seconds: Count
    corrected_nowhere: Count
    uncorrected_nowhere: Count
    modules: tuple[_Module, ...]


class _EdacDocument(pydantic.BaseModel):
    controllers: tuple[_Controller, ...]


def parse_edac_counters(text: str) -> tuple[MemoryErrors, ...]:
    """Every module, and of each controller the errors of no known module; nothing where no EDAC driver is loaded.

    `ParseError` where it is no such document, or a count could not be read.
    """
    try:
        document = _EdacDocument.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{_EDAC} {field}".strip()) from None
    return tuple(found for controller in document.controllers for found in _errors(controller))


def _errors(mc: _Controller) -> Iterator[MemoryErrors]:
    for module in mc.modules:
        name = module.label or f"{mc.name} {module.name}"
        yield MemoryErrors(name, module.location or "", module.corrected, module.uncorrected, mc.seconds)
    yield MemoryErrors(mc.name, mc.driver or "", mc.corrected_nowhere, mc.uncorrected_nowhere, mc.seconds, placed=False)


_TURBOSTAT = "turbostat"


@dataclass(frozen=True, slots=True)
class CpuClock:
    """One logical processor: its package (socket), and its mean clock in MHz while it was not idle."""

    package: int
    cpu: int
    busy_mhz: float


@functools.lru_cache(maxsize=16)
def parse_turbostat(text: str) -> tuple[CpuClock, ...]:
    """Read the table; its line of means over the whole machine (`-`) is left out.

    `ParseError` where a column or every processor is missing, or a figure is not understood.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
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
    """A machine with one package has no column of that name."""
    try:
        return CpuClock(int(row.get("Package", "0")), int(row["CPU"]), float(row["Bzy_MHz"]))
    except ValueError as error:
        raise ParseError(f"a figure is not understood: {error}", where=_TURBOSTAT) from None


@dataclass(frozen=True, slots=True)
class Try:
    """`share`: processor time by wall time (1: a whole processor); `runnable`: what the kernel had to run meanwhile,
    this work included; `cpus`: how many processors there are for it.
    """

    share: float
    runnable: int
    cpus: int


class _Try(pydantic.BaseModel):
    share: float
    runnable: int


class _ShareDocument(pydantic.BaseModel):
    cpus: int
    tries: tuple[_Try, ...]


def parse_cpu_share(text: str) -> tuple[Try, ...]:
    """Read its JSON document; `ParseError` where it is none, or without a try."""
    try:
        document = _ShareDocument.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ParseError(f"not understood: {first['msg']}", where="cpu-share") from None
    if not document.tries:
        raise ParseError("it tells of no try", where="cpu-share")
    return tuple(Try(one.share, one.runnable, document.cpus) for one in document.tries)
