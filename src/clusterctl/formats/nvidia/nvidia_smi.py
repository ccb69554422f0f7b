"""`nvidia-smi -q` (text): everything that the driver reports about its GPUs.

The text is an indented tree of `key : value` lines. Values that the driver could not read (`N/A`, `Unknown Error`,
`GPU is lost`) become None: unmeasured, never zero. Section names and keys differ between drivers R470 and R580; each
field names those that it accepts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.pci import normal_address

_GPU = re.compile(r"^GPU (?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])$")
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?")
_UNREAD = re.compile(
    r"^\[?(?:N/A|Not Supported|Unknown Error|GPU is lost|GPU requires reset|ERR!|Insufficient.*|.* deprecated)\]?$",
    re.IGNORECASE,
)
_LOST = "gpu is lost"
_STOPPED = "gpu requires reset"
_LARGEST = 1e15
"""No figure of nvidia-smi is larger: such a number is damaged text."""
_HBM = re.compile(r"\b(?:P100|V100|A30|A100|A800|H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300)\b")
_SRAM_COUNTERS = (
    {"SRAM Uncorrectable"},
    {"SRAM Uncorrectable Parity", "SRAM Uncorrectable SEC-DED"},
)
"""Until R530, and since."""
_REPAIRS = ("Channel Repair Pending", "TPC Repair Pending", "Unrepairable Memory")
_PAGES = re.compile(r"\b[PV]100\b")
_RACK = re.compile(r"\bGB[23]00\b")
NO_CLUSTER = "00000000-0000-0000-0000-000000000000"


T = TypeVar("T")


@dataclass(slots=True)
class Section:
    """One line of the tree, and the lines that are indented below it."""

    key: str
    value: str | None
    children: list[Section] = field(default_factory=list)
    by_key: dict[str, Section] | None = None

    def at(self, *path: str) -> Section | None:
        """Return the first section below this one under the keys of `path`; None where there is none."""
        here: Section | None = self
        for key in path:
            if here is None or not here.children:
                return None
            by_key = here.by_key
            if by_key is None:
                by_key = here.by_key = {child.key: child for child in reversed(here.children)}
            here = by_key.get(key)
        return here

    def below(self, *path: str) -> Section:
        """Return the same; an empty section where there is none."""
        return self.at(*path) or _ABSENT

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
        value = float(match[0]) if match else None
        return value if value is None or abs(value) < _LARGEST else None

    def amount(self, *path: str) -> float | None:
        """Return the leading number; None where it is negative."""
        value = self.number(*path)
        return None if value is None or value < 0 else value

    def count(self, *path: str) -> int | None:
        """Return the leading number without its decimals; None where it is negative."""
        value = self.amount(*path)
        return None if value is None else int(value)

    def flag(self, *path: str, true: str, false: str) -> bool | None:
        """Return whether the value is `true`; None where it is neither `true` nor `false`."""
        return {true: True, false: False}.get(self.text(*path) or "")

    def raw(self) -> dict[str, str]:
        """Return the values of the lines directly below, as they stand."""
        return {child.key: child.value.strip() for child in reversed(self.children) if child.value is not None}

    def walk(self) -> Iterator[Section]:
        for child in self.children:
            yield child
            yield from child.walk()


_ABSENT = Section("", None)


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds a context on a GPU."""

    pid: str
    name: str


@dataclass(frozen=True, slots=True)
class Slowdown:
    """The reasons for which the driver or the hardware lowers the clocks now. None: not reported."""

    hardware: bool | None
    hardware_thermal: bool | None
    power_brake: bool | None
    software_thermal: bool | None


@dataclass(frozen=True, slots=True)
class SlowedTimes:
    """Seconds for which clocks were lowered since the driver was loaded, by reason; drivers from R570 on report them.

    A load's clocks are lowered for heat by the driver or by the hardware itself, or by the machine's power brake.
    """

    software_thermal: float
    hardware_thermal: float
    power_brake: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """What the GPU needs before it can be used again.

    action    the recovery action, as drivers from R565 on report it: `None`, `Reset`, `Reboot`, `Drain P2P` …
    required, recommended   a reset, and a drain with a reset, as older drivers report them
    repairs   the raw values of the pending repairs, by key; only those that the driver prints
    lost      a value of the driver is "GPU is lost"
    stopped   a value of the driver is "GPU requires reset"
    """

    action: str | None
    required: bool | None
    recommended: bool | None
    repairs: Mapping[str, str] = field(hash=False)
    lost: bool
    stopped: bool


@dataclass(frozen=True, slots=True)
class SpareRows:
    """Row remapping (from Ampere on) and page retirement (before it).

    low, none   banks of memory that have few spare rows left, and none; None where the driver does not report them
    retired     retired pages, after single and double bit errors
    """

    uncorrectable: int | None
    pending: bool | None
    failed: bool | None
    low: int | None
    none: int | None
    retired: int | None
    retirement_pending: bool | None


@dataclass(frozen=True, slots=True)
class PowerReading:
    """Power that the GPU draws now, its limit, and the limit that it was made with, in W."""

    draw: float | None
    limit: float | None
    limit_default: float | None


@dataclass(frozen=True, slots=True)
class GpuFabricReading:
    """The GPU's registration with its NVSwitches.

    state, status   `Completed`, `Success` where it has joined them
    health          the raw values of its health, by key
    cluster         the UUID of the cluster of NVSwitches
    """

    state: str | None
    status: str | None
    health: Mapping[str, str] = field(hash=False)
    cluster: str | None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU. `index` is its place in the listing (nvidia-smi's index); `pci` is `0000:1b:00.0`.

    Memory in MiB, temperatures in °C, PCIe width in lanes.
    `pcie_generation_max`: what GPU and slot reach together. None: the driver does not report it.
    """

    index: int
    pci: str
    model: str | None
    architecture: str | None
    serial: str | None
    uuid: str | None
    pcie_width: int | None
    pcie_width_max: int | None
    pcie_generation_max: int | None
    pcie_replays: int | None
    pcie_rollovers: int | None
    memory_total: float | None
    memory_used: float | None
    temperature: float | None
    memory_temperature: float | None
    ecc_enabled: bool | None
    ecc_enabled_after_reset: bool | None
    uncorrectable_since_boot: int | None
    dram_corrected_since_boot: int | None
    sram_uncorrectable_ever: int | None
    sram_threshold_exceeded: bool | None
    spare_rows: SpareRows
    recovery: Recovery
    slowdown: Slowdown
    slowed: SlowedTimes | None
    mig: str | None
    mig_after_reset: str | None
    compute_mode: str | None
    power: PowerReading
    processes: tuple[GpuProcess, ...] | None
    persistence: bool | None
    vbios: str | None
    inforom: str | None
    gsp_firmware: str | None
    fabric: GpuFabricReading

    @property
    def subject(self) -> str:
        return f"gpu {self.index}"

    @property
    def has_hbm(self) -> bool:
        """Whether its memory has a temperature sensor that the driver reads: HBM has, GDDR has not."""
        return _HBM.search(self.model or "") is not None

    @property
    def can_mig(self) -> bool:
        """Whether the model can be divided (MIG): A30, A100 and all data centre GPUs since, except those of GDDR."""
        return self.has_hbm and not _PAGES.search(self.model or "")

    @property
    def retires_pages(self) -> bool:
        """Whether it retires pages of faulty memory and counts double bit errors, as GPUs before Turing do."""
        if self.architecture is None:  # drivers before R495 do not report it
            return _PAGES.search(self.model or "") is not None
        return self.architecture in ("Pascal", "Volta")

    @property
    def in_rack_fabric(self) -> bool:
        """Whether its NVSwitches are those of a rack, which another machine manages."""
        return _RACK.search(self.model or "") is not None or self.fabric.cluster not in (None, NO_CLUSTER)


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
    folded = text.lower()
    if _LOST in folded or _STOPPED in folded:
        gpus = tuple(map(_unreadable, gpus, sections))
    return SmiLog(root.text("Driver Version"), gpus)


def tree(text: str) -> Section:
    """Return the indented lines as a tree; the first ` : ` separates key and value.

    It uses no regular expression: a fleet's listings have a million lines.
    """
    root = last = Section("", None)
    last_indent = -1
    above: list[Section] = []  # the sections that contain the last line
    indents: list[int] = []
    for line in text.splitlines():
        rest = line.lstrip(" ")
        if not rest or line[0] == "=":
            continue
        indent = len(line) - len(rest)
        if indent > last_indent:
            above.append(last)
            indents.append(last_indent)
        elif indent < last_indent:
            while indents[-1] >= indent:
                indents.pop()
                above.pop()
        key, colon, value = rest.partition(" : ")
        last = Section(key.rstrip(), value) if colon else Section(rest.removesuffix(" :").rstrip(), None)
        last_indent = indent
        above[-1].children.append(last)
    return root


def _gpu(index: int, section: Section) -> GpuReading:
    match = _GPU.match(section.key)
    link = section.below("PCI", "GPU Link Info")
    heat, ecc = section.below("Temperature"), _either(section, "ECC Mode", "Ecc Mode")
    volatile, aggregate = (section.below("ECC Errors", key) for key in ("Volatile", "Aggregate"))
    serial = section.text("Serial Number")
    return GpuReading(
        index=index,
        pci=normal_address(match["bus"]) if match else "",
        model=section.text("Product Name"),
        architecture=section.text("Product Architecture"),
        serial=serial if serial and serial.strip("0") else None,
        uuid=section.text("GPU UUID"),
        pcie_width=link.count("Link Width", "Current"),
        pcie_width_max=link.count("Link Width", "Max"),
        pcie_generation_max=link.count("PCIe Generation", "Max"),
        pcie_replays=section.count("PCI", "Replays Since Reset"),
        pcie_rollovers=section.count("PCI", "Replay Number Rollovers"),
        memory_total=section.amount("FB Memory Usage", "Total"),
        memory_used=section.amount("FB Memory Usage", "Used"),
        temperature=heat.amount("GPU Current Temp"),
        memory_temperature=heat.amount("Memory Current Temp"),
        ecc_enabled=ecc.flag("Current", true="Enabled", false="Disabled"),
        ecc_enabled_after_reset=ecc.flag("Pending", true="Enabled", false="Disabled"),
        uncorrectable_since_boot=_uncorrectable(volatile, ""),
        dram_corrected_since_boot=_first(volatile.count("DRAM Correctable"), volatile.count("Single Bit", "Total")),
        sram_uncorrectable_ever=_uncorrectable(aggregate, "SRAM"),
        sram_threshold_exceeded=aggregate.flag("SRAM Threshold Exceeded", true="Yes", false="No"),
        spare_rows=_spare_rows(section),
        recovery=_recovery(section),
        slowdown=_slowdown(_either(section, "Clocks Event Reasons", "Clocks Throttle Reasons")),
        slowed=_slowed(section.below("Clocks Event Reasons Counters")),
        mig=section.text("MIG Mode", "Current"),
        mig_after_reset=section.text("MIG Mode", "Pending"),
        compute_mode=section.text("Compute Mode"),
        power=_power(_either(section, "GPU Power Readings", "Power Readings")),
        processes=_processes(section),
        persistence=section.flag("Persistence Mode", true="Enabled", false="Disabled"),
        vbios=section.text("VBIOS Version"),
        inforom=section.text("Inforom Version", "Image Version"),
        gsp_firmware=section.text("GSP Firmware Version"),
        fabric=_fabric(section.below("Fabric")),
    )


def _power(power: Section) -> PowerReading:
    draws = ("Instantaneous Power Draw", "Power Draw", "Average Power Draw")
    return PowerReading(
        draw=_first(*map(power.amount, draws)),
        limit=_first(power.amount("Current Power Limit"), power.amount("Enforced Power Limit")),
        limit_default=power.amount("Default Power Limit"),
    )


def _fabric(fabric: Section) -> GpuFabricReading:
    return GpuFabricReading(
        state=fabric.text("State"),
        status=fabric.text("Status"),
        health=fabric.below("Health").raw(),
        cluster=fabric.text("ClusterUUID"),
    )


def _either(section: Section, key: str, older: str) -> Section:
    """Return the section of that name, or of the name that older drivers give it."""
    return section.at(key) or section.below(older)


def _first(*values: T | None) -> T | None:
    return next((value for value in values if value is not None), None)


def _recovery(section: Section) -> Recovery:
    status = section.below("GPU Reset Status")
    errors = section.below("ECC Errors").raw()
    return Recovery(
        action=section.text("GPU Recovery Action"),
        required=status.flag("Reset Required", true="Yes", false="No"),
        recommended=status.flag("Drain and Reset Recommended", true="Yes", false="No"),
        repairs={key: errors[key] for key in _REPAIRS if key in errors},
        lost=False,
        stopped=False,
    )


def _unreadable(gpu: GpuReading, section: Section) -> GpuReading:
    """Return the GPU with what the driver reports instead of values."""
    values = {line.value.strip("[] ").lower() for line in section.walk() if line.value}
    recovery = replace(gpu.recovery, lost=_LOST in values, stopped=_STOPPED in values)
    return replace(gpu, recovery=recovery)


def _spare_rows(section: Section) -> SpareRows:
    rows, pages = section.below("Remapped Rows"), section.below("Retired Pages")
    banks = rows.below("Bank Remap Availability Histogram")
    single, double = pages.count("Single Bit ECC"), pages.count("Double Bit ECC")
    return SpareRows(
        uncorrectable=rows.count("Uncorrectable Error"),
        pending=rows.flag("Pending", true="Yes", false="No"),
        failed=rows.flag("Remapping Failure Occurred", true="Yes", false="No"),
        low=banks.count("Low"),
        none=banks.count("None"),
        retired=None if single is None or double is None else single + double,
        retirement_pending=pages.flag("Pending Page Blacklist", true="Yes", false="No"),
    )


def _slowdown(reasons: Section) -> Slowdown:
    def active(*path: str) -> bool | None:
        return reasons.flag(*path, true="Active", false="Not Active")

    return Slowdown(
        hardware=active("HW Slowdown"),
        hardware_thermal=active("HW Slowdown", "HW Thermal Slowdown"),
        power_brake=active("HW Slowdown", "HW Power Brake Slowdown"),
        software_thermal=active("SW Thermal Slowdown"),
    )


def _slowed(counters: Section) -> SlowedTimes | None:
    keys = ("SW Thermal Slowdown", "HW Thermal Slowdown", "HW Power Braking")
    texts = [counters.text(key) or "" for key in keys]
    if not all(text.endswith(" us") for text in texts):
        return None
    software, hardware, brake = ((counters.amount(key) or 0.0) / 1e6 for key in keys)
    return SlowedTimes(software, hardware, brake)


_DRAM = "DRAM Uncorrectable"


def _uncorrectable(counters: Section, memory: str) -> int | None:
    """Return the sum of the uncorrectable counters of SRAM, or of SRAM and DRAM (`memory` empty).

    Later drivers split SRAM's by cause. GPUs before Ampere count double bit errors of all memory in one sum. None where
    one is unread, and where the counters are not those of a known driver.
    """
    if counters.at("Double Bit") is not None:
        return None if memory else counters.count("Double Bit", "Total")
    names = {c.key for c in counters.children if "Uncorrectable" in c.key and memory in c.key}
    complete = names - {_DRAM} in _SRAM_COUNTERS and (memory or _DRAM in names)
    return _sum([counters.count(name) for name in names]) if complete else None


def _sum(values: Sequence[int | None]) -> int | None:
    """Return the sum; None where one of the values is."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _processes(section: Section) -> tuple[GpuProcess, ...] | None:
    found = section.at("Processes")
    if found is None or (found.value is not None and found.value != "None"):
        return None
    entries = (s for s in found.walk() if s.key == "Process ID")
    return tuple(GpuProcess(s.value or "", s.text("Name") or "") for s in entries)
