"""Fans and temperatures; recorded at Chassis/1/Thermal, with the recorded thresholds.

A sensor that does not read while the machine is off reads 0 and is Absent, as iLO reports the recorded sensors of
absent parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import paths
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Fan

FAN_PERCENT = 51
CPU_C, BOARD_ABOVE_INLET_C = 40, 10
"""As recorded: inlet 20 °C, CPU 40 °C (an invented number of iLO's: below 40 it reports 40), board inlet 30 °C."""
_THERMAL = f"{paths.CHASSIS}/Thermal"
_FIRST_SLOT = 30


@dataclass(frozen=True, slots=True)
class _Sensor:
    """°C; `reads` also while the machine is off."""

    name: str
    context: str
    celsius: int
    critical: int | None
    fatal: int | None = None
    health: str = health.OK
    standby: bool = False


def resources(view: View) -> Iterator[Resource]:
    sensors = enumerate(_sensors(view))
    yield {
        **head(_THERMAL, "Thermal.v1_7_1.Thermal", "Thermal"),
        "Fans": [_fan(place, fan, on=view.power) for place, fan in enumerate(view.machine.fans)],
        "Temperatures": [_temperature(place, sensor, on=view.power) for place, sensor in sensors],
    }


def _sensors(view: View) -> Iterator[_Sensor]:
    machine = view.machine
    reported = health.of_inlet(machine)
    yield _Sensor("01-Inlet Ambient", "Intake", machine.inlet_c, health.INLET_CRITICAL_C, 47, reported, standby=True)
    for cpu in range(machine.cpus):
        yield _Sensor(f"{cpu + 2:02}-CPU {cpu + 1}", "CPU", CPU_C, 75)
    board = machine.inlet_c + BOARD_ABOVE_INLET_C
    yield _Sensor("15-Board Inlet", "SystemBoard", board, 60, 65, standby=True)
    for hca in machine.hcas:
        name = f"{_FIRST_SLOT + 2 * hca.rail}-PCI {hca.rail + 1}"
        yield _Sensor(name, "SystemBoard", hca.temperature_c, 100)


def _temperature(place: int, sensor: _Sensor, *, on: bool) -> Resource:
    reads = on or sensor.standby
    return {
        "@odata.id": f"{_THERMAL}#Temperatures/{place}",
        "MemberId": str(place),
        "Name": sensor.name,
        "PhysicalContext": sensor.context,
        "ReadingCelsius": sensor.celsius if reads else 0,
        "SensorNumber": place + 1,
        "Status": {"Health": sensor.health, "State": "Enabled"} if reads else {"State": "Absent"},
        "UpperThresholdCritical": sensor.critical if reads else None,
        "UpperThresholdFatal": sensor.fatal if reads else None,
    }


def _fan(place: int, fan: Fan, *, on: bool) -> Resource:
    return {
        "@odata.id": f"{_THERMAL}#Fans/{place}",
        "MemberId": str(place),
        "Name": fan.slot,
        "Reading": FAN_PERCENT * fan.speed_percent // 100 if on and not fan.failed else 0,
        "ReadingUnits": "Percent",
        "Status": {"Health": health.of_fan(fan), "State": "Enabled"},
    }
