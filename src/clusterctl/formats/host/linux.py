"""Small outputs of Linux: df, /proc/meminfo, swapon, systemctl, lsmod, and those of the node's built-in
`stuck-processes` and `cpu-load`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Figure, Within, read_document

_DF = re.compile(
    r"^(?P<source>\S.*?)(?<=\S)\s+(?P<size>[0-9]{1,20})\s+(?P<used>[0-9]{1,20})\s+(?P<free>[0-9]{1,20})\s+(?:\d+%|-)\s+(?P<mount>/.*)$"
)
_MEM_TOTAL = re.compile(r"^MemTotal:\s+([0-9]{1,15}) kB$", re.MULTILINE)
_BYTES = re.compile(r"[0-9]{1,20}")
_ACTIVE_STATES = frozenset(
    {"active", "activating", "deactivating", "failed", "inactive", "maintenance", "refreshing", "reloading", "unknown"}
)
_UNIT = re.compile(r"^(?:[●*] )?(?P<unit>\S+\.[a-z]+)\s+\S+\s+(?P<active>\S+)\s")


@dataclass(frozen=True, slots=True)
class Filesystem:
    """A mounted file system; sizes in bytes. `free` is what unprivileged users may use."""

    mount: str
    size: int
    free: int


def parse_df(text: str, paths: int) -> tuple[Filesystem, ...]:
    """Return each file system of `df -P -B1 PATH…` once. Raises `ParseError` for more or fewer lines than `paths`."""
    header, *lines = text.splitlines() or [""]
    if not header.startswith("Filesystem"):
        raise ParseError("no table of file systems", where="df -P -B1")
    found: dict[str, Filesystem] = {}
    for number, line in enumerate(lines, start=2):
        match = _DF.match(line)
        if match is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where=f"df -P -B1:{number}")
        found[match["mount"]] = Filesystem(match["mount"], int(match["size"]), int(match["free"]))
    if len(lines) != paths:
        raise ParseError(f"{len(lines)} of {paths} paths are in the table", where="df -P -B1")
    return tuple(found.values())


@dataclass(frozen=True, slots=True)
class FilesystemUse:
    """How full a mounted file system is, in percent. `inodes` is None where it has no fixed number (Btrfs, VFAT)."""

    mount: str
    kind: str
    space: float
    inodes: float | None


_USE = re.compile(
    r"^(?P<kind>\S+)\s+(?P<size>\d{1,20})\s+(?P<used>\d{1,20})\s+(?P<free>\d{1,20})\s+(?P<inodes>\d{1,20}|-)\s+"
    r"(?P<taken>\d{1,20}|-)\s+(?P<mount>/.*)$"
)


def parse_df_use(text: str) -> tuple[FilesystemUse, ...]:
    """Return the file systems of `df -B1 --output=fstype,size,used,avail,itotal,iused,target` that hold anything.

    Space is counted as df does: what users may still write, without the reserve of root. Raises `ParseError`.
    """
    where = "df --output"
    header, *lines = text.splitlines() or [""]
    if header.split()[:2] != ["Type", "1B-blocks"]:
        raise ParseError("no table of file systems", where=where)
    found = []
    for number, line in enumerate(lines, start=2):
        match = _USE.match(line)
        if match is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where=f"{where}:{number}")
        used, free = int(match["used"]), int(match["free"])
        if used + free == 0:
            continue
        total = 0 if match["inodes"] == "-" or match["taken"] == "-" else int(match["inodes"])
        inodes = 100 * int(match["taken"]) / total if total else None
        found.append(FilesystemUse(match["mount"], match["kind"], 100 * used / (used + free), inodes))
    return tuple(found)


def parse_memory_total(text: str) -> float:
    """Return the memory that the kernel uses, in GiB."""
    match = _MEM_TOTAL.search(text)
    if match is None:
        raise ParseError("no line MemTotal", where="/proc/meminfo")
    return int(match[1]) / 2**20


def parse_swaps(text: str) -> tuple[tuple[str, int], ...]:
    """Return device or file and bytes of each swap, from `swapon --show=NAME,SIZE --bytes --noheadings`."""
    swaps = []
    for line in text.splitlines():
        name, _, size = line.strip().rpartition(" ")
        if not (name.startswith("/") and _BYTES.fullmatch(size)):
            raise ParseError(f"line not understood: {line[:100]!r}", where="swapon --show")
        swaps.append((name.rstrip(), int(size)))
    return tuple(swaps)


def parse_failed_units(text: str) -> tuple[str, ...]:
    """Return the names of failed units, from `systemctl list-units --failed --plain --no-legend`."""
    units = []
    for line in text.splitlines():
        match = _UNIT.match(line.strip())
        if match is None:
            raise ParseError(f"line not understood: {line[:100]!r}", where="systemctl list-units")
        units.append(match["unit"])
    return tuple(units)


def parse_modules(text: str) -> frozenset[str]:
    """Return the names of the loaded modules, from `lsmod`."""
    head, *lines = text.splitlines() or [""]
    if not head.startswith("Module ") or not all(line.split() for line in lines):
        raise ParseError("not the table of lsmod", where="lsmod")
    return frozenset(line.split()[0] for line in lines)


def parse_active_state(text: str) -> str:
    """Return systemd's active state, from `systemctl is-active UNIT`; `unknown` where there is no such unit."""
    state = text.strip()
    if state not in _ACTIVE_STATES:
        raise ParseError(f"no active state: {state[:100]!r}", where="systemctl is-active")
    return state


_WHERE = "stuck-processes"


@dataclass(frozen=True, slots=True)
class StuckProcess:
    """A process that did not run once during `seconds`.

    `kernel`: whether it is a kernel thread. `waits_in`: the kernel function that it waits in, empty where unknown.
    """

    pid: int
    name: str
    kernel: bool
    waits_in: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _Stuck:
    pid: int
    name: str
    kernel: bool
    waits_in: str


@dataclass(frozen=True, slots=True)
class _Document:
    seconds: float
    looked_at: Annotated[int, Within(gt=0)]
    stuck: tuple[_Stuck, ...]


def parse_stuck_processes(text: str) -> tuple[StuckProcess, ...]:
    """Return the hung processes. Raises `ParseError` for another document, or where no process was examined."""
    document = read_document(_Document, text, _WHERE)
    return tuple(StuckProcess(one.pid, one.name, one.kernel, one.waits_in, document.seconds) for one in document.stuck)


@dataclass(frozen=True, slots=True)
class BusyProcess:
    """A process, the name of its user, and what it used: percent of one processor."""

    pid: int
    name: str
    user: str
    kernel: bool
    percent: float


@dataclass(frozen=True, slots=True)
class _Load:
    seconds: Figure
    looked_at: Annotated[int, Within(gt=0)]
    processes: tuple[BusyProcess, ...]


def parse_cpu_load(text: str) -> tuple[BusyProcess, ...]:
    """Return the processes of `cpu-load` that use the processors. Raises `ParseError` for another document."""
    return read_document(_Load, text, "cpu-load").processes
