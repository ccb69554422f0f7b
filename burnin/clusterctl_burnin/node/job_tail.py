"""Runs on a node: what was added to a job's log since the last look, and when a heartbeat file was last written.

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
from typing import Any, Dict, Optional


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


def touched(path: str) -> Optional[float]:
    """Return when a file was last written, in seconds since 1970; None where it is not there."""
    try:
        return Path(path).stat().st_mtime if path else None
    except OSError:
        return None


def main(request: Dict[str, Any]) -> None:
    """Print `{"version", "log": {…}, "heartbeat"}`."""
    become(int(request["uid"]), int(request["gid"]))
    log = added(request["path"], int(request["offset"]), int(request["most"]))
    json.dump({"version": 1, "log": log, "heartbeat": touched(request["heartbeat"])}, sys.stdout)
