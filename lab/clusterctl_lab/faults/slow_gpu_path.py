"""An adapter that is slow with GPU memory, and at its full rate with the host's."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, gpu_path_slow=True)).with_fault(f"slow-gpu-path:{hca.name}")


FAULT = Fault(
    name="slow-gpu-path",
    does="one HCA reads and writes GPU memory slowly (the first one where none is named)",
    shows="all_reduce_perf over that rail alone: a small bus bandwidth; ib_write_bw of host memory is as ever",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
