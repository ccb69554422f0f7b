"""How near the GPUs of this machine come to their chip's ceilings: the burn-in's own load, run here, no site needed.

    python -m benchmarks.gpu_load --python /opt/pytorch/bin/python3 [--seconds 30] [--device cuda|cpu:2]

The ceilings are the data sheet's, dense: what the chip cannot exceed, not what a healthy one reaches (an H100 SXM is
known to reach 794 of 989 TFLOP/s in BF16 and 1402 of 1979 in FP8). Of a chip that is not listed no ratio is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from clusterctl.formats.nvidia.gpu_load import GpuLoad, GpuLoadEnd, LoadedGpu, parse_gpu_load
from clusterctl_burnin.probe import loader, programs

CEILINGS: Mapping[str, Mapping[str, float]] = {
    "H100 80GB HBM3": {"gemm_bf16_tflops": 989.4, "gemm_fp8_tflops": 1978.9, "memory_gb_per_s": 3350.0},
    "H200": {"gemm_bf16_tflops": 989.4, "gemm_fp8_tflops": 1978.9, "memory_gb_per_s": 4800.0},
}
"""https://www.nvidia.com/en-us/data-center/h100/ and h200/, without sparsity; by a part of nvidia-smi's name of it."""
LINKS = {"host_to_device_gb_per_s": 63.0, "device_to_host_gb_per_s": 63.0, "peer_gb_per_s": 450.0}
"""PCIe 5.0 x16 (32 GT/s, 128b/130b), and 18 NVLinks of the fourth generation, one way."""
ASIDE = 300.0


def measured(options: argparse.Namespace) -> GpuLoad:
    """The program as a node runs it: both texts by the command line."""
    limit = 3 * options.seconds + ASIDE
    words = {
        "--python": options.python,
        "--device": options.device,
        "--seconds": options.seconds,
        "--matrix-size": options.matrix_size,
        "--buffer-mib": options.buffer_mib,
        "--limit": limit,
    }
    argv = [sys.executable, "-I", "-c", *loader(), *programs()["gpu-load"]]
    argv += [str(word) for pair in words.items() for word in pair]
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, timeout=limit + 60)
    return parse_gpu_load(done.stdout)


def ceilings(gpu: LoadedGpu) -> Mapping[str, float]:
    known = next((figures for name, figures in CEILINGS.items() if name in gpu.model), {})
    return {**LINKS, **known} if known else {}


def lines(load: GpuLoad) -> Iterator[str]:
    for gpu in load.gpus:
        how = "" if gpu.ended is GpuLoadEnd.OK else f" in {gpu.phase} {gpu.error}"
        yield f"{gpu.subject} {gpu.model} {gpu.serial or gpu.uuid}: {gpu.ended.value}{how}".rstrip()
        of = ceilings(gpu)
        for name, value in gpu.figures.items():
            ratio = f"  {value / of[name]:6.1%} of {of[name]:g}" if name in of else ""
            yield f"    {name:26} {value:10.4g}{ratio}"
        for phase, why in gpu.not_measured.items():
            yield f"    {phase:26} not measured: {why}"
        reasons = ", ".join(f"{mask:#x} {count} times" for mask, count in gpu.reasons.items())
        yield f"    repeated products          {gpu.repeats}, {gpu.mismatches} of them wrong; digest {gpu.digest[:12]}"
        yield f"    clock event reasons        {reasons or 'not read'}"
    yield f"results of {len(load.gpus)} devices: {'equal' if sound(load) else 'not equal, or not there'}"


def sound(load: GpuLoad) -> bool:
    """Every device went to the end, and all computed the same."""
    ended = all(gpu.ended is GpuLoadEnd.OK and gpu.digest and not gpu.mismatches for gpu in load.gpus)
    return ended and len({gpu.digest for gpu in load.gpus}) == 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("benchmarks.gpu_load")
    parser.add_argument("--python", default=sys.executable, help="a Python with PyTorch (default: this one)")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu:N for N processes on processors")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--matrix-size", type=int, default=8192)
    parser.add_argument("--buffer-mib", type=int, default=2048)
    load = measured(parser.parse_args(argv))
    if load.trouble:
        sys.stderr.write(f"{load.trouble}\n")
        return 3
    sys.stdout.write("".join(f"{line}\n" for line in lines(load)))
    if load.smi_output:
        sys.stderr.write(f"{load.smi_output}\n")
    return 0 if sound(load) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
