"""A GPU that computes wrong results now and then, and of which nothing else complains."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    gpu = gpu_named(machine, part)
    return with_gpu(machine, replace(gpu, computes_wrong=True)).with_fault(f"silent-corruption:gpu{gpu.index}")


FAULT = Fault(
    name="silent-corruption",
    does="products of a GPU come out wrong, without any error (the first one where none is named)",
    shows="the load gpu_load: equal products that differ",
    target="NODE or NODE:gpu5",
    apply=_apply,
)
