"""Stacks of processes: `py-spy dump --json`, and /proc/PID/stack of the kernel."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.documents import read_document

MAX_FRAMES = 64
_MAIN = "MainThread"
_KERNEL = re.compile(r"^\[<[0-9a-fx]{1,18}>\] (?P<name>[\w.]{1,128})")
_FOLDERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    name: str
    filename: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thread:
    frames: tuple[_Frame, ...]
    thread_name: str | None = None
    active: bool = False
    owns_gil: bool = False


def parse_dump(text: str, *, where: str) -> tuple[str, ...]:
    """Return the frames of the main thread, innermost first, as `function (folder/file.py:12)`.

    Without a main thread, those of the thread that holds the interpreter's lock, else of the first. Raises
    `ParseError`.
    """
    threads = read_document(tuple[_Thread, ...], text, where)
    if not threads:
        raise ParseError("holds no thread", where=where)
    ordered = sorted(threads, key=lambda one: (one.thread_name != _MAIN, not one.owns_gil, not one.active))
    return tuple(_frame(frame) for frame in ordered[0].frames[:MAX_FRAMES])


def _frame(frame: _Frame) -> str:
    place = "/".join(frame.filename.split("/")[-_FOLDERS:])
    return visible_line(f"{frame.name} ({place}:{frame.line})" if place else frame.name, 200)


def parse_kernel_stack(text: str) -> tuple[str, ...]:
    """Return the functions of /proc/PID/stack, innermost first; none where the process is not in the kernel."""
    found = (_KERNEL.match(line) for line in text.splitlines()[:MAX_FRAMES])
    return tuple(match["name"] for match in found if match)
