"""Temperatures, from the Thermal resource of each chassis: one request has readings and thresholds together.

Deprecated since Redfish 2020.4 and still served by every recorded BMC. Its successor has each sensor, thresholds and
all, in a resource of its own below `Sensors`: dozens of requests, and read only where a chassis has nothing older.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from clusterctl.fleet.node import Temperature
from clusterctl.formats.redfish.system import chassis
from clusterctl.formats.redfish.tree import Resource, Tree

_INTAKE = re.compile(r"(\d+-)?(system board |temp_)?(inlet|ambient|intake)( ambient)?( temp)?", re.IGNORECASE)
"""`System Board Inlet Temp` (Dell), `Inlet Temp` (Supermicro), `TEMP_AMBIENT` (DGX); not `GPU Inlet Temp`."""
_INTAKES = 4
"""A machine breathes in so many places at most. A DGX calls all of its 120 sensors Intake: then only names tell."""


def temperatures(tree: Tree) -> tuple[Temperature, ...]:
    """Every sensor that reads, in the BMC's order; empty where the BMC has no such resource."""
    units = chassis(tree)
    resources = tree.all(path for one in units if (path := one.link("Thermal")))
    sensors = tree.gather((one for one in units if not one.has("Thermal") and one.has("Sensors")), "Sensors")
    older = (_of_thermal(item) for resource in resources for item in resource.each("Temperatures"))
    newer = (_of_sensor(item) for item in chain.from_iterable(sensors))
    return _believed((*_readings(older), *_readings(newer)))


def _believed(found: tuple[Temperature, ...]) -> tuple[Temperature, ...]:
    """With the air intake told by names alone where too many sensors claim to be one."""
    if sum(one.intake for one in found) <= _INTAKES:
        return found
    return tuple(replace(one, intake=_INTAKE.fullmatch(one.sensor) is not None) for one in found)


def _readings(found: Iterator[Temperature | None]) -> Iterator[Temperature]:
    return (one for one in found if one is not None)


def _of_thermal(item: Resource) -> Temperature | None:
    """None where it is not there, or does not read now. HPE's absent sensors read 0."""
    critical = item.number("UpperThresholdCritical")
    fatal = item.number("UpperThresholdFatal")
    return _temperature(item, item.number("ReadingCelsius"), critical if critical is not None else fatal)


def _of_sensor(item: Resource) -> Temperature | None:
    """None where it measures something else, is not there, or does not read now."""
    if item.text("ReadingType") != "Temperature" and item.text("ReadingUnits") != "Cel":
        return None
    critical = item.number("Thresholds", "UpperCritical", "Reading")
    fatal = item.number("Thresholds", "UpperFatal", "Reading")
    return _temperature(item, item.number("Reading"), critical if critical is not None else fatal)


def _temperature(item: Resource, celsius: float | None, critical: float | None) -> Temperature | None:
    if celsius is None or item.absent:
        return None
    name = item.text("Name") or item.path
    return Temperature(
        sensor=name,
        celsius=celsius,
        critical=critical,
        health=item.text("Status", "Health"),
        intake=item.text("PhysicalContext") == "Intake" or _INTAKE.fullmatch(name) is not None,
    )
