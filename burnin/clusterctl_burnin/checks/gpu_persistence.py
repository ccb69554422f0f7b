"""gpu_persistence: the driver stays loaded while no process uses the GPUs.

Without persistence mode the driver restarts each GPU for every first user: seconds lost, fabric joined again, ECC
counters and clocks forgotten (NVIDIA's driver persistence guide, docs.nvidia.com/deploy/driver-persistence).
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or

_NAME = "gpu_persistence"
_REMEDY = "run systemctl status nvidia-persistenced on the node; configure the node again (role nvidia_driver)"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    def off(gpu: GpuReading) -> Iterator[Finding]:
        if not known(gpu.persistence, "the GPU's persistence mode"):
            cause, serial = "the GPU's persistence mode is off", gpu.serial or ""
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_PERSISTENCE_OFF,
                subject=gpu.subject,
                cause=cause,
                measured="Disabled",
                expected="Enabled",
                remedy=_REMEDY,
                serial=serial,
            )

    return each_or(_NAME, readings, expected, off, passed(_NAME, "persistence mode of all GPUs is on"))


CHECK = Check(_NAME, (NVIDIA_SMI,), _judge, area=Area.GPU, causes=(Cause("nvidia_driver"),))
