"""What `clusterctl burnin judge` costs over a fleet, whole process: recordings made of one healthy node's probes.

    python -m benchmarks.judge [--nodes 511] [--lspci FILE] [--nvidia-smi FILE]

A real server of eight GPUs prints more than those probes: `lspci -D -vvv` of its 500 functions is 1 MB, `nvidia-smi -q`
70 kB. A real server's output may be named (plain or .gz); each node has a variant of its own. Each node has eight GPUs
with temperatures of their own; one GPU is 25 °C hotter than its fleet and within the limit.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterctl_burnin.probe import Probe
from clusterctl_burnin.registry import CHECKS

HEALTHY = Path(__file__).parent.parent / "tests" / "burnin" / "data" / "healthy"
PROBES: Mapping[str, Probe] = {probe.name: probe for check in CHECKS.values() for probe in check.probes}
HEALTHY_WORDS: Mapping[str, str] = {name: (HEALTHY / f"{name}.txt").read_text() for name in PROBES}
GPUS = 8
SERIAL = "LAB0001"


def eight_gpus(text: str, chance: random.Random, hotter: int) -> str:
    """The listing of two GPUs made one of eight, with temperatures of their own."""
    head, *blocks = re.split(r"(?m)^(?=GPU 0000)", text)
    listed = []
    for index in range(GPUS):
        block = blocks[index % len(blocks)]
        block = re.sub(r"^GPU \S+", f"GPU 00000000:{0x10 + index:02X}:00.0", block)
        degrees = round(chance.gauss(33, 1.5)) + (hotter if index == 3 else 0)
        listed.append(re.sub(r"(GPU Current Temp +: )\d+", rf"\g<1>{degrees}", block))
    return re.sub(r"(Attached GPUs +: )\d+", rf"\g<1>{GPUS}", head) + "".join(listed)


def spoken(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text()


def recording(
    name: str, chance: random.Random, hotter: int = 0, words: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """One node, as docs/how-to/burnin-judge.md lays it out. `words`: by probe, a healthy node's by default."""
    outputs = {**HEALTHY_WORDS, **(words or {})}
    probes = {}
    for probe in PROBES.values():
        text = outputs[probe.name]
        if probe.name == "nvidia_smi":
            text = eight_gpus(text, chance, hotter)
        probes[probe.name] = {
            "argv": list(probe.argv),
            "status": "ok",
            "rc": 0,
            "stdout": text,
            "stderr": "",
            "started": 1767323045.0,
            "seconds": 0.1,
        }
    head = {"version": 1, "origin": "simulated", "host": name, "boot_id": "b", "started": 1767323045.0}
    readings = {**head, "finished": 1767323049.0, "probes": probes}
    return {"version": 1, "node": name, "serial": SERIAL, "sku": "dell-xe9680-h100", "readings": readings}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=511)
    parser.add_argument("--lspci", type=Path, help="the output of lspci -D -vvv on a real server")
    parser.add_argument("--nvidia-smi", type=Path, help="the output of nvidia-smi -q there")
    options = parser.parse_args()
    count = options.nodes
    real = {"lspci": options.lspci, "nvidia_smi": options.nvidia_smi}
    words = {**HEALTHY_WORDS} | {name: spoken(file) for name, file in real.items() if file is not None}
    chance = random.Random(count)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            name = f"node{number + 1:03d}"
            own = {**words, "lspci": words["lspci"] + "\n" * number}
            text = json.dumps(recording(name, chance, 25 if number == count // 2 else 0, own))
            (Path(folder) / f"{name}.json").write_text(text)
        begin = time.monotonic()
        argv = [sys.executable, "-m", "clusterctl_cli.main", "burnin", "judge", folder, "--json"]
        ran = subprocess.run(argv, stdout=subprocess.PIPE, check=False, text=True)
        wall = time.monotonic() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    nodes = json.loads(ran.stdout)["nodes"]
    apart = [(n["name"], f["subject"]) for n in nodes for f in n["findings"] if f["check"] == "fleet_gpu_temperature"]
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    print(
        f"{len(nodes)} nodes: {wall:.1f} s wall, {used.ru_utime + used.ru_stime:.1f} s CPU, "
        f"{used.ru_maxrss / 1024:.0f} MiB, exit {ran.returncode}; unlike their fleet: {apart}"
    )


if __name__ == "__main__":
    main()
