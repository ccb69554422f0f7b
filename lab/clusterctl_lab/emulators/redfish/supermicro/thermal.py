"""Fans and temperatures; recorded at Chassis/1/Thermal, with the thresholds that stand there.

One sensor stands for all GPUs, and one for each network card. A sensor that does not read while the machine is off is
reported as the recording reports sensors of absent parts: without reading and thresholds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.supermicro import paths
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Fan

FAN_RPM = 2240
CPU_ABOVE_INLET_C, SYSTEM_ABOVE_INLET_C = 8, 16
"""As recorded: inlet 21 °C, CPU1 29 °C, system 37 °C."""
_THERMAL = f"{paths.CHASSIS}/Thermal"


@dataclass(frozen=True, slots=True)
class _Sensor:
    """°C; `reads` also while the machine is off."""

    name: str
    number: int
    context: str
    celsius: int
    critical: int
    fatal: int | None
    health: str = health.OK
    standby: bool = False


def resources(view: View) -> Iterator[Resource]:
    sensors = enumerate(_sensors(view))
    yield {
        **head(_THERMAL, "Thermal.v1_6_2.Thermal", "Thermal"),
        "Id": "1",
        "Temperatures": [_temperature(place, sensor, on=view.power) for place, sensor in sensors],
        "Fans": [_fan(place, fan, on=view.power) for place, fan in enumerate(view.machine.fans)],
    }


def _sensors(view: View) -> Iterator[_Sensor]:
    machine = view.machine
    inlet = machine.inlet_c
    for cpu in range(machine.cpus):
        yield _Sensor(f"CPU{cpu + 1} Temp", cpu + 1, "CPU", inlet + CPU_ABOVE_INLET_C, 99, 99)
    reported = health.of_inlet(machine)
    yield _Sensor("Inlet Temp", 3, "SystemBoard", inlet, health.INLET_CRITICAL_C, 45, reported, standby=True)
    yield _Sensor("System Temp", 11, "SystemBoard", inlet + SYSTEM_ABOVE_INLET_C, 85, 90, standby=True)
    if machine.gpus:
        yield _Sensor("GPU Temp", 96, "GPU", max(gpu.temperature_c for gpu in machine.gpus), 87, 89)
    for hca in machine.hcas:
        number = paths.hca_number(hca)
        yield _Sensor(f"AOC_NIC{number} Temp", 112 + number, "ASIC", hca.temperature_c, 100, None)


def _temperature(place: int, sensor: _Sensor, *, on: bool) -> Resource:
    reads = on or sensor.standby
    enabled = {"State": "Enabled", "Health": sensor.health}
    return {
        "@odata.id": f"{_THERMAL}#/Temperatures/{place}",
        "@odata.type": "#Thermal.v1_6_0.Temperature",
        "MemberId": str(place),
        "Name": sensor.name,
        "SensorNumber": sensor.number,
        "Status": enabled if reads else {"State": "Absent"},
        "ReadingCelsius": sensor.celsius if reads else None,
        "UpperThresholdCritical": sensor.critical if reads else None,
        "UpperThresholdFatal": sensor.fatal if reads else None,
        "PhysicalContext": sensor.context,
    }


def _fan(place: int, fan: Fan, *, on: bool) -> Resource:
    return {
        "@odata.id": f"{_THERMAL}#/Fans/{place}",
        "@odata.type": "#Thermal.v1_6_0.Fan",
        "MemberId": str(place),
        "Name": fan.slot,
        "SensorNumber": 65 + place,
        "PhysicalContext": "Fan",
        "Status": {"State": "Enabled", "Health": health.of_fan(fan)},
        "ReadingUnits": "RPM",
        "LowerThresholdCritical": 420,
        "Reading": FAN_RPM * fan.speed_percent // 100 if on and not fan.failed else 0,
    }
