"""An error that NVIDIA's driver reports of a GPU: an Xid in the kernel log, and nothing else to be seen."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, gpu_named, with_gpu
from clusterctl_lab.machine import Machine

CODES = (48, 64, 74, 94, 95, 119)
"""Those that keep a node from training, and whose line in the log is documented. For 79 see gpu-off-the-bus."""
USUAL = "119"


def _apply(machine: Machine, part: str) -> Machine:
    name, _, text = part.partition("=")
    gpu, code = gpu_named(machine, name), text or USUAL
    if not code.isdecimal() or int(code) not in CODES:
        codes = ", ".join(map(str, CODES))
        raise UsageError(f"the lab knows no Xid {code}", where="target", remedy=f"choose from: {codes}")
    broken = replace(gpu, xids=(*gpu.xids, int(code)))
    return with_gpu(machine, broken).with_fault(f"xid:gpu{gpu.index}={int(code)}")


FAULT = Fault(
    name="xid",
    does="NVIDIA's driver reports an error of a GPU (Xid 119 of the first one where none is named)",
    shows="the kernel log",
    target="NODE or NODE:gpu3 or NODE:gpu3=74",
    apply=_apply,
)
