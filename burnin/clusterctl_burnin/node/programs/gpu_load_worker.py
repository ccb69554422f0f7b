"""Runs on a node, in a Python that has PyTorch, once per GPU at the same time: `gpu_load.py` starts and drives it.

Python 3.9 and torch. The GPU is the first that CUDA shows here, its neighbour, where there is one, the second. Every
phase is reported as one line of JSON as soon as it is over, so that what hangs takes nothing with it that was measured.
cuBLAS promises equal bits on GPUs of one architecture with equally many multiprocessors, run after run
(https://docs.nvidia.com/cuda/cublas/, Results Reproducibility): a product that differs is a wrong one.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import sys
import time
from typing import Any, Callable

BATCH = 8  # calls between two looks at the clock
SEED = 20_240_501
MIB = 1024 * 1024
GIGA = 1e9
TERA = 1e12


def report(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def wait_for(word: str) -> None:
    """Wait for our turn; exit without a parent, since there is nothing left to do."""
    if sys.stdin.readline().strip() != word:
        os._exit(0)


def calls_per_second(call: Callable[[], object], finish: Callable[[], object], seconds: float) -> float:
    """Return how often `call` is done in a second, warm, over at least `seconds`."""
    call()
    finish()
    began, calls = time.perf_counter(), 0
    while True:
        for _ in range(BATCH):
            call()
        finish()
        calls += BATCH
        took = time.perf_counter() - began
        if took >= seconds:
            return calls / took


class Work:
    """What is measured of one device. `spec`: device, seconds, matrix_size, buffer_mib."""

    def __init__(self, torch: Any, spec: dict[str, Any]) -> None:
        self.torch, self.seconds = torch, float(spec["seconds"])
        self.size, self.bytes = int(spec["matrix_size"]), int(spec["buffer_mib"]) * MIB
        self.cuda = spec["device"] == "cuda"
        self.device = torch.device("cuda:0" if self.cuda else "cpu")
        seeded = torch.Generator(device="cpu").manual_seed(SEED)
        shape = (self.size, self.size)
        self.left, self.right = (
            torch.randn(shape, generator=seeded).to(torch.bfloat16).to(self.device) for _ in range(2)
        )

    def finish(self) -> None:
        if self.cuda:
            self.torch.cuda.synchronize(self.device)

    def teraflops(self, product: Callable[[], object], seconds: float) -> float:
        return 2 * self.size**3 * calls_per_second(product, self.finish, seconds) / TERA

    def bf16(self) -> dict[str, Any]:
        out = self.torch.empty_like(self.left)
        figure = self.teraflops(lambda: self.torch.mm(self.left, self.right, out=out), self.seconds)
        return {"gemm_bf16_tflops": round(figure, 4)}

    def fp8(self) -> dict[str, Any]:
        """Multiply by the call that torch's own FP8 layers are built on; its second matrix lies in columns."""
        torch = self.torch
        kind, product = getattr(torch, "float8_e4m3fn", None), getattr(torch, "_scaled_mm", None)
        if kind is None or product is None:
            raise RuntimeError(f"torch {torch.__version__} knows no FP8 product")
        left, right = self.left.to(kind), self.right.to(kind).t()
        one = torch.ones((), device=self.device)

        def call() -> object:
            return product(left, right, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)

        return {"gemm_fp8_tflops": round(self.teraflops(call, self.seconds / 2), 4)}

    def repeats(self) -> dict[str, Any]:
        """Repeat the same product, every bit compared; return also a digest, to be compared with other GPUs'."""
        torch = self.torch
        first = torch.mm(self.left, self.right)
        until, repeats, wrong = time.perf_counter() + self.seconds / 2, 0, 0
        while repeats == 0 or time.perf_counter() < until:
            again = torch.mm(self.left, self.right)
            wrong += not torch.equal(again.view(torch.int16), first.view(torch.int16))
            repeats += 1
        there = first.cpu().contiguous()
        content = ctypes.string_at(there.data_ptr(), there.numel() * there.element_size())
        return {"repeats": repeats, "mismatches": wrong, "digest": hashlib.sha256(content).hexdigest()}

    def memory(self) -> dict[str, Any]:
        """Copy inside the device's memory: every byte is read once and written once."""
        source, target = (self.torch.ones(self.bytes, dtype=self.torch.uint8, device=self.device) for _ in range(2))
        rate = calls_per_second(lambda: target.copy_(source), self.finish, self.seconds / 4)
        return {"memory_gb_per_s": round(2 * self.bytes * rate / GIGA, 3)}

    def host(self) -> dict[str, Any]:
        """Copy between pinned memory of the host and the device."""
        if not self.cuda:
            raise RuntimeError("a processor has no link to itself")
        there = self.torch.empty(self.bytes // 4, dtype=self.torch.uint8, device=self.device)
        here = self.torch.empty(self.bytes // 4, dtype=self.torch.uint8, pin_memory=True)
        to = calls_per_second(lambda: there.copy_(here, non_blocking=True), self.finish, 0.5)
        back = calls_per_second(lambda: here.copy_(there, non_blocking=True), self.finish, 0.5)
        size = self.bytes // 4 / GIGA
        return {"host_to_device_gb_per_s": round(to * size, 3), "device_to_host_gb_per_s": round(back * size, 3)}

    def peer(self) -> dict[str, Any]:
        """Copy to the neighbour, without a detour over the host."""
        torch = self.torch
        if not self.cuda or torch.cuda.device_count() < 2:
            raise RuntimeError("there is no neighbour")
        if not torch.cuda.can_device_access_peer(0, 1):
            raise RuntimeError("the driver allows no direct access to the neighbour")
        source = torch.ones(self.bytes // 4, dtype=torch.uint8, device="cuda:0")
        target = torch.empty(self.bytes // 4, dtype=torch.uint8, device="cuda:1")

        def finish() -> None:
            torch.cuda.synchronize(0)
            torch.cuda.synchronize(1)

        rate = calls_per_second(lambda: target.copy_(source, non_blocking=True), finish, 0.5)
        return {"peer_gb_per_s": round(rate * self.bytes / 4 / GIGA, 3)}


TOGETHER = ("bf16", "repeats", "fp8", "memory")
ALONE = ("host", "peer")
MAY_FAIL = frozenset({"fp8", "host", "peer"})  # what a device or a torch may lack: reported, and the rest goes on


def measure(work: Work, phases: tuple[str, ...]) -> None:
    for phase in phases:
        report(phase=phase)
        try:
            report(**getattr(work, phase)())
        except (RuntimeError, TypeError, NotImplementedError) as error:
            if phase not in MAY_FAIL or lost(error):
                raise
            report(not_measured={phase: in_a_line(error)})


def lost(error: Exception) -> bool:
    """Return whether the process has lost its GPU, as after every error of CUDA itself."""
    return type(error).__name__ in {"AcceleratorError", "OutOfMemoryError"} or str(error).startswith("CUDA error")


def out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out; CUDA's own error has no type for it."""
    return type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower()


def in_a_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def main(spec: dict[str, Any]) -> int:
    """Print lines for the parent: `phase`, figures, `not_measured`, `ready`, `loaded`, `done`, `error` …"""
    try:
        report(phase="import")
        torch = importlib.import_module("torch")
        report(phase="start")
        if spec["cpus"]:
            os.sched_setaffinity(0, spec["cpus"])
        if spec["device"] == "cpu":
            torch.set_num_threads(1)
        work = Work(torch, spec)
        work.finish()
        report(ready=True, torch=str(torch.__version__), cuda=str(torch.version.cuda or ""))
        wait_for("go")
        measure(work, TOGETHER)
        report(loaded=True)
        wait_for("alone")
        measure(work, ALONE)
    except Exception as error:  # noqa: BLE001 — whatever it is, the parent must know it
        report(error=in_a_line(error), out_of_memory=out_of_memory(error))
        return 1
    report(done=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
