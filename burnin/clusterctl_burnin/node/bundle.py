"""Runs on a node: many probes at once over one SSH session, none of which can hang the others.

Standard library only, Python 3.9. The controller sends this file to `python3 -`, followed by one line that calls `main`
with the list of probes. It prints one JSON document and nothing else.

Each probe runs in a session of its own with its own time-out; at the time-out, and when the probe is over, everything
left of it is killed. What left its session on purpose is killed at the end: we adopt it (a subreaper, prctl(2)). What
cannot be killed (a process that sleeps in the kernel, or forks faster than it can be caught) is left behind, not waited
for: every other probe's result is printed all the same.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import platform
import queue
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator

VERSION = 1
SIMULATED = Path("/etc/clusterctl/simulated")  # marks a host whose parts are simulated
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {
    "PATH": PATH,
    "LC_ALL": "C",
    "HOME": os.environ.get("HOME", "/"),
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # CUDA then counts GPUs as nvidia-smi does
}
SET_CHILD_SUBREAPER = 36  # linux/prctl.h
RETRY_PAUSE = 0.2  # between two tries of a probe that says when to try again
AGAIN = "=== read again after {:.3f} s ==="  # the line between the two outputs of a probe that is read twice
FLUSH = 1.0  # seconds for what is left in the pipes of a probe that is over
GIVE_UP = 10.0  # seconds past its time-out, after which a probe that cannot even be killed is left alone
CHASE = 5.0  # seconds for killing what leaves its session again and again
LAUNCHER = "/usr/bin/env"  # a program's file may hang when it is opened: whoever called vfork(2) stands still till then
BUILT_IN: dict[str, list[str]] = {}  # by name: the text of the program, and of the worker that it starts

Probe = Dict[str, Any]
Result = Dict[str, Any]


def told(probe: Probe, began: float, status: str, **more: Any) -> Result:
    """The result of a probe that was begun at `began` (`time.time()`)."""
    said = {"argv": probe["argv"], "status": status, "rc": None, "stdout": "", "stderr": ""}
    return {**said, **more, "started": began, "seconds": round(max(0.0, time.time() - began), 3)}


def run_probe(probe: Probe) -> Result:
    """Run one probe, and a second time where it is to be read twice, and tell how it ended."""
    began, limit = time.time(), time.monotonic() + probe["timeout"]
    first = time.monotonic()
    status, rc, stdout, stderr = run_with_retries(probe, limit)
    pause = probe.get("again_after")
    if pause and status == "ok" and rc == 0:
        time.sleep(max(0.0, min(first + pause, limit) - time.monotonic()))
        head = AGAIN.format(time.monotonic() - first)
        status, rc, second, stderr = run_once(command(probe["argv"]), limit, probe["max_bytes"])
        stdout = "\n".join((stdout.rstrip("\n"), head, second))
    return told(probe, began, status, rc=rc, stdout=stdout, stderr=stderr)


def run_with_retries(probe: Probe, limit: float) -> tuple[str, int | None, str, str]:
    """Run one probe, again and again while it fails with its `retry_on` text: as `run_once`."""
    while True:
        status, rc, stdout, stderr = run_once(command(probe["argv"]), limit, probe["max_bytes"])
        retry_on = probe.get("retry_on")
        if status != "ok" or rc == 0 or not retry_on or retry_on not in stderr + stdout:
            break
        if time.monotonic() + RETRY_PAUSE >= limit:
            break
        time.sleep(RETRY_PAUSE)
    return status, rc, stdout, stderr


def command(argv: list[str]) -> list[str]:
    """Return the command line that runs `argv`: a program that came with the probes runs in this Python.

    On a simulated host an installed program of the same name comes first: ours would read the real hardware below.
    """
    replaced = SIMULATED.exists() and shutil.which(argv[0], path=PATH)
    texts = None if replaced else BUILT_IN.get(argv[0])
    return argv if texts is None else [sys.executable, "-I", "-c", *texts, *argv[1:]]


def run_once(argv: list[str], limit: float, max_bytes: int) -> tuple[str, int | None, str, str]:
    """Run `argv` until it ends or `time.monotonic()` passes `limit`: status, exit code, stdout, stderr."""
    if shutil.which(argv[0], path=PATH) is None:
        return "missing", None, "", ""
    try:
        process = subprocess.Popen(
            [LAUNCHER, "--", *argv],
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

    A grandchild that holds the pipes open does not keep us once the probe itself is over: until they fall silent, and
    for `FLUSH` seconds at most.
    """
    kept = {pipe.fileno(): bytearray() for pipe in pipes(process)}
    ended = False
    with selectors.DefaultSelector() as selector:
        for descriptor in kept:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left = limit - time.monotonic()
            if left <= 0:
                break
            over = is_over(process)
            if over and not ended:
                ended, limit = True, min(limit, time.monotonic() + FLUSH)
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
    """Kill what probes left behind outside their sessions, until nothing new is there, for `CHASE` seconds at most."""
    killed: set[int] = set()
    until = time.monotonic() + CHASE
    while time.monotonic() < until:
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


class Sweep:
    """Runs probes side by side, `parallel` at a time. One that hangs in the kernel loses its place to the next.

    Those that only wait (`waits`) are begun first and take no place.
    """

    def __init__(self, parallel: int, run: Callable[[Probe], Result] = run_probe, give_up: float = GIVE_UP) -> None:
        self.parallel, self.run, self.give_up = max(1, parallel), run, give_up
        self.over: queue.SimpleQueue[tuple[Probe, Result]] = queue.SimpleQueue()
        self.running: dict[str, tuple[Probe, float, float]] = {}  # by name; when begun, when given up (monotonic)

    def free(self) -> bool:
        return sum(not probe["waits"] for probe, _, _ in self.running.values()) < self.parallel

    def results(self, probes: list[Probe]) -> dict[str, Result]:
        """By name, in the order of `probes`: each has one, whatever happens to it."""
        found: dict[str, Result] = {}
        waiting = collections.deque(sorted(probes, key=lambda probe: not probe["waits"]))
        while waiting or self.running:
            while waiting and (waiting[0]["waits"] or self.free()):
                self.start(waiting.popleft())
            first = min(until for _, _, until in self.running.values())
            with contextlib.suppress(queue.Empty):
                probe, result = self.over.get(timeout=max(0.01, first - time.monotonic()))
                if self.running.pop(probe["name"], None):
                    found[probe["name"]] = result
            for name, (probe, began, until) in list(self.running.items()):
                if time.monotonic() > until:
                    del self.running[name]
                    found[name] = told(probe, began, "timeout", stderr="it cannot be killed")
        return {probe["name"]: found[probe["name"]] for probe in probes}

    def start(self, probe: Probe) -> None:
        began, until = time.time(), time.monotonic() + probe["timeout"] + self.give_up
        self.running[probe["name"]] = probe, began, until
        try:
            threading.Thread(target=self.work, args=(probe, began), daemon=True).start()
        except RuntimeError as error:  # no more threads
            self.over.put((probe, told(probe, began, "missing", stderr=str(error))))

    def work(self, probe: Probe, began: float) -> None:
        try:
            result = self.run(probe)
        except Exception as error:  # noqa: BLE001 — one probe's mishap is its own result
            result = told(probe, began, "missing", stderr=f"{type(error).__name__}: {error}")
        self.over.put((probe, result))


def main(spec: dict[str, Any]) -> None:
    """Run the probes of `spec` and print the document."""
    started = time.time()
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    BUILT_IN.update(spec.get("programs", {}))
    ENVIRONMENT["CLUSTERCTL_REQUIREMENTS"] = json.dumps(spec.get("requirements", {}))
    ENVIRONMENT["CLUSTERCTL_PATIENCE"] = str(spec.get("patience", 1.0))
    document: dict[str, Any] = {
        "version": VERSION,
        "origin": "simulated" if SIMULATED.exists() else "real",
        "host": platform.node(),
        "boot_id": BOOT_ID.read_text().strip() if BOOT_ID.exists() else "",
        "started": started,
        "probes": Sweep(spec["parallel"]).results(spec["probes"]),
    }
    kill_adopted()
    document["finished"] = time.time()
    json.dump(document, sys.stdout)
    sys.stdout.flush()
