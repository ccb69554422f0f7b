"""Fans and temperatures; recorded at Chassis/System.Embedded.1/Thermal, with the recorded thresholds.

A sensor's state while the machine is off is not recorded: it has no reading and is `UnavailableOffline`, as the DMTF's
Resource schema describes a present part that cannot be used. The inlet sensor belongs to the BMC and always reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, counted, head, status
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Fan, Machine

FAN_RPM = 9600
CPU_ABOVE_INLET_C = 12
EXHAUST_ABOVE_INLET_C = 6
"""As recorded, idle: inlet 25 °C, CPU1 37 °C, exhaust 31 °C."""
_THERMAL = f"{paths.CHASSIS}/Thermal"


@dataclass(frozen=True, slots=True)
class _Sensor:
    """°C; `critical` is None where the recorded sensor of that name has no threshold."""

    name: str
    context: str
    celsius: int
    critical: int | None
    health: str = health.OK
    reads: bool = True


def resources(view: View) -> Iterator[Resource]:
    machine, sensors = view.machine, _sensors(view)
    yield {
        **head(_THERMAL, "Thermal.v1_7_1.Thermal", "Thermal"),
        "Description": "Represents the properties for Temperature and Cooling",
        **counted("Fans", [_fan(number, fan, on=view.power) for number, fan in enumerate(machine.fans)]),
        **counted("Temperatures", [_temperature(number, sensor) for number, sensor in enumerate(sensors)]),
    }


def _sensors(view: View) -> list[_Sensor]:
    machine, on = view.machine, view.power
    inlet = machine.inlet_c
    cpus = [
        _Sensor(f"CPU{number + 1} Temp", "CPU", inlet + CPU_ABOVE_INLET_C, 99, reads=on)
        for number in range(machine.cpus)
    ]
    board = "SystemBoard"
    gpus = [
        _Sensor(f"System Board GPU{gpu.index + 1} Temp", board, gpu.temperature_c, None, reads=on)
        for gpu in machine.gpus
    ]
    exhaust = _Sensor("System Board Exhaust Temp", board, inlet + EXHAUST_ABOVE_INLET_C, 80, reads=on)
    return [*cpus, _inlet(machine), *gpus, exhaust]


def _inlet(machine: Machine) -> _Sensor:
    reported = health.of_inlet(machine)
    return _Sensor("System Board Inlet Temp", "SystemBoard", machine.inlet_c, health.INLET_CRITICAL_C, reported)


def _fan(number: int, fan: Fan, *, on: bool) -> Resource:
    return {
        "@odata.id": f"{_THERMAL}#/Fans/{number}",
        "@odata.type": "#Thermal.v1_7_1.Fan",
        "FanName": fan.slot,
        "HotPluggable": True,
        "MemberId": str(number),
        "Name": fan.slot,
        "PhysicalContext": "SystemBoard",
        "Reading": FAN_RPM * fan.speed_percent // 100 if on and not fan.failed else 0,
        "ReadingUnits": "RPM",
        "Status": status(health.of_fan(fan)),
    }


def _temperature(number: int, sensor: _Sensor) -> Resource:
    return {
        "@odata.context": "/redfish/v1/$metadata#Thermal.Thermal",
        "@odata.id": f"{_THERMAL}#/Temperatures/{number}",
        "@odata.type": "#Thermal.v1_7_1.Temperature",
        "MemberId": str(number),
        "Name": sensor.name,
        "PhysicalContext": sensor.context,
        "ReadingCelsius": sensor.celsius if sensor.reads else None,
        "SensorNumber": number + 1,
        "Status": status(sensor.health) if sensor.reads else {"Health": None, "State": "UnavailableOffline"},
        "UpperThresholdCritical": sensor.critical,
        "UpperThresholdFatal": None,
        "UpperThresholdNonCritical": None,
    }
