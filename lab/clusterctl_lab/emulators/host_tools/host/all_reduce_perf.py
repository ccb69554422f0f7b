"""all_reduce_perf: a real all-reduce between MPI ranks (mpi4py), printed in the format of nccl-tests.

Every rank contributes a buffer of `rank + 1`; every element of the sum is checked. Times are the slowest rank's,
bandwidths as nccl-tests defines them (doc/PERFORMANCE.md): busbw = algbw x 2(n - 1) / n. The table follows a recording
(microsoft/superbenchmark, MIT) in the format of nccl-tests 2.13 and later. A slow part of a machine lengthens each
step: a path to a GPU by its share of the traffic.
"""

from __future__ import annotations

import argparse
import importlib
import os
import socket
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl_lab.emulators.host_tools.host.facts import Facts, load

WARM_UP = 1
SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
FLOAT_BYTES = 4
SLOW_STEP_S = 3.0
SHORT = 1024
STARTS = "/run/lock/clusterctl-lab-starts"


def main(argv: Sequence[str]) -> int:
    mpi: Any = importlib.import_module("mpi4py.MPI")  # only the hosts have it; importing it starts MPI
    options = _options(argv)
    world: Any = mpi.COMM_WORLD
    ranks, rank = world.Get_size(), world.Get_rank()
    hosts = world.gather(f"{os.getpid():>6} on {socket.gethostname():>10}", root=0)
    if rank == 0:
        _header(options, hosts)
    if rank == 0 and load().starts_fail and options.maxbytes <= SHORT and _third():
        sys.stdout.write("lab:1:1 [0] NCCL WARN Cuda failure 'peer mapping resources exhausted'\n")
        sys.stdout.flush()
        world.Abort(3)
    part = _part(load(), rank, within_one_host=len(set(world.allgather(socket.gethostname()))) == 1)
    wrong, total, rows = 0, 0.0, 0
    size = options.minbytes
    while size <= options.maxbytes:
        seconds, bad = _measure(world, mpi, size // FLOAT_BYTES, options.iters, part)
        rate = size / seconds / 1e9
        busbw = rate * 2 * (ranks - 1) / ranks
        wrong, total, rows = wrong + bad, total + busbw, rows + 1
        if rank == 0:
            half = f"{seconds * 1e6:>9.1f} {rate:>7.4f} {busbw:>7.4f} {bad:>6}"
            sys.stdout.write(f"{size:>12} {size // FLOAT_BYTES:>13}     float     sum      -1 {half} {half}\n")
        size *= options.stepfactor
    if rank == 0:
        sys.stdout.write(f"# Out of bounds values : {wrong} {'OK' if not wrong else 'FAILED'}\n")
        sys.stdout.write(f"# Avg bus bandwidth    : {total / max(1, rows):.6f}\n#\n")
    return 1 if wrong else 0


def _third() -> bool:
    """Return whether this is a third start since the boot."""
    with open(STARTS, "a", encoding="utf-8") as file:  # noqa: PTH123 — see small_files
        file.write("x")
        return file.tell() % 3 == 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("all_reduce_perf")
    parser.add_argument("-b", "--minbytes", type=_bytes, default=32 << 20)
    parser.add_argument("-e", "--maxbytes", type=_bytes, default=32 << 20)
    parser.add_argument("-f", "--stepfactor", type=int, default=2)
    parser.add_argument("-g", "--ngpus", type=int, default=1)
    parser.add_argument("-c", "--check", type=int, default=1)
    parser.add_argument("-n", "--iters", type=int, default=20)
    return parser.parse_args(argv)


def _bytes(text: str) -> int:
    return int(text[:-1]) * SIZES[text[-1]] if text[-1] in SIZES else int(text)


@dataclass(frozen=True)
class Part:
    """The contribution of this rank's machine to a sum, and the seconds that it adds to a step."""

    gives: int
    waits_s: float


def _part(facts: Facts, rank: int, *, within_one_host: bool) -> Part:
    if within_one_host:
        return Part(rank + 1, SLOW_STEP_S * facts.nvswitch_slow)
    allowed = os.environ.get("NCCL_IB_HCA", "").removeprefix("=").split(",")
    used = [hca for hca in facts.hcas if hca.name in allowed]
    slow = sum(hca.gpu_path_slow for hca in used) / max(1, len(used))
    return Part(rank + 1 + facts.sums_wrong, SLOW_STEP_S * slow)


def _measure(world: Any, mpi: Any, count: int, iterations: int, part: Part) -> tuple[float, int]:
    """Seconds of one all-reduce on the slowest rank, and how many elements were wrong on all ranks."""
    ranks = world.Get_size()
    mine, result = array("f", [part.gives]) * count, array("f", [0]) * count
    for _ in range(WARM_UP):
        world.Allreduce([mine, mpi.FLOAT], [result, mpi.FLOAT], op=mpi.SUM)
    world.Barrier()
    started = time.perf_counter()
    for _ in range(iterations):
        time.sleep(part.waits_s)
        world.Allreduce([mine, mpi.FLOAT], [result, mpi.FLOAT], op=mpi.SUM)
    seconds = (time.perf_counter() - started) / iterations
    right = array("f", [ranks * (ranks + 1) / 2])
    bad = 0 if result == right * count else sum(1 for value in result if value != right[0])
    return world.allreduce(seconds, op=mpi.MAX), world.allreduce(bad, op=mpi.SUM)


def _header(options: argparse.Namespace, hosts: Sequence[str]) -> None:
    sizes = f"minBytes {options.minbytes} maxBytes {options.maxbytes} step: {options.stepfactor}(factor)"
    runs = f"warmup iters: {WARM_UP} iters: {options.iters} agg iters: 1 validation: 1 graph: 0"
    sys.stdout.write(f"# nThread 1 nGpus 1 {sizes} {runs}\n#\n# Using devices\n")
    for rank, host in enumerate(hosts):
        sys.stdout.write(f"#  Rank {rank:>2} Group  0 Pid {host} device  0 [0x00] none (rehearsal lab, no GPU)\n")
    columns = "    time   algbw   busbw #wrong"
    sys.stdout.write(f"#\n#       size         count      type   redop    root{columns * 2}\n")
    units = "    (us)  (GB/s)  (GB/s)       "
    sys.stdout.write(f"#        (B)    (elements)                          {units * 2}\n")
