"""Fans, power supplies and temperatures: of each chassis' newer resources (ThermalSubsystem, PowerSubsystem, Sensors),
or of the older ones (Thermal, Power).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Fan, Psu, Temperature
from clusterctl.formats.redfish.system import chassis, programmed, serial_number, service_label, well
from clusterctl.formats.redfish.tree import GarbledError, RedfishTree, Resource


def fans(tree: RedfishTree) -> tuple[Fan, ...]:
    """Return all present fans, in the BMC's order. The older resource first: it is read for its temperatures anyway."""
    units = chassis(tree)
    older = [item for one in tree.readable_links(units, "Thermal") for item in one.each("Fans")]
    newer = [] if older else tree.present(tree.readable_links(units, "ThermalSubsystem"), "Fans")
    found = tree.kept(newer or older, lambda item: None if item.absent else _fan(item))
    if not found:
        raise ParseError("no fan is listed", where="/redfish/v1/Chassis Fans")
    return found


def _fan(item: Resource) -> Fan:
    """Return the fan; `GarbledError` where the BMC gives it neither a name nor a health."""
    fan = Fan(_fan_slot(item), well(item))
    if fan.healthy is None and not any(item.text(name) for name in ("Name", "FanName", "MemberId", "Id")):
        raise GarbledError("the fan has neither a name nor a health", where=item.where("Name"))
    return fan


def _fan_slot(item: Resource) -> str:
    return service_label(item) or item.text("Name") or item.text("FanName") or item.id


def psus(tree: RedfishTree) -> tuple[Psu, ...]:
    """Return all that are plugged in, in the BMC's order; `ParseError` where it lists none."""
    found = tree.kept(_supplies(tree), lambda item: None if item.absent else _psu(item))
    if not found:
        raise ParseError("no power supply is listed", where="/redfish/v1/Chassis PowerSupplies")
    return found


def _psu(item: Resource) -> Psu:
    return Psu(_psu_slot(item), serial_number(item), well(item))


def _psu_slot(item: Resource) -> str:
    """Return the label that is printed at the supply, as far as the BMC knows it."""
    bay = item.whole("Oem", "Hpe", "BayNumber")
    if bay is not None:
        return f"bay {bay}"
    label = service_label(item) or item.text("Name").removesuffix(" Status")
    return label if label and programmed(label) else item.text("MemberId") or item.id


def _supplies(tree: RedfishTree) -> list[Resource]:
    """Return the supplies of each chassis' PowerSubsystem; of the older Power resource where that lists none."""
    units = chassis(tree)
    listing = [one for one in tree.readable_links(units, "PowerSubsystem") if one.has("PowerSupplies")]
    listed = tree.readable_members(listing, "PowerSupplies")
    empty = [one for one, items in zip(listing, listed, strict=True) if not items]
    older = _older_supplies(tree, units, {one.path for one in listing} - {one.path for one in empty})
    if older:
        tree.forgive(one.link("PowerSupplies") or "" for one in empty)
    return [*chain.from_iterable(listed), *older]


def _older_supplies(tree: RedfishTree, units: Iterable[Resource], reporting: set[str]) -> list[Resource]:
    """Return the supplies of the Power resources of chassis with a PowerSubsystem that is none of the `reporting`."""
    silent = [one for one in units if one.link("PowerSubsystem") not in reporting]
    return [item for one in tree.readable_links(silent, "Power") for item in one.each("PowerSupplies")]


_INTAKE = re.compile(r"(\d+-)?(system board |temp_)?(inlet|ambient|intake)( ambient)?( temp)?", re.IGNORECASE)
"""`System Board Inlet Temp` (Dell), `Inlet Temp` (Supermicro), `TEMP_AMBIENT` (DGX); not `GPU Inlet Temp`."""
_INTAKES = 4
"""A machine has at most so many intake sensors. A DGX calls all of its 120 sensors Intake: then only names count."""


_COLDEST, _HOTTEST = -60, 250
"""°C. What reads less is a distance to a limit (`P1 Therm Margin` -71), what reads more is none. A threshold above,
or of zero and less, was never programmed.
"""


def temperatures(tree: RedfishTree) -> tuple[Temperature, ...]:
    """Return every sensor that reads, in the BMC's order; empty where the BMC has no such resource."""
    units = chassis(tree)
    resources = tree.readable_links(units, "Thermal")
    listing = [one for one in units if not one.has("Thermal") and one.has("Sensors")]
    sensors = tree.readable_members(listing, "Sensors")
    listed = [item for resource in resources for item in resource.each("Temperatures")]
    found = (*tree.kept(listed, _of_thermal), *tree.kept(chain.from_iterable(sensors), _of_sensor))
    if not found and tree.incomplete():
        raise ParseError("no sensor is among what could be read", where="/redfish/v1/Chassis Sensors")
    return _with_intakes(found)


def _with_intakes(found: tuple[Temperature, ...]) -> tuple[Temperature, ...]:
    """Return the sensors; the names alone decide which measure an air intake where too many sensors claim to."""
    if sum(one.intake for one in found) <= _INTAKES:
        return found
    return tuple(replace(one, intake=_INTAKE.fullmatch(one.sensor) is not None) for one in found)


def _of_thermal(item: Resource) -> Temperature | None:
    """Return the reading; None where the sensor is absent or does not read now. HPE's absent sensors read 0."""
    critical = item.number("UpperThresholdCritical")
    fatal = item.number("UpperThresholdFatal")
    return _temperature(item, item.number("ReadingCelsius"), critical if critical is not None else fatal)


def _of_sensor(item: Resource) -> Temperature | None:
    """Return the reading; None where the sensor measures something else, is absent, or does not read now."""
    if item.term("ReadingType") != "Temperature" and item.text("ReadingUnits") != "Cel":
        return None
    critical = item.number("Thresholds", "UpperCritical", "Reading")
    fatal = item.number("Thresholds", "UpperFatal", "Reading")
    return _temperature(item, item.number("Reading"), critical if critical is not None else fatal)


def _temperature(item: Resource, celsius: float | None, critical: float | None) -> Temperature | None:
    if celsius is None or item.absent or celsius < _COLDEST:
        return None
    if celsius > _HOTTEST:
        raise GarbledError(f"{celsius:g} °C is not plausible", where=item.where("Reading"))
    name = item.text("Name") or item.path
    return Temperature(
        sensor=name,
        celsius=celsius,
        critical=critical if critical is not None and 0 < critical <= _HOTTEST else None,
        health=item.term("Status", "Health"),
        intake=item.term("PhysicalContext") == "Intake" or _INTAKE.fullmatch(name) is not None,
    )
