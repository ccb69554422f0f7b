"""The program of gpu_load: it drives one process per GPU, waits for none for ever, and loses nothing that was measured.

With CLUSTERCTL_TORCH_PYTHON set to a Python that has PyTorch, its workers are run for real, on processors.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusterctl.formats.nvidia.gpu_load import GpuLoadEnd, parse_gpu_load
from clusterctl_burnin.node.programs import gpu_load
from clusterctl_burnin.probe import loader, programs

TORCH = os.environ.get("CLUSTERCTL_TORCH_PYTHON", "")
QUIET = "import json, sys\nspec = json.loads(sys.argv[1])\n"
REPORT = "def report(**values):\n    print(json.dumps(values), flush=True)\n"
GOOD = (
    f"{QUIET}{REPORT}report(phase='start')\nreport(ready=True)\nsys.stdin.readline()\nprint('a library prints', flush=True)\n"
    "report(phase='bf16')\nreport(gemm_bf16_tflops=1.5)\nreport(loaded=True)\nsys.stdin.readline()\n"
    "report(not_measured={'peer': 'alone'})\nreport(done=True)\n"
)
HANGS = f"{QUIET}{REPORT}report(ready=True)\nsys.stdin.readline()\nreport(phase='bf16')\nreport(gemm_bf16_tflops=1.5)\nsys.stdin.read()\n"
KILLED = f"{QUIET}{REPORT}report(ready=True)\nsys.stdin.readline()\nimport os\nos.kill(os.getpid(), 9)\n"
DIES = f"{QUIET}{REPORT}report(ready=True)\nsys.stdin.readline()\nreport(phase='repeats')\nimport os\nos._exit(9)\n"
NO_TORCH = f"{QUIET}{REPORT}report(phase='import')\nreport(error='ModuleNotFoundError: no torch')\nsys.exit(1)\n"


def smi(fields: str) -> tuple[int, str]:
    """Two GPUs at work, of a driver that knows only the older name of the reasons."""
    if fields == gpu_load.IDENTITY:
        return 0, "0, GPU-0, 165, 00000000:1B:00.0, H100\n1, GPU-1, [N/A], 00000000:1C:00.0, H100\n"
    if fields == gpu_load.USERS:
        return 0, f"GPU-0, {os.getpid()}, python3\n"
    if "clocks_event_reasons" in fields:
        return 2, 'Field "clocks_event_reasons.active" is not a valid field to query.\n'
    return 0, "GPU-0, 61, 80, 690.5, 1400, 0x0000000000000004\nGPU-1, 62, [N/A], 691, 1410, 0x0000000000000001\n"


def run(work: str, ask: gpu_load.Ask = smi, device: str = "cuda", limit: str = "20", **more: Any) -> dict[str, Any]:
    python = more.get("python", sys.executable)
    argv = ["--python", python, "--device", device, "--seconds", "0.2", "--matrix-size", "64"]
    return gpu_load.main(work, [*argv, "--buffer-mib", "4", "--limit", limit], ask)


def test_every_gpu_is_driven_to_the_end() -> None:
    """Figures, reasons of nvidia-smi's older name, and what a library prints is passed over."""
    load = parse_gpu_load(json.dumps(run(GOOD)))
    first, second = load.gpus
    assert (first.ended, first.figures["gemm_bf16_tflops"]) == (GpuLoadEnd.OK, 1.5)
    assert first.not_measured == {"peer": "alone"}
    assert (first.serial, second.serial, first.pci) == ("165", "", "0000:1b:00.0")


def test_it_watches_while_gpus_work() -> None:
    """The hottest value of each, and a clock only of a GPU that is not idle; unreadable cells are no zeros."""
    watch = gpu_load.Watch(smi)

    def ask(fields: str) -> tuple[int, str]:
        reported = smi(fields)
        if reported[0] == 0:
            watch.over.set()
        return reported

    watch.ask = ask
    watch.over.clear()
    watch.run()
    for row in gpu_load.rows(smi("uuid")[1]):
        watch.add(row)
    assert watch.seen["GPU-0"]["power_max_w"] == 690.5
    assert watch.seen["GPU-0"]["sm_clock_min_mhz"] == 1400
    assert "sm_clock_min_mhz" not in watch.seen["GPU-1"]
    assert "memory_temperature_max_c" not in watch.seen["GPU-1"]


@pytest.mark.parametrize(
    ("work", "ended", "phase"),
    [(HANGS, GpuLoadEnd.HUNG, "bf16"), (DIES, GpuLoadEnd.FAILED, "repeats")],
    ids=["hangs", "dies"],
)
def test_what_hangs_or_dies_keeps_its_figures(work: str, ended: GpuLoadEnd, phase: str) -> None:
    """The limit holds for all together; the document has how far each came."""
    load = parse_gpu_load(json.dumps(run(work, limit="2")))
    assert {(one.ended, one.phase, one.began) for one in load.gpus} == {(ended, phase, True)}
    assert [one.figures.get("gemm_bf16_tflops") for one in load.gpus] == [1.5 if work is HANGS else None] * 2


def test_a_process_that_was_killed_reports_the_signal() -> None:
    """A process leaves its GPU after it has closed its stdout: the program waits for it."""
    load = parse_gpu_load(json.dumps(run(KILLED)))
    assert [(one.ended, one.exit_code) for one in load.gpus] == [(GpuLoadEnd.FAILED, -9)] * 2


def test_processes_of_others_on_a_gpu_are_reported() -> None:
    """By name and number, each once; the program's own are not; a name with a comma is kept."""
    watch = gpu_load.Watch(smi)
    with subprocess.Popen(["sleep", "60"]) as child:
        for _ in range(2):
            watch.see_users(0, f"GPU-0, {child.pid}, sleep\nGPU-1, 1, train, a.py\nGPU-1, [N/A], x\n")
        child.kill()
    assert "GPU-0" not in watch.seen
    assert watch.seen["GPU-1"]["others"] == ["train, a.py (process 1)"]


def test_a_python_without_torch_is_reported() -> None:
    """It never began, and in which phase it stopped."""
    load = parse_gpu_load(json.dumps(run(NO_TORCH)))
    assert [(one.began, one.phase, one.error) for one in load.gpus] == [
        (False, "import", "ModuleNotFoundError: no torch")
    ] * 2


@pytest.mark.parametrize(
    ("answer", "python", "trouble"),
    [
        ((9, "NVIDIA-SMI has failed"), sys.executable, "nvidia-smi ended with 9: NVIDIA-SMI has failed"),
        ((0, "No devices were found\n"), sys.executable, "lists no GPU: No devices were found"),
        ((0, "0, GPU-0, 165, 00000000:1B:00.0, H100\n"), "/nowhere/python3", "there is no Python at /nowhere/python3"),
    ],
)
def test_nothing_is_begun_without_gpus_or_python(answer: tuple[int, str], python: str, trouble: str) -> None:
    """The document has the reason."""
    document = run(GOOD, lambda _: answer, python=python)
    assert document["gpus"] == []
    assert trouble in document["trouble"]
    assert document.get("python_absent", False) == (python != sys.executable)


def test_each_process_sees_its_gpu_and_the_neighbour() -> None:
    """By UUID, which no other numbering changes; the last one's neighbour is the first."""
    reported = QUIET + REPORT + "import os\nreport(digest=os.environ['CUDA_VISIBLE_DEVICES'])\nreport(ready=True)\n"
    assert [gpu["digest"] for gpu in run(reported)["gpus"]] == ["GPU-0,GPU-1", "GPU-1,GPU-0"]


def test_the_worker_travels_with_the_program() -> None:
    """As the node's bundle starts it: one text in the other's first argument, each below the kernel's 128 KiB."""
    assert {name for name, texts in programs().items() if len(texts) > 1} == {"gpu-load", "torch-group"}
    assert max(len(text.encode()) for texts in programs().values() for text in texts) < 128 * 1024


@pytest.mark.skipif(not TORCH, reason="CLUSTERCTL_TORCH_PYTHON names no Python that has PyTorch")
def test_real_pytorch_on_processors() -> None:
    """The program as a node runs it: two processes compute the same bits, and report what processors cannot do."""
    argv = ["--python", TORCH, "--device", "cpu:2", "--seconds", "0.5", "--matrix-size", "128"]
    argv += ["--buffer-mib", "16", "--limit", "100"]
    command = [sys.executable, "-I", "-c", *loader(), *programs()["gpu-load"], *argv]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600, cwd=Path("/"))
    load = parse_gpu_load(done.stdout)
    assert [(one.ended, one.mismatches) for one in load.gpus] == [(GpuLoadEnd.OK, 0)] * 2
    assert load.gpus[0].digest == load.gpus[1].digest != ""
    assert all(one.figures["gemm_bf16_tflops"] > 0 for one in load.gpus)
    assert all("host" in one.not_measured and one.repeats > 0 for one in load.gpus)
