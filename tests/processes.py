"""Processes as /proc shows them: their ancestors, their site, and whether they still live."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """Distinguished from a later one with the same id by when it started (clock ticks since boot)."""

    pid: int
    started: str
    command: str

    @property
    def lives(self) -> bool:
        """False once it has ended, whether or not it has been reaped."""
        stat = _stat(self.pid)
        return stat is not None and stat[19] == self.started and stat[0] not in "ZX"


def descendants(ancestor: int) -> set[Process]:
    """All living ones, children of children too, in whatever session."""
    children: dict[int, list[int]] = defaultdict(list)
    stats = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
    for pid, stat in stats.items():
        children[int(stat[1])].append(pid)
    found, waiting = set(), list(children[ancestor])
    while waiting:
        pid = waiting.pop()
        found.add(Process(pid, stats[pid][19], command_of(pid)))
        waiting += children[pid]
    return {process for process in found if process.lives}


def gone(pid: int) -> bool:
    """Whether it has ended, reaped or not."""
    stat = _stat(pid)
    return stat is None or stat[0] in "ZX"


def status_of(pid: int) -> dict[str, str]:
    """The fields of its /proc status; none where it has ended."""
    lines = _bytes(pid, "status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def unique_seconds(seconds: int) -> str:
    """Return an argument of sleep(1) that no other run of the tests on this machine uses: `started_as` finds it."""
    return f"{seconds}.{os.getpid()}"


def started_as(*words: str) -> list[int]:
    """The living processes of this machine whose arguments begin with these."""
    wanted = "".join(f"{word}\0" for word in words)
    return [pid for pid in _pids() if _bytes(pid, "cmdline").startswith(wanted) and not gone(pid)]


def mentioning(text: str) -> list[Process]:
    """Every other process that has `text` in its arguments, environment or folder."""
    return [
        it for it in _others() if text in f"{it.command} {_bytes(it.pid, 'environ')} {_folder(it.pid)}" and it.lives
    ]


def inheriting(text: str) -> list[Process]:
    """Every other process that has `text` in its environment, which children inherit."""
    return [it for it in _others() if text in _bytes(it.pid, "environ") and it.lives]


def command_of(pid: int) -> str:
    """Its arguments, separated by spaces; empty where it has ended."""
    return _bytes(pid, "cmdline").replace("\0", " ")


def commands() -> Iterator[str]:
    """The arguments of every process of this machine."""
    return (command_of(pid) for pid in _pids())


def _others() -> Iterator[Process]:
    for pid in _pids():
        stat = _stat(pid)
        if stat is not None and pid != os.getpid():
            yield Process(pid, stat[19], command_of(pid))


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208 — ten times a second


def _stat(pid: int) -> list[str] | None:
    """What follows the name: state, parent …, start time as item 19. None where it has ended (proc_pid_stat(5))."""
    text = _bytes(pid, "stat")
    return text.rpartition(")")[2].split() if text else None


def _bytes(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended, or is hidden even from root
        return ""


def _folder(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # likewise
        return ""
