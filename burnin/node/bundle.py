"""Runs on a node: many probes at once over one SSH session, none of which can hang the others.

Standard library only, Python 3.9. The controller sends this file to `python3 -`, followed by one line that calls `main`
with the list of probes. It prints one JSON document and nothing else.

Each probe runs in a session of its own with its own time-out; at the time-out, and when the probe is over, everything
left of it is killed. What left its session on purpose is killed at the end: we adopt it (a subreaper, prctl(2)). What
cannot be killed (a process that sleeps in the kernel) is left behind, not waited for.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ctypes
import json
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

VERSION = 1
LAB_MARKER = Path("/etc/clusterctl-lab/origin")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C", "HOME": os.environ.get("HOME", "/")}
SET_CHILD_SUBREAPER = 36  # linux/prctl.h
RETRY_PAUSE = 0.2  # between two tries of a probe that says when to try again
HTTP_GET = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(sys.argv[1]) as answer:
    sys.stdout.buffer.write(answer.read())
"""
CPU_SHARE = """
import json, os, random, sys, time
WORK, GOOD, FIRST = 0.05, 0.9, -20
end, pause, tries = time.monotonic() + float(sys.argv[1]), 0.1, []
os.setpriority(os.PRIO_PROCESS, 0, FIRST)
if os.path.exists("/proc/self/autogroup"):
    with open("/proc/self/autogroup", "w") as file:
        file.write(str(FIRST))
def runnable():
    with open("/proc/loadavg") as file:
        return int(file.read().split()[3].split("/")[0])
while True:
    others, began, spent = runnable(), time.monotonic(), time.process_time()
    while time.process_time() - spent < WORK:
        pass
    share = (time.process_time() - spent) / (time.monotonic() - began)
    tries.append({"share": round(share, 4), "runnable": max(others, runnable())})
    if share >= GOOD or time.monotonic() + pause > end:
        break
    time.sleep(pause * random.uniform(0.5, 1.5))
    pause = min(2 * pause, 4.0)
json.dump({"cpus": len(os.sched_getaffinity(0)), "tries": tries}, sys.stdout)
"""
BUILT_IN = {"http-get": HTTP_GET, "cpu-share": CPU_SHARE}


def run_probe(probe: dict[str, Any]) -> dict[str, Any]:
    """Run one probe, again and again while it fails with its `retry_on` text, and tell how it ended."""
    began, started = time.time(), time.monotonic()
    limit = started + probe["timeout"]
    while True:
        status, rc, stdout, stderr = run_once(command(probe["argv"]), limit, probe["max_bytes"])
        retry_on = probe.get("retry_on")
        if status != "ok" or rc == 0 or not retry_on or retry_on not in stderr + stdout:
            break
        if time.monotonic() + RETRY_PAUSE >= limit:
            break
        time.sleep(RETRY_PAUSE)
    return {
        "argv": probe["argv"],
        "status": status,
        "rc": rc,
        "stdout": stdout,
        "stderr": stderr,
        "started": began,
        "seconds": round(time.monotonic() - started, 3),
    }


def command(argv: list[str]) -> list[str]:
    """Programs that are built in. `http-get URL` asks without a proxy and needs no curl. `cpu-share SECONDS` does a
    fixed amount of work, before all others by its priority (so it needs root), again and again until it gets nearly a
    whole processor for it, or the time is up: what other work there is does not hold it up, a quota does.
    """
    program = BUILT_IN.get(argv[0])
    return argv if program is None else [sys.executable, "-I", "-c", program, *argv[1:]]


def run_once(argv: list[str], limit: float, max_bytes: int) -> tuple[str, int | None, str, str]:
    """Run `argv` until it ends or `time.monotonic()` passes `limit`: status, exit code, stdout, stderr."""
    if shutil.which(argv[0], path=PATH) is None:
        return "missing", None, "", ""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    except OSError as error:
        return "missing", None, "", str(error)
    output = drain(process, limit, max_bytes)
    while not is_over(process) and time.monotonic() < limit:
        time.sleep(0.02)  # it has closed its output and goes on
    in_time = is_over(process)
    kill_session(process.pid)
    for pipe in pipes(process):
        pipe.close()
    reap(process)
    stdout, stderr = output
    return ("ok", process.returncode, stdout, stderr) if in_time else ("timeout", None, stdout, stderr)


def is_over(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, leaving it unreaped, so that its session's number cannot be taken by another."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def drain(process: subprocess.Popen[bytes], limit: float, max_bytes: int) -> list[str]:
    """Read both pipes, keeping at most `max_bytes` of each, until the process is over or `limit` is reached.

    A grandchild that holds the pipes open does not keep us once the probe itself is over and they fall silent.
    """
    kept = {pipe.fileno(): bytearray() for pipe in pipes(process)}
    with selectors.DefaultSelector() as selector:
        for descriptor in kept:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left = limit - time.monotonic()
            if left <= 0:
                break
            over = is_over(process)
            ready = selector.select(0 if over else min(left, 0.1))
            for key, _ in ready:
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    selector.unregister(key.fd)
                room = max_bytes - len(kept[key.fd])
                kept[key.fd] += chunk[: max(0, room)]
            if over and not ready:
                break
    return [bytes(text).decode("utf-8", "replace") for text in kept.values()]


def pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """Its stdout and stderr."""
    if process.stdout is None or process.stderr is None:
        raise RuntimeError("the probe was started without pipes")
    return process.stdout, process.stderr


def processes() -> Iterator[tuple[int, int, int]]:
    """Pid, parent and session of every process there is."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # it ended while we looked
        yield int(entry.name), int(fields[1]), int(fields[3])


def kill_session(leader: int) -> None:
    """Kill every process of the session that the probe led, whatever groups it made in it."""
    for pid, _, session in processes():
        if session == leader:
            kill(pid)


def kill_adopted() -> None:
    """Kill what probes left behind outside their sessions, until nothing new is there."""
    killed: set[int] = set()
    while True:
        found = {pid for pid, parent, _ in processes() if parent in killed | {os.getpid()}} - killed
        if not found:
            return
        for pid in found:
            kill(pid)
        killed |= found


def kill(pid: int) -> None:
    with contextlib.suppress(OSError):  # it has ended, or is not ours to kill
        os.kill(pid, signal.SIGKILL)


def reap(process: subprocess.Popen[bytes]) -> None:
    """Collect a killed process; one that the kernel does not let go is left to init."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)


def read_text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def main(spec: dict[str, Any]) -> None:
    """Run the probes of `spec` and print the document."""
    started = time.time()
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    probes = spec["probes"]
    BUILT_IN.update(spec.get("programs", {}))
    document: dict[str, Any] = {
        "version": VERSION,
        "origin": "simulated" if LAB_MARKER.exists() else "real",
        "host": platform.node(),
        "boot_id": read_text(BOOT_ID),
        "started": started,
    }
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, spec["parallel"])) as pool:
        results = pool.map(run_probe, probes)
        document["probes"] = {probe["name"]: result for probe, result in zip(probes, results)}  # noqa: B905 — Python 3.9
    kill_adopted()
    document["finished"] = time.time()
    json.dump(document, sys.stdout)
    sys.stdout.flush()
