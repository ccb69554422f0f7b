"""Runs on a node: what was added to a job's log and event files since the last look, and its heartbeat file's time.

Standard library only, Python 3.9. The controller sends this file to `python3 -`, followed by one line that calls
`main`. The process takes the rights of the job's user before it opens a file: the user chose the paths.
"""

from __future__ import annotations

import base64
import json
import os
import pwd
import stat
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

MOST_EVENT_FILES = 2000
DEPTH = 4


def become(uid: int, gid: int) -> None:
    """Take the rights of a user, where this process may."""
    if os.geteuid() != 0 or uid == 0:
        return
    try:
        groups = os.getgrouplist(pwd.getpwuid(uid).pw_name, gid)
    except KeyError:
        groups = [gid]
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)


def added(path: str, offset: int, most: int) -> Dict[str, Any]:
    """Return `{"offset", "content"}` of a plain file: at most `most` bytes from `offset` on; `{"error"}` of others."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return {"error": error.strerror}
    with os.fdopen(number, "rb") as file:
        about = os.fstat(number)
        if not stat.S_ISREG(about.st_mode):
            return {"error": "is no plain file"}
        begin = offset if offset <= about.st_size else 0  # it was cut: read it again
        file.seek(begin)
        content = file.read(most)
    return {"offset": begin + len(content), "content": base64.b64encode(content).decode()}


def event_files(path: Path, since: float, depth: int = DEPTH) -> Iterator[Path]:
    """Yield the event files of a folder and of those in it that were written since a time; a plain file is one."""
    if path.is_file():
        yield path
        return
    for entry in sorted(os.scandir(path), key=lambda one: one.name)[:MOST_EVENT_FILES]:
        if entry.is_dir(follow_symlinks=False) and depth > 1:
            yield from event_files(Path(entry.path), since, depth - 1)
        elif "tfevents" in entry.name and entry.is_file() and entry.stat().st_mtime >= since:
            yield Path(entry.path)


def events(wish: Dict[str, Any], most: int) -> Dict[str, Any]:
    """Return what was added to the event file that was written last: `added` with its `file` and the `start`."""
    try:
        found = list(event_files(Path(wish["path"]), float(wish["since"])))
        newest = max(found, key=lambda one: (one.stat().st_mtime, one.name), default=None)
    except OSError as error:
        return {"error": error.strerror}
    if newest is None:
        return {}
    start = int(wish["offset"]) if str(newest) == wish["file"] else 0
    if start >= newest.stat().st_size:
        return {}
    return {**added(str(newest), start, most), "file": str(newest), "start": start}


def touched(path: str) -> Optional[float]:
    """Return when a file was last written, in seconds since 1970; None where it is not there."""
    try:
        return Path(path).stat().st_mtime if path else None
    except OSError:
        return None


def main(request: Dict[str, Any]) -> None:
    """Print `{"version", "log": {…}, "events": {…}, "heartbeat"}`."""
    become(int(request["uid"]), int(request["gid"]))
    log = added(request["path"], int(request["offset"]), int(request["most"]))
    answer = {"version": 1, "log": log, "heartbeat": touched(request["heartbeat"])}
    if request["events"]["path"]:
        answer["events"] = events(request["events"], int(request["most"]))
    json.dump(answer, sys.stdout)
