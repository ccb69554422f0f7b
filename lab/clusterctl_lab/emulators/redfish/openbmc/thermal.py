"""Fans and temperatures; recorded at Chassis/DGX/Thermal: every sensor's context is Intake, the thresholds are its own.

What does not read while the machine is off is Absent without a reading, as the recorded sensors of absent parts are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Fan

FAN_RPM = 4408
CPU_ABOVE_AMBIENT_C = 9
"""As recorded: ambient 22 °C, CPU0 31 °C."""
_THERMAL = f"{paths.CHASSIS}/Thermal"
_FATAL_ABOVE_CRITICAL_C = 2


@dataclass(frozen=True, slots=True)
class _Sensor:
    """°C; `reads` also while the machine is off."""

    name: str
    celsius: int
    critical: int
    standby: bool = False

    @property
    def health(self) -> str:
        return health.CRITICAL if self.celsius >= self.critical else health.OK


def resources(view: View) -> Iterator[Resource]:
    sensors = enumerate(_sensors(view))
    yield {
        **head(_THERMAL, "Thermal.v1_7_0.Thermal", "Thermal"),
        "Description": "Thermal of the chassis",
        "Fans": [_fan(place, fan, on=view.power) for place, fan in enumerate(view.machine.fans)],
        "Temperatures": [_temperature(place, sensor, on=view.power) for place, sensor in sensors],
    }


def _sensors(view: View) -> Iterator[_Sensor]:
    machine = view.machine
    yield _Sensor("TEMP_AMBIENT", machine.inlet_c, 40, standby=True)
    for cpu in range(machine.cpus):
        yield _Sensor(f"TEMP_CPU{cpu}", machine.inlet_c + CPU_ABOVE_AMBIENT_C, 91)
    for gpu in machine.gpus:
        yield _Sensor(f"TEMP_GB_SXM{gpu.index + 1}", gpu.temperature_c, 88)
        yield _Sensor(f"TEMP_GB_SXM{gpu.index + 1}_M", gpu.memory_temperature_c, 98)
    for hca in machine.hcas:
        yield _Sensor(f"TEMP_NM_{hca.rail // 4}_CX7_{hca.rail % 4}", hca.temperature_c, 108)


def _temperature(place: int, sensor: _Sensor, *, on: bool) -> Resource:
    reads = on or sensor.standby
    return {
        "@odata.id": f"{_THERMAL}#/Temperatures/{place}",
        "MemberId": str(place),
        "Name": sensor.name,
        "PhysicalContext": "Intake",
        "ReadingCelsius": sensor.celsius if reads else None,
        "SensorNumber": place + 1,
        "Status": {"Health": sensor.health, "State": "Enabled"} if reads else {"State": "Absent"},
        "UpperThresholdCritical": sensor.critical,
        "UpperThresholdFatal": sensor.critical + _FATAL_ABOVE_CRITICAL_C,
        "UpperThresholdNonCritical": sensor.critical - 3,
    }


def _fan(place: int, fan: Fan, *, on: bool) -> Resource:
    return {
        "@odata.id": f"{_THERMAL}#/Fans/{place}",
        "LowerThresholdCritical": 2436,
        "MemberId": str(place),
        "Name": fan.slot,
        "PhysicalContext": "Fan",
        "Reading": FAN_RPM * fan.speed_percent // 100 if on and not fan.failed else 0,
        "ReadingUnits": "RPM",
        "Status": {"Health": health.of_fan(fan), "State": "Enabled"},
    }
