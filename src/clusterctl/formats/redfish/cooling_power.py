"""Fans: those of each chassis' ThermalSubsystem; of the older Thermal resource where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Fan, Psu, Temperature
from clusterctl.formats.redfish.system import chassis, serial_number, service_label, well
from clusterctl.formats.redfish.tree import Resource, Tree


def fans(tree: Tree) -> tuple[Fan, ...]:
    """All that are there, in the BMC's order. The older resource first: it is read for its temperatures anyway."""
    units = chassis(tree)
    older = tree.readable(path for one in units if (path := one.link("Thermal")))
    listed = [item for one in older for item in one.each("Fans")]
    if not listed:
        newer = tree.readable(path for one in units if (path := one.link("ThermalSubsystem")))
        listed = list(chain.from_iterable(tree.readable_members((one for one in newer if one.has("Fans")), "Fans")))
    there = [item for item in listed if not item.absent]
    if not there:
        raise ParseError("no fan is listed", where="/redfish/v1/Chassis Fans")
    return tuple(Fan(_fan_slot(item), well(item)) for item in there)


def _fan_slot(item: Resource) -> str:
    return service_label(item) or item.text("Name") or item.text("FanName") or item.id


def psus(tree: Tree) -> tuple[Psu, ...]:
    """All that are plugged in, in the BMC's order; `ParseError` where it lists none."""
    present = [item for item in _supplies(tree) if not item.absent]
    if not present:
        raise ParseError("no power supply is listed", where="/redfish/v1/Chassis PowerSupplies")
    return tuple(_psu(item) for item in present)


def _psu(item: Resource) -> Psu:
    return Psu(_psu_slot(item), serial_number(item), well(item))


def _psu_slot(item: Resource) -> str:
    """What is printed beside it, as far as the BMC knows."""
    bay = item.whole("Oem", "Hpe", "BayNumber")
    if bay is not None:
        return f"bay {bay}"
    label = service_label(item) or item.text("Name").removesuffix(" Status")
    return label or item.id


def _supplies(tree: Tree) -> list[Resource]:
    """From each chassis' PowerSubsystem; from the older Power resource where that lists none."""
    units = chassis(tree)
    newer = tree.readable(path for one in units if (path := one.link("PowerSubsystem")))
    listing = [one for one in newer if one.has("PowerSupplies")]
    listed = tree.readable_members(listing, "PowerSupplies")
    told = {one.path for one, items in zip(listing, listed, strict=True) if items}
    silent = [one for one in units if one.link("PowerSubsystem") not in told and one.link("Power")]
    older = [item for one in tree.readable(map(_power, silent)) for item in one.each("PowerSupplies")]
    if older:
        tree.forgive(path for one in listing if one.path not in told and (path := one.link("PowerSupplies")))
    return [*chain.from_iterable(listed), *older]


def _power(unit: Resource) -> str:
    return unit.link("Power") or ""


_INTAKE = re.compile(r"(\d+-)?(system board |temp_)?(inlet|ambient|intake)( ambient)?( temp)?", re.IGNORECASE)
"""`System Board Inlet Temp` (Dell), `Inlet Temp` (Supermicro), `TEMP_AMBIENT` (DGX); not `GPU Inlet Temp`."""
_INTAKES = 4
"""A machine breathes in so many places at most. A DGX calls all of its 120 sensors Intake: then only names tell."""


def temperatures(tree: Tree) -> tuple[Temperature, ...]:
    """Every sensor that reads, in the BMC's order; empty where the BMC has no such resource."""
    units = chassis(tree)
    resources = tree.readable(path for one in units if (path := one.link("Thermal")))
    listing = [one for one in units if not one.has("Thermal") and one.has("Sensors")]
    sensors = tree.readable_members(listing, "Sensors")
    told = [item for resource in resources for item in resource.each("Temperatures")]
    older = (tree.attempt(partial(_of_thermal, item)) for item in told)
    newer = (tree.attempt(partial(_of_sensor, item)) for item in chain.from_iterable(sensors))
    found = (*_readings(older), *_readings(newer))
    if not found and tree.incomplete():
        raise ParseError("no sensor is among what could be read", where="/redfish/v1/Chassis Sensors")
    return _believed(found)


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
