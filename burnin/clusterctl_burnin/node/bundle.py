"""Runs on a node: many probes at once over one SSH session. No probe can hang the others.

Standard library only, Python 3.9. The controller sends this file with `processes.py` to `python3 -` and calls `main`
with the probes. It prints one JSON document and nothing else.

Each probe runs in a session of its own with its own time-out. At the time-out everything left of its session is killed,
and when the probe has ended everything left of its process group. All other processes that probes have started are
killed at the end. A process that cannot be killed is left behind: the results of all other probes are printed
nevertheless.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path

from clusterctl_burnin.node.processes import (
    REAP,
    Ended,
    Forked,
    adopt_orphans,
    attend,
    be_program,
    kill_descendants,
    run,
    simulated,
)

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn

    Probe = dict[str, Any]
    Result = dict[str, Any]

VERSION = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ENVIRONMENT = {
    "PATH": PATH,
    "LC_ALL": "C",
    "HOME": os.environ.get("HOME", "/"),
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # CUDA then counts GPUs as nvidia-smi does
}
RETRY_PAUSE = 0.2  # between two tries of a probe that asks for another try
AGAIN = "=== read again after {:.3f} s ==="  # the line between the two outputs of a probe that is read twice
GIVE_UP = 10.0  # seconds past its time-out, after which a probe that cannot even be killed is left alone
LAUNCHER = "/usr/bin/env"  # a program's file may hang when it is opened: the caller of vfork(2) waits until then
BUILT_IN: dict[str, list[str]] = {}  # by name: the text of the program, and of the worker that it starts
LOADER: list[str] = []  # the text of a program that provides `processes.py` to the one after it, and the text of that
USES_PROCESSES = "from clusterctl_burnin.node.processes import"
PYTHON_OPTIONS = ("-I", "-S")  # the standard library only: without the site packages and their start-up files


class Prepared(Forked):
    """A copy of this process that waits for `begin`, and then is the built-in program.

    A start of Python and the imports of a program take ten times as long. It has a session of its own, and ends with
    us.
    """

    def __init__(self, texts: list[str], arguments: list[str]) -> None:
        ends = [os.pipe() for _ in range(3)]
        (waits, self.go), (out, wout), (err, werr) = ends
        super().__init__()
        if not self.pid:
            become(texts, arguments, (waits, wout, werr))
        for descriptor in (waits, wout, werr):
            os.close(descriptor)
        self.stdout, self.stderr = os.fdopen(out, "rb", 0), os.fdopen(err, "rb", 0)

    def begin(self) -> None:
        os.write(self.go, b"x")
        os.close(self.go)


def become(texts: list[str], arguments: list[str], descriptors: tuple[int, int, int]) -> NoReturn:
    """Wait for the order in a session of our own, be the program, and end as Python would."""
    code = 1
    try:
        os.setsid()
        waits, out, err = descriptors
        nowhere = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((out, 1), (err, 2), (waits, 3), (nowhere, 0)):
            os.dup2(source, target)
        os.closerange(4, max(*descriptors, nowhere) + 1)
        if not os.read(3, 1):  # the bundle has ended
            os._exit(0)
        os.close(3)
        sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(ENVIRONMENT)
        sys.argv[:] = ["-c", *texts[1:], *arguments]
        sys.path[:] = [place for place in sys.path if place and "-packages" not in place]
        code = be_program(texts[0])
    finally:
        os._exit(code)


PREPARED: dict[str, list[Prepared]] = {}  # by command line, as JSON


def prepare(probes: list[Probe]) -> None:
    """Make a copy of this process for each run of a built-in program. Without one, it runs in a new Python."""
    for probe in probes:
        texts = built_in(probe["argv"][0])
        if texts is None:
            continue
        for _ in range(2 if probe.get("again_after") else 1):
            with contextlib.suppress(OSError):  # no more processes or descriptors
                PREPARED.setdefault(json.dumps(probe["argv"]), []).append(Prepared(texts, probe["argv"][1:]))


def result_of(probe: Probe, began: float, status: str, **more: Any) -> Result:
    """Return the result of a probe that was begun at `began` (`time.time()`)."""
    fields = {"argv": probe["argv"], "status": status, "rc": None, "stdout": "", "stderr": ""}
    return {**fields, **more, "started": began, "seconds": round(max(0.0, time.time() - began), 3)}


def run_probe(probe: Probe) -> Result:
    """Run one probe, and a second time where it is to be read twice; return its result."""
    began, limit = time.time(), time.monotonic() + probe["timeout"]
    first = time.monotonic()
    status, rc, stdout, stderr = run_with_retries(probe, limit)
    pause = probe.get("again_after")
    if pause and status == "ok" and rc == 0:
        time.sleep(max(0.0, min(first + pause, limit) - time.monotonic()))
        head = AGAIN.format(time.monotonic() - first)
        status, rc, second, stderr = run_once(probe["argv"], limit, probe["max_bytes"])
        stdout = "\n".join((stdout.rstrip("\n"), head, second))
    return result_of(probe, began, status, rc=rc, stdout=stdout, stderr=stderr)


def run_with_retries(probe: Probe, limit: float) -> tuple[str, int | None, str, str]:
    """Run one probe, again and again while it fails with its `retry_on` text: as `run_once`."""
    while True:
        status, rc, stdout, stderr = run_once(probe["argv"], limit, probe["max_bytes"])
        retry_on = probe.get("retry_on")
        if status != "ok" or rc == 0 or not retry_on or retry_on not in stderr + stdout:
            break
        if time.monotonic() + RETRY_PAUSE >= limit:
            break
        time.sleep(RETRY_PAUSE)
    return status, rc, stdout, stderr


def command(argv: list[str]) -> list[str]:
    """Return the command line that runs `argv`: a program that came with the probes runs in this Python."""
    texts = built_in(argv[0])
    if texts is None:
        return argv
    loader, processes = LOADER
    needed = processes if USES_PROCESSES in texts[0] else ""  # compiling it takes as long as most programs run
    return [sys.executable, *PYTHON_OPTIONS, "-c", loader, needed, *texts, *argv[1:]]


def installed(name: str) -> bool:
    """Return whether there is such a program in `PATH`. The import of shutil, which has this too, costs 3 ms."""
    places = [name] if "/" in name else [f"{folder}/{name}" for folder in PATH.split(":")]
    return any(os.path.isfile(place) and os.access(place, os.X_OK) for place in places)  # noqa: PTH113 — pathlib is slower


def built_in(name: str) -> list[str] | None:
    """Return the texts of a program that came with the probes, and of its worker; None where another is meant.

    On a simulated host an installed program of the same name comes first: ours would read the real hardware below.
    """
    return None if simulated() and installed(name) else BUILT_IN.get(name)


def run_once(argv: list[str], limit: float, max_bytes: int) -> tuple[str, int | None, str, str]:
    """Run `argv` until it ends or `time.monotonic()` passes `limit`: status, exit code, stdout, stderr."""
    try:
        ended = prepared_run(argv, limit, max_bytes)
        if ended is None:
            line = command(argv)
            if not installed(line[0]):
                return "missing", None, "", ""
            line = [LAUNCHER, "--", *line]
            ended = run(line, limit, max_bytes=max_bytes, environment=ENVIRONMENT, session=True, all_groups=False)
    except OSError as error:
        return "missing", None, "", str(error)
    return ("timeout" if ended.code is None else "ok"), ended.code, ended.stdout, ended.stderr


def prepared_run(argv: list[str], limit: float, max_bytes: int) -> Ended | None:
    """Run a built-in program in a copy of this process; None where none is left that lives."""
    waiting = PREPARED.get(json.dumps(argv))
    while waiting:
        process = waiting.pop()
        with contextlib.suppress(BrokenPipeError):  # the kernel had no memory left for it
            process.begin()
            return attend(process, limit, max_bytes=max_bytes, session=True, all_groups=False)
    return None


class Sweep:
    """Runs probes side by side, `parallel` at a time. One that hangs in the kernel loses its place to the next.

    Those that only wait (`waits`) are begun first and take no place. After `budget` seconds none is waited for.
    """

    def __init__(
        self,
        parallel: int,
        run: Callable[[Probe], Result] = run_probe,
        give_up: float = GIVE_UP,
        budget: float | None = None,
    ) -> None:
        self.parallel, self.run, self.give_up = max(1, parallel), run, give_up
        self.end = time.monotonic() + (float("inf") if budget is None else budget)
        self.over: queue.SimpleQueue[tuple[Probe, Result]] = queue.SimpleQueue()
        self.running: dict[str, tuple[Probe, float, float]] = {}  # by name; when begun, when given up (monotonic)

    def free(self) -> bool:
        return sum(not probe["waits"] for probe, _, _ in self.running.values()) < self.parallel

    def results(self, probes: list[Probe]) -> dict[str, Result]:
        """Return the results by name, in the order of `probes`: each has one, whatever happens to it."""
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
                    found[name] = result_of(probe, began, "timeout", stderr="it cannot be killed")
        return {probe["name"]: found[probe["name"]] for probe in probes}

    def start(self, probe: Probe) -> None:
        began, now = time.time(), time.monotonic()
        probe = {**probe, "timeout": max(0.0, min(probe["timeout"], self.end - now))}
        until = min(now + probe["timeout"] + self.give_up, self.end + REAP)
        self.running[probe["name"]] = probe, began, until
        try:
            threading.Thread(target=self.work, args=(probe, began), daemon=True).start()
        except RuntimeError as error:  # no more threads
            self.over.put((probe, result_of(probe, began, "missing", stderr=str(error))))

    def work(self, probe: Probe, began: float) -> None:
        try:
            result = self.run(probe)
        except Exception as error:  # noqa: BLE001 — one probe's mishap is its own result
            result = result_of(probe, began, "missing", stderr=f"{type(error).__name__}: {error}")
        self.over.put((probe, result))


def main(spec: dict[str, Any]) -> None:
    """Run the probes of `spec` and print the document."""
    started = time.time()
    adopt_orphans()
    BUILT_IN.update(spec.get("programs", {}))
    LOADER.extend(spec.get("loader", []))
    ENVIRONMENT["CLUSTERCTL_REQUIREMENTS"] = json.dumps(spec.get("requirements", {}))
    ENVIRONMENT["CLUSTERCTL_PATIENCE"] = str(spec.get("patience", 1.0))
    prepare(spec["probes"])
    sweep, probes = Sweep(spec["parallel"], budget=spec.get("budget")), spec["probes"]
    first = [probe for probe in probes if probe.get("first")]
    document: dict[str, Any] = {
        "version": VERSION,
        "origin": "simulated" if simulated() else "real",
        "host": os.uname().nodename,
        "boot_id": BOOT_ID.read_text().strip() if BOOT_ID.exists() else "",
        "started": started,
        "probes": {**sweep.results(first), **sweep.results([probe for probe in probes if probe not in first])},
    }
    kill_descendants()
    document["finished"] = time.time()
    json.dump(document, sys.stdout)
    sys.stdout.flush()
