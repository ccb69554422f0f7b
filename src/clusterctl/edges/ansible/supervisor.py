"""Runs one ansible-runner job and leaves nothing of it behind. A program of its own, never imported by the controller.

    python -I supervisor.py      stdin: one line of JSON, the job; then an empty line now and then, until it is closed
                                 stdout: one line of JSON per event, the last one is `end`

Ansible forks workers, which start ssh, whose control masters detach into sessions of their own; the terminal that
ansible-runner gives Ansible is a session as well. Killing a process group or a session therefore leaves some alive. So
this program makes itself the reaper of all its descendants (`PR_SET_CHILD_SUBREAPER`, prctl(2)): whatever detaches
comes back to it, and it ends only when no descendant lives. That needs no privilege and no cgroup. It does the same
when its stdin closes, so a caller that is cancelled, or dies of `kill -9`, takes the job with it; and when nothing
comes from it for `silence_s`, since a caller that was stopped does not know that its hosts are another's by now.
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
TEXT_LIMIT = 8192  # twice what is kept: a secret that is cut here is cut off there, after the whole ones are masked
ROOM_BYTES = 1 << 16
TOLD = frozenset(
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
LAST_WORD = threading.Lock()
"""Whoever has it ends this process: the play that is over, or the watch over its caller."""
STATS_FIELDS = ("changed", "dark", "failures", "ok", "processed")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose parent ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER) failed")


def parents() -> dict[int, int]:
    """Every process's parent, by process id, as `/proc` has it now."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:  # it ended while we looked
                continue
            found[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants(ancestor: int) -> Iterator[int]:
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
    """Kill and reap until none is left: a process that forks while we look comes back as our child."""
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


def fell_silent(silence_s: float) -> bool:
    """Reads stdin until nothing comes for so long (True), or until it is closed (False)."""
    while select.select([0], [], [], silence_s)[0]:
        if not os.read(0, 4096):
            return False
    return True


def end_with_caller(private_dir: str, silence_s: float, ease: Callable[[], None], out: TextIO) -> None:
    """Wait until stdin closes, or nothing comes from it for so long; then end everything, this program included.

    A caller that is silent was stopped: it no longer keeps its claims, and the hosts may be another's by now.
    """
    silent = fell_silent(silence_s)
    LAST_WORD.acquire()
    ease()
    kill_descendants()
    remove(private_dir)
    if silent:
        said = f"the controller was stopped for {silence_s:.0f} s, so the play was ended"
        end = {"event": "end", "status": "ended", "rc": None, "output": said, "full": ""}
        with contextlib.suppress(OSError):
            out.write(json.dumps(end) + "\n")
            out.flush()
    os._exit(1)


def remove(private_dir: str) -> None:
    """Take the folder away under its name first: ansible-runner, in its own thread, may still want to write there.

    Nobody is left to hear of an error: what stays here the next run sweeps.
    """
    doomed = f"{private_dir}.gone"
    with contextlib.suppress(OSError):
        Path(private_dir).rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def clipped(value: Any) -> Any:
    return value[:TEXT_LIMIT] if isinstance(value, str) else value


def told(event: dict[str, Any]) -> dict[str, Any]:
    """The part of an event that outcomes and evidence need: never module arguments, facts or environments."""
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
    """Run the job, telling events as they come; the last word: status, exit code, the end of Ansible's own output."""
    from ansible_runner.interface import run  # noqa: PLC0415 — slow to import: the caller's death is watched first

    def tell(event: dict[str, Any]) -> bool:
        if event["event"] in TOLD:
            out.write(json.dumps(told(event)) + "\n")
            out.flush()
        return True  # anything else makes ansible-runner forget the event, its statistics included

    runner = run(
        private_data_dir=job["private_dir"],
        project_dir=job["project_dir"],
        playbook=job["playbook"],
        inventory=job["inventory"],
        roles_path=job["roles_path"],
        cmdline=job["flags"],
        settings={"pexpect_timeout": 1},
        fact_cache_type="memory",  # the other one, jsonfile, writes files that all may read
        event_handler=tell,
        quiet=True,
    )
    with runner.stdout as output:
        tail = output.read()[-TEXT_LIMIT:]
    return {"event": "end", "status": runner.status, "rc": runner.rc, "output": tail}


def has_room(private_dir: str) -> bool:
    """Whether the disk under the folder takes anything more: if not, what Ansible says of hosts means nothing."""
    try:
        with tempfile.TemporaryFile(dir=private_dir, buffering=0) as probe:
            return probe.write(bytes(ROOM_BYTES)) == ROOM_BYTES
    except OSError:
        return False


def broke_off_for_room(output: str) -> bool:
    """Whether the last word of Ansible is that a disk was full: its own, which has room again now that it has ended."""
    last = output.strip().rpartition("\n")[2]
    return any(os.strerror(code) in last for code in (errno.ENOSPC, errno.EDQUOT))


def keep_quiet(private_dir: str) -> None:
    """What libraries print goes into a file of the run: our own stdout is for events."""
    quiet = os.open(Path(private_dir) / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def main() -> int:
    serve(json.loads(os.fdopen(os.dup(0), "r", buffering=1, encoding="utf-8").readline()))
    return 0


def serve(job: dict[str, Any], *, ease: Callable[[], None] = kill_descendants, spares: bool = False) -> None:
    """Run the job, then end this process. `ease` goes before the killing when the caller is gone.

    With `spares` a play that came to its end leaves running what its roles have started.
    """
    os.umask(0o077)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    adopt_orphans()
    watched = (job["private_dir"], job["silence_s"], ease, out)
    threading.Thread(target=end_with_caller, args=watched, daemon=True).start()
    try:
        keep_quiet(job["private_dir"])
        end = play(job, out)
    except Exception as error:  # noqa: BLE001 — told to the caller, which raises it as its own
        end = {"event": "end", "status": "error", "rc": None, "output": f"{type(error).__name__}: {error}"}
    LAST_WORD.acquire()
    if not spares:
        kill_descendants()
    full = broke_off_for_room(end["output"]) or not has_room(job["private_dir"])
    end["full"] = str(Path(job["private_dir"]).parent) if full else ""
    remove(job["private_dir"])
    out.write(json.dumps(end) + "\n")
    out.flush()
    os._exit(0)  # the watching thread sits in read(2)


if __name__ == "__main__":
    sys.exit(main())
