"""What the watch of a load costs: processor time on the node for its three sessions and the sampler, and on the
controller for one judgement.

    python -m benchmarks.load_watch [--gpus 8] [--readings 20] [--seconds 60]

The node's program runs on this machine with the watch's probes. Our own programs really run, on what this machine
has; other tools are replaced by `cat` of recorded output for so many GPUs and adapters. The figures are thus our own
cost, and that of starting the programs; what nvidia-smi, perfquery and dmesg take themselves can only be measured on
a GPU host. The cheapest of all sessions is the figure: other work on the machine makes the rest dearer. The first of
the loads that follow each other has three sessions, each behind the supervisor: one runs the sampler, one reads the
node before the load, and one reads it after that. The others have the last of them alone: the sampler goes on, and
the reading before a load is that after the load before. What a whole suite's watch takes is printed for the loads of
one node in `nightly`, at the seconds that the suite gives them. sshd and sudo are not in it. The sampler runs in a copy
of the program that runs the probes, as on a node; it
reads ordinary files laid out as sysfs is, of 8 adapters, 240 PCIe devices with AER and 32 memory modules; what the
drivers of real files take is not in it, nor nvidia-smi's own time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterctl.steps.burnin.node_watch import SLOWER
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.package_data import text_of
from clusterctl_burnin.probe import Readings, argv_for, parse_readings, programs, script
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.watch import LoadRun, judge, probes, watched
from tests.burnin.kit import HEALTHY, expected
from tests.burnin.sampler_kit import FakeNode, sampling

LOADS_S = (10, 30, 60, 180, 900)
SHORT_S = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--readings", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    node, _ = _reading(options.gpus, options.readings, ours=True)
    bare, answer = _reading(options.gpus, options.readings, ours=False)
    start, _ = _session(script(()), options.readings)
    controller = _judgement(answer, options.gpus, options.readings)
    print(f"node: {1000 * node:.0f} ms of processor time for a reading of {options.gpus} GPUs and adapters")
    print(f"  of it {1000 * (node - bare):.0f} ms for our own {_ours()} programs, mostly the starts of Python")
    print(f"  and {1000 * start:.0f} ms for the session that runs the sampler")
    short, long = _sampler(options.gpus, SHORT_S), _sampler(options.gpus, options.seconds)
    rate = (long - short) / (options.seconds - SHORT_S)
    begun = short - SHORT_S * rate
    print(f"sampler: {1000 * begun:.0f} ms for its start and end, {100 * rate:.2f} % of a core meanwhile")
    once = node + start + begun
    for seconds in LOADS_S:
        first, later = (100 * (fixed / seconds + rate) for fixed in (once + node, node))
        print(f"  {later:6.2f} % of a core over a load of {seconds} s, {first:.2f} % where it is the first")
    alone, whole = (fixed / (0.01 - rate) for fixed in (node, once + node))
    print(f"1 % of a core from {alone:.0f} s on; where it is the first from {whole:.0f} s on")
    loads = shipped_suite("nightly").node_seconds.values()
    suite = 100 * ((once + len(loads) * node) / sum(loads) + rate)
    print(f"nightly, {len(loads)} loads of one node in {sum(loads)} s: {suite:.2f} % of a core")
    print(f"controller: {1000 * controller:.1f} ms of processor time for a judgement")


def _texts(gpus: int) -> dict[str, str]:
    """The recorded output of the watch's probes, for as many parts."""
    texts = {probe.name: (HEALTHY / f"{probe.name}.txt").read_text() for probe in probes(CHECKS.values())}
    listing = texts["nvidia_smi"].replace("Attached GPUs                             : 2", f"Attached GPUs : {gpus}")
    head, *parts = listing.split("\nGPU 0000")
    texts["nvidia_smi"] = "\nGPU 0000".join([head, *(parts * gpus)[:gpus]])
    links = texts["nvlink_errors_once"].split("GPU ")
    texts["nvlink_errors_once"] = "GPU ".join(["", *(links[1:] * gpus)[:gpus]])
    up, *ports = texts["port_counters_once"].split("=== mlx5")
    texts["port_counters_once"] = "=== mlx5".join([up, *(ports * gpus)[:gpus]])
    return texts


def _ours() -> int:
    return sum(probe.argv[0] in programs() for probe in probes(CHECKS.values()))


def _reading(gpus: int, count: int, *, ours: bool) -> tuple[float, Readings]:
    """Return the least processor seconds of the whole process tree, and the last answer.

    `ours`: our own programs run; else they are recorded, too.
    """
    with tempfile.TemporaryDirectory() as folder:
        texts = _texts(gpus)
        files = {name: Path(folder, name) for name in texts}
        for name, file in files.items():
            file.write_text(texts[name])
        asked = [
            probe if ours and probe.argv[0] in programs() else replace(probe, argv=("cat", str(files[probe.name])))
            for probe in probes(CHECKS.values())
        ]
        least, printed = _session(script(asked), count)
    return least, parse_readings(printed.decode())


def _session(text: bytes, count: int) -> tuple[float, bytes]:
    """Return the least processor seconds of a session that runs this text behind the supervisor, and its output."""
    options = ("-I", "-S", "-c", text_of("node/processes.py"), "600")
    argv, least = (sys.executable, *options, *argv_for("root", privileged=True)), float("inf")
    for _ in range(count):
        used = _children()
        done = subprocess.run(argv, input=text, capture_output=True, check=True)
        least = min(least, _children() - used)
    return least, done.stdout


IN_A_COPY = f"""
import os, sys
from pathlib import Path
from clusterctl_burnin.node import bundle
if not os.fork():
    own = {{"__name__": "load_sampler"}}
    exec({text_of("node/programs/load_sampler.py")!r}, own)
    os._exit(own["main"](sys.argv[3:], Path(sys.argv[1]), "\\0" + sys.argv[2]))
os.wait()
"""
"""The sampler in a copy of a process that has loaded what the program of the probes loads."""
ADAPTERS, PCIE_DEVICES, MODULES = 8, 240, 32


def _sampler(gpus: int, seconds: int) -> float:
    """Return the processor seconds that the sampler takes, its start included."""
    with tempfile.TemporaryDirectory() as folder:
        node = FakeNode(Path(folder), adapters=ADAPTERS, gpus=gpus, devices=PCIE_DEVICES, modules=MODULES)
        pace = (1.0, float(SLOWER))
        with sampling(node, "clusterctl-benchmark", seconds + 60, pace, IN_A_COPY) as running:
            time.sleep(seconds)
            samples = running.samples()
    return samples.processor_seconds


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _judgement(answer: Readings, gpus: int, count: int) -> float:
    node: Expected = expected(limits=shipped_limits("h100-sxm-ndr400"))
    node = replace(node, sku=replace(node.sku, gpu_count=gpus, hca_count=2))
    later = {name: replace(one, started=one.started + timedelta(seconds=60)) for name, one in answer.probes.items()}
    run, checks = LoadRun("gpu_load", datetime.now(UTC), 60.0), watched(CHECKS.values())
    began = time.process_time()
    for _ in range(count):
        judge(checks, replace(answer), replace(answer, probes=later), node, run)
    return (time.process_time() - began) / count


if __name__ == "__main__":
    main()
