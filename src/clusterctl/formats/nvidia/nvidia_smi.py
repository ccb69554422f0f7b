"""`nvidia-smi -q` (text): everything that the driver reports about its GPUs.

The text is an indented tree of `key : value` lines. Values that the driver could not read (`N/A`, `Unknown Error`,
`GPU is lost`) become None: unmeasured, never zero.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.pci import normal_address

_GPU = re.compile(r"^GPU (?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$")
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?")
_UNREAD = re.compile(
    r"^\[?(?:N/A|Not Supported|Unknown Error|GPU is lost|GPU requires reset|ERR!|Insufficient.*)\]?$", re.IGNORECASE
)


@dataclass(slots=True)
class Section:
    """One line of the tree, and the lines indented below it."""

    key: str
    value: str | None
    children: list[Section] = field(default_factory=list)

    def at(self, *path: str) -> Section | None:
        """Return the first section below this one under the keys of `path`; None where there is none."""
        here = self
        for key in path:
            for child in here.children:
                if child.key == key:
                    here = child
                    break
            else:
                return None
        return here

    def below(self, *path: str) -> Section:
        """Return the same; an empty section where there is none."""
        return self.at(*path) or Section("", None)

    def text(self, *path: str) -> str | None:
        """Return the value; None where it is absent or was not readable."""
        found = self.at(*path)
        if found is None or found.value is None:
            return None
        value = found.value
        return value if value[:1].isdigit() or not _UNREAD.match(value) else None

    def number(self, *path: str) -> float | None:
        """Return the leading number of the value (`81559 MiB` → 81559)."""
        found = self.at(*path)
        if found is None or found.value is None:
            return None
        match = _NUMBER.match(found.value)
        return float(match[0]) if match else None

    def count(self, *path: str) -> int | None:
        value = self.number(*path)
        return None if value is None else int(value)

    def flag(self, *path: str, true: str) -> bool | None:
        value = self.text(*path)
        return None if value is None else value == true

    def walk(self) -> Iterator[Section]:
        for child in self.children:
            yield child
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds a context on a GPU."""

    pid: str
    name: str


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU. `index` is its place in the listing (nvidia-smi's index); `pci` is `0000:1b:00.0`.

    `fabric_state` and `fabric_status`: state of its NVSwitch registration (`Completed`, `Success`).
    Memory in MiB, temperatures in °C, PCIe width in lanes. None: the driver does not report it.
    """

    index: int
    pci: str
    model: str | None
    serial: str | None
    uuid: str | None
    pcie_width: int | None
    pcie_width_max: int | None
    memory_used: float | None
    temperature: float | None
    memory_temperature: float | None
    ecc_enabled: bool | None
    ecc_enabled_after_reset: bool | None
    uncorrectable_since_boot: int | None
    sram_uncorrectable_ever: int | None
    sram_threshold_exceeded: bool | None
    remapped_uncorrectable: int | None
    remap_pending: bool | None
    remap_failed: bool | None
    processes: tuple[GpuProcess, ...] | None
    persistence: bool | None
    vbios: str | None
    inforom: str | None
    gsp_firmware: str | None
    fabric_state: str | None
    fabric_status: str | None

    @property
    def subject(self) -> str:
        return f"gpu {self.index}"


@dataclass(frozen=True, slots=True)
class SmiLog:
    """The whole output."""

    driver_version: str | None
    gpus: tuple[GpuReading, ...]


@functools.lru_cache(maxsize=16)
def parse_query(text: str) -> SmiLog:
    """Return the GPUs of `nvidia-smi -q`. Raises `ParseError` for other text, or a wrong number of GPUs."""
    root = tree(text)
    attached = root.count("Attached GPUs")
    if attached is None:
        raise ParseError("not the output of nvidia-smi -q: no line 'Attached GPUs'", where="nvidia-smi -q")
    sections = [s for s in root.children if _GPU.match(s.key)]
    if len(sections) != attached:
        raise ParseError(f"{attached} GPUs are attached, {len(sections)} are listed", where="nvidia-smi -q")
    gpus = tuple(_gpu(index, section) for index, section in enumerate(sections))
    return SmiLog(root.text("Driver Version"), gpus)


def tree(text: str) -> Section:
    """Return the indented lines as a tree; the first ` : ` separates key and value.

    It uses no regular expression: a fleet's listings have a million lines.
    """
    root = Section("", None)
    indents, above = [-1], [root]
    for line in text.splitlines():
        rest = line.lstrip(" ")
        if not rest or line[0] == "=":
            continue
        indent = len(line) - len(rest)
        while indents[-1] >= indent:
            indents.pop()
            above.pop()
        key, colon, value = rest.partition(" : ")
        section = Section(key.rstrip(), value, []) if colon else Section(rest.removesuffix(" :").rstrip(), None, [])
        above[-1].children.append(section)
        indents.append(indent)
        above.append(section)
    return root


def _gpu(index: int, section: Section) -> GpuReading:
    match = _GPU.match(section.key)
    width = section.below("PCI", "GPU Link Info", "Link Width")
    heat, ecc, errors = (section.below(key) for key in ("Temperature", "ECC Mode", "ECC Errors"))
    aggregate, remapped = errors.below("Aggregate"), section.below("Remapped Rows")
    return GpuReading(
        index=index,
        pci=normal_address(match["bus"]) if match else "",
        model=section.text("Product Name"),
        serial=section.text("Serial Number"),
        uuid=section.text("GPU UUID"),
        pcie_width=width.count("Current"),
        pcie_width_max=width.count("Max"),
        memory_used=section.number("FB Memory Usage", "Used"),
        temperature=heat.number("GPU Current Temp"),
        memory_temperature=heat.number("Memory Current Temp"),
        ecc_enabled=ecc.flag("Current", true="Enabled"),
        ecc_enabled_after_reset=ecc.flag("Pending", true="Enabled"),
        uncorrectable_since_boot=_uncorrectable(errors.below("Volatile"), ""),
        sram_uncorrectable_ever=_uncorrectable(aggregate, "SRAM"),
        sram_threshold_exceeded=aggregate.flag("SRAM Threshold Exceeded", true="Yes"),
        remapped_uncorrectable=remapped.count("Uncorrectable Error"),
        remap_pending=remapped.flag("Pending", true="Yes"),
        remap_failed=remapped.flag("Remapping Failure Occurred", true="Yes"),
        processes=_processes(section),
        persistence=section.flag("Persistence Mode", true="Enabled"),
        vbios=section.text("VBIOS Version"),
        inforom=section.text("Inforom Version", "Image Version"),
        gsp_firmware=section.text("GSP Firmware Version"),
        fabric_state=section.text("Fabric", "State"),
        fabric_status=section.text("Fabric", "Status"),
    )


def _uncorrectable(counters: Section, memory: str) -> int | None:
    """Return the sum of the uncorrectable counters, which later drivers split by cause; None if one is unread."""
    keys = [c.key for c in counters.children if "Uncorrectable" in c.key and memory in c.key]
    values = [counters.count(key) for key in keys]
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None


def _processes(section: Section) -> tuple[GpuProcess, ...] | None:
    found = section.at("Processes")
    if found is None or (found.value is not None and found.value != "None"):
        return None
    entries = (s for s in found.walk() if s.key == "Process ID")
    return tuple(GpuProcess(s.value or "", s.text("Name") or "") for s in entries)
