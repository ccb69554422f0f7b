"""Runs on a node, as the built-in probe `gpu-load`: all GPUs under load at once, measured, watched and compared.

Standard library only, Python 3.9. Each GPU has a process of its own (gpu_load_worker.py; its text is the first
argument) in a Python that has PyTorch. The process sees its GPU first and the GPU's neighbour second. All GPUs multiply
at the same time. Copies to host and neighbour run one GPU after the other, since GPUs may share a path to the host.
nvidia-smi is read under load. No wait is unlimited: a process that hangs is reported and killed; one that cannot be
killed is left behind.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from clusterctl_burnin.node.processes import ask as ask_tool
from clusterctl_burnin.node.processes import end, start

SMI_TIMEOUT = 10.0  # seconds that one answer of nvidia-smi may take
SMI_PAUSE = 1.0  # between two answers
START = 120.0  # seconds for the processes' start: torch alone may take half a minute from a network file system
OTHERS = 8  # processes that are reported for a GPU
REAP = 5.0  # seconds that a process may take to be gone: it leaves its GPU after it has closed its stdout
TURN = 20.0  # seconds for one GPU's copies to host and neighbour
IDENTITY = "gpu=index,uuid,serial,pci.bus_id,name"
USERS = "compute-apps=gpu_uuid,pid,process_name"
WATCHED = "gpu=uuid,temperature.gpu,temperature.memory,power.draw,clocks.sm"
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the second until driver 535

Gpu = Dict[str, Any]
Ask = Callable[[str], Tuple[int, str]]
Line = Tuple[int, Optional[Dict[str, Any]]]  # the worker's index, and its message; None: it has ended


def smi(query: str) -> tuple[int, str]:
    """Return the exit code and output of nvidia-smi."""
    argv = ["nvidia-smi", f"--query-{query}", "--format=csv,noheader,nounits"]
    code, stdout, stderr = ask_tool(*argv, seconds=SMI_TIMEOUT)
    return code, stdout + stderr


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]


def identity(row: list[str]) -> Gpu:
    index, uuid, serial, pci, name = row
    return {"index": int(index), "uuid": uuid, "serial": serial, "pci": pci, "name": name}


def gpus_there(device: str, ask: Ask) -> tuple[list[Gpu], str]:
    """Return the GPUs of the driver, or (`cpu:2`) the number of processors that stand for them; and what is wrong."""
    kind, _, count = device.partition(":")
    if kind == "cpu":
        return [identity([str(i), f"CPU-{i}", "", "", "cpu"]) for i in range(int(count or 1))], ""
    code, output = ask(IDENTITY)
    if code != 0:
        return [], f"nvidia-smi ended with {code}: {output.strip()[:200]}"
    found = [identity(row) for row in rows(output) if len(row) == len(IDENTITY.split(","))]
    return found, "" if found else f"nvidia-smi lists no GPU: {output.strip()[:200]}"


def descends(pid: int, ancestor: int) -> bool:
    """Return whether a process is another one's descendant, or itself; not where it has ended."""
    while pid > 1 and pid != ancestor:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return pid == ancestor


def processors(pci: str) -> list[int]:
    """Return the processors nearest to a GPU, by Linux; none where it does not report them."""
    try:
        listed = Path(f"/sys/bus/pci/devices/{pci.lower()[-12:]}/local_cpulist").read_text()
    except OSError:
        return []
    ends = [part.partition("-") for part in listed.strip().split(",") if part]
    return [cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)]


class Watch:
    """What nvidia-smi reports of the GPUs while they work."""

    def __init__(self, ask: Ask) -> None:
        self.ask, self.problem, self.over = ask, "", threading.Event()
        self.seen: dict[str, Gpu] = {}

    def run(self) -> None:
        reasons = REASONS[0]
        while not self.over.is_set():
            code, text = self.ask(f"{WATCHED},{reasons}")
            if code != 0 and reasons != REASONS[-1] and "not a valid field" in text:
                reasons = REASONS[-1]
                continue
            if code != 0:
                self.problem = f"nvidia-smi ended with {code}: {text.strip()[:200]}"
            elif not self.over.is_set():
                for row in rows(text):
                    self.add(row)
                self.see_users(*self.ask(USERS))
            self.over.wait(SMI_PAUSE)

    def see_users(self, code: int, text: str) -> None:
        """Keep the processes on the GPUs that are none of ours: with them, no figure is the GPU's own."""
        if code != 0:
            self.problem = f"nvidia-smi ended with {code}: {text.strip()[:200]}"
            return
        for row in rows(text):
            if len(row) >= 3 and row[1].isdigit() and not descends(int(row[1]), os.getpid()):
                others = self.seen.setdefault(row[0], {"samples": 0, "reasons": {}}).setdefault("others", [])
                user = f"{', '.join(row[2:])[:100]} (process {row[1]})"
                if user not in others and len(others) < OTHERS:
                    others.append(user)

    def add(self, row: list[str]) -> None:
        if len(row) != 6:
            self.problem = f"nvidia-smi: {', '.join(row)[:200]}"
            return
        uuid, reasons = row[0], row[5].lower()
        hot, memory, power, clock = (number(cell) for cell in row[1:5])
        seen = self.seen.setdefault(uuid, {"samples": 0, "reasons": {}})
        seen["samples"] += 1
        seen["reasons"][reasons] = seen["reasons"].get(reasons, 0) + 1
        most = {"temperature_max_c": hot, "memory_temperature_max_c": memory, "power_max_w": power}
        for name, value in most.items():
            if value is not None:
                seen[name] = max(value, seen.get(name, value))
        if clock is not None and not idle(reasons):
            seen["sm_clock_min_mhz"] = min(clock, seen.get("sm_clock_min_mhz", clock))


def idle(reasons: str) -> bool:
    """Return whether the lowest bit is set: nothing runs on it, before its load or after."""
    try:
        return bool(int(reasons, 16) & 1)
    except ValueError:
        return False


def number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


class Workers:
    """The worker processes, one per GPU, and what they printed so far."""

    def __init__(self, gpus: list[Gpu]) -> None:
        self.gpus = gpus
        self.lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.ended: set[int] = set()

    def start(self, argv: list[str], spec: dict[str, Any]) -> None:
        for at, gpu in enumerate(self.gpus):
            neighbour = self.gpus[(at + 1) % len(self.gpus)]
            visible = dict.fromkeys((gpu["uuid"], neighbour["uuid"]))
            environment = {
                **os.environ,
                "CUDA_VISIBLE_DEVICES": ",".join(visible) if spec["device"] == "cuda" else "",
                "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
            }
            gpu.update(phase="start", not_measured={}, error="", peer=neighbour["uuid"])
            mine = json.dumps({**spec, "cpus": processors(gpu["pci"])})
            process = start([*argv, mine], environment=environment, dialogue=True)
            self.processes[at] = process
            threading.Thread(target=self.listen, args=(at, process), daemon=True).start()

    def listen(self, at: int, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            with contextlib.suppress(ValueError):  # a library that prints to stdout
                message = json.loads(line)
                if isinstance(message, dict):
                    self.lines.put((at, message))
        self.lines.put((at, None))

    def until(self, word: str, awaited: set[int], limit: float) -> set[int]:
        """Return the workers with a message `word` before `limit` (`time.monotonic()`); all messages are kept."""
        there: set[int] = set()
        while awaited - there - self.ended:
            try:
                at, message = self.lines.get(timeout=max(0.0, limit - time.monotonic()))
            except queue.Empty:
                break
            if message is None:
                self.ended.add(at)
                continue
            self.gpus[at]["not_measured"].update(message.pop("not_measured", {}))
            self.gpus[at].update(message)
            if word in message:
                there.add(at)
        return there

    def send(self, word: str, at: int) -> None:
        pipe = self.processes[at].stdin
        with contextlib.suppress(OSError):  # it has ended
            if pipe:
                pipe.write(f"{word}\n")
                pipe.flush()

    def exit_code(self, at: int) -> int | None:
        """Return it, below 0 for a signal; None for a process that still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.processes[at].wait(REAP if at in self.ended else 0)
        return None

    def kill(self) -> None:
        end(self.processes.values())


def drive(workers: Workers, watch: Watch, limit: float) -> None:
    """Load on all GPUs at once, then each one's copies alone. How each of them ended stands in `ended`."""
    everybody = set(range(len(workers.gpus)))
    ready = workers.until("ready", everybody, min(limit, time.monotonic() + START))
    threading.Thread(target=watch.run, daemon=True).start()
    for at in ready:
        workers.send("go", at)
    loaded = workers.until("loaded", ready, limit)
    watch.over.set()
    done: set[int] = set()
    for at in sorted(loaded):
        workers.send("alone", at)
        done |= workers.until("done", {at}, min(limit, time.monotonic() + TURN))
    for at, gpu in enumerate(workers.gpus):
        gpu["ended"] = "ok" if at in done else "failed" if at in workers.ended else "hung"
        gpu["began"] = at in ready
        gpu["exit_code"] = workers.exit_code(at)
        for word in ("ready", "loaded", "done"):
            gpu.pop(word, None)


def options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("gpu-load")
    parser.add_argument("--python", required=True)
    parser.add_argument("--device", default="cuda")
    for name, kind in (("--seconds", float), ("--matrix-size", int), ("--buffer-mib", int), ("--limit", float)):
        parser.add_argument(name, type=kind, required=True)
    return parser.parse_args(argv)


def main(work: str, argv: Sequence[str], ask: Ask = smi) -> dict[str, Any]:
    """Return the document to print: `trouble` is why nothing could be begun, `python_absent` one such reason."""
    chosen = options(argv)
    limit = time.monotonic() + chosen.limit
    document: dict[str, Any] = {"version": 1, "trouble": "", "smi_output": "", "gpus": []}
    document.update(seconds=chosen.seconds, matrix_size=chosen.matrix_size, buffer_mib=chosen.buffer_mib)
    gpus, trouble = gpus_there(chosen.device, ask)
    if trouble:
        return {**document, "trouble": trouble}
    if not os.access(chosen.python, os.X_OK):
        return {**document, "trouble": f"there is no Python at {chosen.python}", "python_absent": True}
    workers, watch = Workers(gpus), Watch(ask)
    spec = {name: document[name] for name in ("seconds", "matrix_size", "buffer_mib")}
    try:
        workers.start([chosen.python, "-I", "-c", work], {**spec, "device": chosen.device.partition(":")[0]})
        drive(workers, watch, limit)
    finally:
        watch.over.set()
        workers.kill()
    measured = [{**gpu, **watch.seen.get(gpu["uuid"], {"samples": 0, "reasons": {}})} for gpu in gpus]
    return {**document, "smi_output": watch.problem, "gpus": measured}


if __name__ == "__main__":
    json.dump(main(sys.argv[1], sys.argv[2:]), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # a thread that waits for a dead driver would keep the program
