"""Small tables of Linux tools: `df -P -B1`, `/proc/meminfo`, `swapon --show`, `systemctl list-units`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

import pydantic

from clusterctl.fleet.errors import ParseError

_DF = re.compile(r"^(?P<source>.+?)\s+(?P<size>\d+)\s+(?P<used>\d+)\s+(?P<free>\d+)\s+(?:\d+%|-)\s+(?P<mount>/.*)$")
_MEM_TOTAL = re.compile(r"^MemTotal:\s+(\d+) kB$", re.MULTILINE)
_SWAP = re.compile(r"^(?P<name>/\S.*?)\s+(?P<size>\d+)$")
_ACTIVE_STATES = frozenset(
    {"active", "activating", "deactivating", "failed", "inactive", "maintenance", "refreshing", "reloading", "unknown"}
)
_UNIT = re.compile(r"^(?:[●*] )?(?P<unit>\S+\.[a-z]+)\s+\S+\s+(?P<active>\S+)\s")


@dataclass(frozen=True, slots=True)
class Filesystem:
    """A mounted file system; sizes in bytes, `free` as unprivileged users may use."""

    mount: str
    size: int
    free: int


def parse_df(text: str) -> tuple[Filesystem, ...]:
    """Read `df -P -B1 PATH…`; each file system once."""
    header, *lines = text.splitlines() or [""]
    if not header.startswith("Filesystem"):
        raise ParseError("no table of file systems", where="df -P -B1")
    found: dict[str, Filesystem] = {}
    for number, line in enumerate(lines, start=2):
        match = _DF.match(line)
        if match is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where=f"df -P -B1:{number}")
        found[match["mount"]] = Filesystem(match["mount"], int(match["size"]), int(match["free"]))
    if not found:
        raise ParseError("no file system in the table", where="df -P -B1")
    return tuple(found.values())


def parse_memory_total(text: str) -> float:
    """GiB of memory that the kernel uses."""
    match = _MEM_TOTAL.search(text)
    if match is None:
        raise ParseError("no line MemTotal", where="/proc/meminfo")
    return int(match[1]) / 2**20


def parse_swaps(text: str) -> tuple[tuple[str, int], ...]:
    """Read `swapon --show=NAME,SIZE --bytes --noheadings`: device or file, and bytes. Empty: no swap is on."""
    swaps = []
    for line in text.splitlines():
        match = _SWAP.match(line.strip())
        if match is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where="swapon --show")
        swaps.append((match["name"], int(match["size"])))
    return tuple(swaps)


def parse_failed_units(text: str) -> tuple[str, ...]:
    """Read `systemctl list-units --failed --plain --no-legend`: the units' names. Empty: none failed."""
    units = []
    for line in text.splitlines():
        match = _UNIT.match(line.strip())
        if match is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where="systemctl list-units")
        units.append(match["unit"])
    return tuple(units)


def parse_modules(text: str) -> frozenset[str]:
    """Read `lsmod`: the names of the modules that are loaded."""
    head, *lines = text.splitlines() or [""]
    if not head.startswith("Module ") or not all(line.split() for line in lines):
        raise ParseError("not the table that lsmod prints", where="lsmod")
    return frozenset(line.split()[0] for line in lines)


def parse_active_state(text: str) -> str:
    """Read `systemctl is-active UNIT`: one of systemd's active states; `unknown` where systemd has no such unit."""
    state = text.strip()
    if state not in _ACTIVE_STATES:
        raise ParseError(f"no active state: {state[:100]!r}", where="systemctl is-active")
    return state


_WHERE = "stuck-processes"


@dataclass(frozen=True, slots=True)
class StuckProcess:
    """`kernel`: a thread of the kernel's own; `waits_in`: its function in the kernel, empty where that is not told;
    `seconds`: for so long it was watched, and did not run once.
    """

    pid: int
    name: str
    kernel: bool
    waits_in: str
    seconds: float


class _Stuck(pydantic.BaseModel):
    pid: int
    name: str
    kernel: bool
    waits_in: str


class _Document(pydantic.BaseModel):
    seconds: float
    looked_at: Annotated[int, pydantic.Field(gt=0)]
    stuck: tuple[_Stuck, ...]


def parse_stuck_processes(text: str) -> tuple[StuckProcess, ...]:
    """Nothing where nobody is stuck; `ParseError` where it is no such document, or no process was looked at."""
    try:
        document = _Document.model_validate_json(text)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ParseError(f"not understood: {first['msg']}", where=f"{_WHERE} {field}".strip()) from None
    return tuple(StuckProcess(one.pid, one.name, one.kernel, one.waits_in, document.seconds) for one in document.stuck)
