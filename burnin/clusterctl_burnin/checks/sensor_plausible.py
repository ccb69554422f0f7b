"""sensor_plausible: the GPUs' temperature and power sensors show values that a working sensor can show.

A dead sensor reads 0, a dead bus reads all ones (255). Fans, clocks and the other checks follow what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import between
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or

SENSOR_MIN = LimitKey(
    "sensor_temperature_min", "°C", default=1, source="own choice; machine rooms are warmer, and a dead sensor reads 0"
)
SENSOR_MAX = LimitKey(
    "sensor_temperature_max",
    "°C",
    default=120,
    source="own choice; GPUs switch themselves off below it",
)
POWER_MIN = LimitKey("sensor_power_min", "W", default=1, source="own choice; an idle GPU draws several W or more")
_NAME = "sensor_plausible"
_REMEDY = "reset the GPU and run the burn-in again; replace the GPU if its sensor still shows that"
_MOST_OF_LIMIT = 2.0
"""Times the power limit: short peaks are above the limit itself."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    low, high = expected.limits[SENSOR_MIN].value, expected.limits[SENSOR_MAX].value
    least = expected.limits[POWER_MIN].value

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        sensors = [("temperature of the GPU", known(gpu.temperature, "the GPU's temperature"), "°C", low, high)]
        if gpu.memory_temperature is not None:  # gpu_idle reports where HBM has none
            sensors.append(("temperature of the GPU's memory", gpu.memory_temperature, "°C", low, high))
        if gpu.power.draw is not None and gpu.power.limit is not None:
            sensors.append(("power of the GPU", gpu.power.draw, "W", least, _MOST_OF_LIMIT * gpu.power.limit))
        for what, value, unit, lowest, highest in sensors:
            if not lowest <= value <= highest:
                allowed = between(lowest, highest, unit)
                yield Finding(
                    check=_NAME,
                    verdict=Verdict.FAIL,
                    code=Code.SENSOR_IMPLAUSIBLE,
                    subject=gpu.subject,
                    cause=f"the sensor of the {what} shows {value:g} {unit}, which a working sensor does not",
                    expected=allowed,
                    remedy=_REMEDY,
                    serial=gpu.serial or "",
                )

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "the sensors of all GPUs show plausible values"))


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"), Cause("gpu_count", unmeasured=True)),
    limits=(SENSOR_MIN, SENSOR_MAX, POWER_MIN),
    after_loads=True,
)
