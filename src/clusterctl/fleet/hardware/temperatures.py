"""What a machine's own sensors read, against the thresholds that its BMC names for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.part_health import unmeasured
from clusterctl.fleet.node import Inventory, Temperature
from clusterctl.fleet.quantity import Quantity

CHECK = "temperature"
UNIT = "°C"
_HEALTHS = {"Critical": Verdict.FAIL, "Warning": Verdict.WARN}


def judge_temperatures(inventory: Inventory) -> tuple[Finding, ...]:
    """Return a finding for each sensor that is too hot, else one for all. A hot air intake is the root of the others.

    Sensors without threshold and health are not judged; where none can be, there is no finding.
    """
    if inventory.temperatures is None:
        return (unmeasured(CHECK, "the BMC does not report temperatures"),)
    judged = [sensor for sensor in inventory.temperatures if sensor.critical is not None or sensor.health]
    hot = [sensor for sensor in judged if _verdict(sensor) is not Verdict.PASS]
    if judged and not hot:
        measured = max(judged, key=lambda sensor: sensor.celsius)
        return (_finding(measured, Verdict.PASS, f"none of {len(judged)} sensors is too hot"),)
    return _hot(hot)


def _hot(sensors: Sequence[Temperature]) -> tuple[Finding, ...]:
    findings = [_finding(sensor, _verdict(sensor), _cause(sensor)) for sensor in sensors]
    failed = (_key(sensor) for sensor in sensors if sensor.intake and _verdict(sensor) is Verdict.FAIL)
    intake = next(failed, "")
    return tuple(found if found.key == intake else replace(found, root=intake) for found in findings)


def _verdict(sensor: Temperature) -> Verdict:
    if sensor.critical is not None and sensor.celsius >= sensor.critical:
        return Verdict.FAIL
    return _HEALTHS.get(sensor.health, Verdict.PASS)


def _finding(sensor: Temperature, verdict: Verdict, cause: str) -> Finding:
    good = verdict is Verdict.PASS
    return Finding(
        check=CHECK,
        verdict=verdict,
        code=Code.PASSED if good else Code.SENSOR_TOO_HOT,
        subject="node" if good else sensor.sensor,
        cause=cause,
        measured=Quantity(sensor.celsius, UNIT),
        expected=None if sensor.critical is None else f"below {Quantity(sensor.critical, UNIT)}",
        remedy="" if good else _remedy(sensor),
        deterministic=good,
    )


def _cause(sensor: Temperature) -> str:
    word = f", which the BMC calls {sensor.health}" if sensor.health in _HEALTHS else ""
    limit = "" if sensor.critical is None else f" (critical from {sensor.critical:g} {UNIT})"
    return f"{sensor.sensor} reads {sensor.celsius:g} {UNIT}{limit}{word}"


def _remedy(sensor: Temperature) -> str:
    if sensor.intake:
        return (
            "cool the air in front of the machine: check blanking panels, the doors of the cold aisle, the cooling unit"
        )
    return (
        f"check that all fans run and that nothing blocks the air at {sensor.sensor}; if it stays hot, replace the part"
    )


def _key(sensor: Temperature) -> str:
    return f"{CHECK}:{sensor.sensor}"
