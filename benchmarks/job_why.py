"""Attributes a failure in synthetic logs of 4,096 nodes: `python -m benchmarks.job_why [MiB [FOLDER]]`.

Each node has a kernel log and a training log; one node has the cause. The logs' lines are those of the formats, with
invented figures: most are harmless chatter, some hold words of rules.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from clusterctl.operations.job_why import WhyRequest, run

NODES = 4096
CULPRIT = 2731
_AT = "[Sun Nov  1 11:{m:02}:{s:02} 2026] "
_KERNEL = (
    f"{_AT}mlx5_core 0000:{{b:02x}}:00.0 mlx5_{{d}}: Port: 1 Link ACTIVE\n",
    f"{_AT}audit: type=1400 audit({{n}}.{{s}}:{{n}}): apparmor=STATUS operation=profile_load\n",
    f"{_AT}nfs: server 10.0.{{b}}.{{d}} OK\n",
    f"{_AT}pcieport 0000:{{b:02x}}:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer\n",
)
_STEP = (
    "[2026-11-01 11:{m:02}:{s:02}] iteration {n:8}/ 500000 | consumed samples: {n:12} | "
    "elapsed time per iteration (ms): {n}.1 | learning rate: 1.5E-04 | global batch size: 2048 | lm loss: 2.0E+00 | "
    "loss scale: 1.0 | grad norm: 0.{s} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
_JOB = (
    _STEP,
    "node{b:04}:{n}:{n} [{d}] NCCL INFO Channel {s:02}/0 : {b}[{d}] -> {n}[0] [send] via NET/IBext/{d}/GDRDMA\n",
    "7: WARNING: rank {n} loaded shard {n} of dataset in {s}.{m} s, Error: 0, retries 0\n",
    "(min, max) time across ranks (ms): forward-backward: ({n}.1, {n}.2), optimizer: ({s}.1, {s}.3)\n",
)


def lines(forms: tuple[str, ...], size: int, generator: random.Random) -> str:
    """Return about `size` bytes of lines."""
    block = "".join(
        generator.choice(forms).format(
            m=generator.randrange(60),
            s=generator.randrange(60),
            b=generator.randrange(256),
            d=generator.randrange(8),
            n=generator.randrange(10**6),
        )
        for _ in range(400)
    )
    return block * (size // len(block) + 1)


def write(folder: Path, mebibytes: int) -> int:
    """Write the logs of a failed job; return their bytes."""
    generator = random.Random(1)
    share = (mebibytes << 20) // NODES
    kernel = [lines(_KERNEL, share // 4, generator) for _ in range(8)]
    job = [lines(_JOB, share - share // 4, generator) for _ in range(8)]
    written = 0
    for node in range(NODES):
        host = folder / f"node{node:04}"
        host.mkdir()
        fault = "[Sun Nov  1 12:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n"
        (host / "kernel.log").write_text(kernel[node % 8] + (fault if node == CULPRIT else ""))
        end = (
            f"[rank{node}]: ncclRemoteError: A call failed possibly due to a network error\n" if node != CULPRIT else ""
        )
        (host / "train.log").write_text(job[node % 8] + "[2026-11-01 12:00:20] aborting\n" + end)
        written += sum(file.stat().st_size for file in host.iterdir())
    return written


def main() -> None:
    mebibytes = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        written = write(Path(name), mebibytes)
        began = time.perf_counter()
        found = run(WhyRequest(logs=Path(name)))
        seconds = time.perf_counter() - began
    cause = found.attribution.cause
    print(f"{written / 1e9:.2f} GB of {NODES} nodes: {seconds:.1f} s ({written / seconds / 1e6:.0f} MB/s)")
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"processor time, with that of writing the logs: {sum(one.ru_utime + one.ru_stime for one in used):.1f} s")
    print(f"{cause.rule}: {cause.cause}; suspects {[suspect.host for suspect in cause.suspects]}")
    if [suspect.host for suspect in cause.suspects] != [f"node{CULPRIT:04}"]:
        sys.exit("the wrong host")


if __name__ == "__main__":
    main()
