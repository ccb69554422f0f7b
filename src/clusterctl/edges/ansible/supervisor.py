"""Runs one ansible-runner job, and leaves no process and no file of it behind. A program of its own.

    python -I supervisor.py      stdin: one line of JSON, the job; then empty lines as signs of life, until it is closed
                                 stdout: one line of JSON per event, the last one is `end`

Ansible forks workers, which start ssh, with control masters that detach into sessions of their own; the terminal that
ansible-runner gives Ansible is a session as well. Killing a process group or a session therefore leaves some alive. So
this program is the reaper of all its descendants (`PR_SET_CHILD_SUBREAPER`, prctl(2)): detached processes become its
children, and it ends only when no descendant lives. That needs no privilege and no cgroup. It also ends the job when
its stdin closes (the caller is cancelled or killed), and when nothing comes from the caller for `silence_s` (a stopped
caller has lost its claims, and another controller may own the hosts).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

PR_SET_CHILD_SUBREAPER = 36
TEXT_LIMIT = 8192  # twice KEPT of the transcript: a secret that is clipped here is beyond what the transcript keeps
BRACKETS_LIMIT = 200
UNREADABLE = "(the task returned a value that is too large or too deep to report)"
ROOM_BYTES = 1 << 16
REPORTED_EVENTS = frozenset(
    {
        "runner_on_start",
        "runner_on_ok",
        "runner_on_failed",
        "runner_on_skipped",
        "runner_on_unreachable",
        "runner_item_on_failed",
        "playbook_on_stats",
    }
)
RESULT_FIELDS = (
    "changed",
    "msg",
    "rc",
    "stdout",
    "stderr",
    "module_stdout",
    "module_stderr",
    "censored",
    "skip_reason",
)
END_LOCK = threading.Lock()
"""Its holder ends this process: the finished play, or the watch over the caller."""
STATS_FIELDS = ("changed", "dark", "failures", "ok", "processed")


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its parent."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def parents() -> dict[int, int]:
    """Return the parent of every process, by process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # the process has ended meanwhile
                continue
            found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants(ancestor: int) -> Iterator[int]:
    """Yield all descendants of a process."""
    parent_of = parents()
    children: dict[int, list[int]] = {}
    for pid, parent in parent_of.items():
        children.setdefault(parent, []).append(pid)
    waiting = list(children.get(ancestor, ()))
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


def kill_descendants() -> None:
    """Kill and reap all descendants, also those that fork meanwhile."""
    while True:
        killed = 0
        for pid in list(descendants(os.getpid())):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed += 1
        try:
            os.waitpid(-1, 0 if killed else os.WNOHANG)
        except ChildProcessError:
            return


def caller_is_silent(silence_s: float) -> bool:
    """Read stdin until nothing comes for so long (return True), or until it is closed (return False)."""
    while select.select([0], [], [], silence_s)[0]:
        if not os.read(0, 4096):
            return False
    return True


def end_with_caller(private_dir: str, silence_s: float, wind_down: Callable[[], None], out: TextIO) -> None:
    """Wait until stdin closes or is silent for so long; then end everything, this program included."""
    silent = caller_is_silent(silence_s)
    END_LOCK.acquire()
    wind_down()
    kill_descendants()
    remove(private_dir)
    if silent:
        output = f"the controller was stopped for {silence_s:.0f} s, so the play was ended"
        end = {"event": "end", "status": "ended", "rc": None, "output": output, "full": ""}
        with contextlib.suppress(OSError):
            out.write(json.dumps(end) + "\n")
            out.flush()
    os._exit(1)


def remove(private_dir: str) -> None:
    """Remove the folder; rename it first, because ansible-runner's thread may still write to it.

    Errors are not reported: the next run sweeps what is left.
    """
    doomed = f"{private_dir}.gone"
    with contextlib.suppress(OSError):
        Path(private_dir).rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def clipped(value: Any) -> Any:
    """Return a text clipped to the limit, and any other value unchanged, unless it is large, deep or no JSON."""
    if isinstance(value, str):
        return value[:TEXT_LIMIT]
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return UNREADABLE
    return value if len(text) <= TEXT_LIMIT and text.count("[") + text.count("{") <= BRACKETS_LIMIT else UNREADABLE


def line_of(event: dict[str, Any]) -> str:
    """Return an event's line; of one that cannot be read, only what it is about: one host spoils no other's events."""
    try:
        return json.dumps(summary(event))
    except Exception as error:  # noqa: BLE001 — a module of any host may return any value
        data = event.get("event_data") or {}
        about: dict[str, Any] = {name: str(data.get(name, "")) for name in ("host", "role", "task", "task_action")}
        about["res"] = {"msg": f"{UNREADABLE}: {type(error).__name__}"}
        return json.dumps(summary({"event": event["event"], "event_data": about}))


def summary(event: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an event for outcomes and evidence: never module arguments, facts or environments."""
    data = event.get("event_data") or {}
    kind = event["event"]
    if kind == "playbook_on_stats":
        return {"event": kind, **{name: data.get(name) or {} for name in STATS_FIELDS}}
    result = data.get("res") or {}
    return {
        "event": kind,
        "host": data.get("host", ""),
        "role": data.get("role", ""),
        "task": data.get("task", ""),
        "action": data.get("task_action", ""),
        "ignored": bool(data.get("ignore_errors")),
        "seconds": round(data.get("duration") or 0.0, 3),
        "result": {name: clipped(result[name]) for name in RESULT_FIELDS if name in result},
    }


def play(job: dict[str, Any], out: TextIO) -> dict[str, Any]:
    """Run the job and write its events; return status, exit code and the end of Ansible's output."""
    from ansible_runner.interface import run  # noqa: PLC0415 — slow to import: the watch over the caller starts first

    def report(event: dict[str, Any]) -> bool:
        if event["event"] in REPORTED_EVENTS:
            out.write(line_of(event) + "\n")
            out.flush()
        return True  # otherwise ansible-runner drops the event, its statistics included

    runner = run(
        private_data_dir=job["private_dir"],
        project_dir=job["project_dir"],
        playbook=job["playbook"],
        inventory=job["inventory"],
        roles_path=job["roles_path"],
        cmdline=job["flags"],
        settings={"pexpect_timeout": 1},
        fact_cache_type="memory",  # jsonfile writes files that all users may read
        event_handler=report,
        quiet=True,
    )
    with runner.stdout as output:
        tail = output.read()[-TEXT_LIMIT:]
    return {"event": "end", "status": runner.status, "rc": runner.rc, "output": tail}


def has_room(private_dir: str) -> bool:
    """Return whether the disk of the folder has room. Without room, Ansible's results about hosts mean nothing."""
    try:
        with tempfile.TemporaryFile(dir=private_dir, buffering=0) as probe:
            return probe.write(bytes(ROOM_BYTES)) == ROOM_BYTES
    except OSError:
        return False


def disk_was_full(output: str) -> bool:
    """Return whether Ansible's last line reports a full disk, which may have room again after its end."""
    last = output.strip().rpartition("\n")[2]
    return any(os.strerror(code) in last for code in (errno.ENOSPC, errno.EDQUOT))


def redirect_output(private_dir: str) -> None:
    """Redirect the output of libraries to a file of the run: stdout is for events."""
    quiet = os.open(Path(private_dir) / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def main() -> int:
    serve(json.loads(os.fdopen(os.dup(0), "r", buffering=1, encoding="utf-8").readline()))
    return 0


def serve(
    job: dict[str, Any], *, wind_down: Callable[[], None] = kill_descendants, keep_children: bool = False
) -> None:
    """Run the job, then end this process. `wind_down` runs before the killing when the caller is gone.

    With `keep_children`, processes that the roles have started survive a finished play.
    """
    os.umask(0o077)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    adopt_orphans()
    watched = (job["private_dir"], job["silence_s"], wind_down, out)
    threading.Thread(target=end_with_caller, args=watched, daemon=True).start()
    try:
        redirect_output(job["private_dir"])
        end = play(job, out)
    except Exception as error:  # noqa: BLE001 — the caller raises it
        end = {"event": "end", "status": "error", "rc": None, "output": f"{type(error).__name__}: {error}"}
    END_LOCK.acquire()
    if not keep_children:
        kill_descendants()
    full = disk_was_full(end["output"]) or not has_room(job["private_dir"])
    end["full"] = str(Path(job["private_dir"]).parent) if full else ""
    remove(job["private_dir"])
    out.write(json.dumps(end) + "\n")
    out.flush()
    os._exit(0)  # the watching thread blocks in read(2)


if __name__ == "__main__":
    sys.exit(main())
