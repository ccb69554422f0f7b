"""What a machine's own sensors read, against the thresholds that its BMC names for them."""

from __future__ import annotations

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
    """A finding for each sensor that is too hot, else one for all. Hot air in explains every other hot sensor.

    Sensors without threshold and health are not judged; where none can be, there is no finding.
    """
    if inventory.temperatures is None:
        return (unmeasured(CHECK, "the BMC does not tell its temperatures"),)
    judged = [sensor for sensor in inventory.temperatures if sensor.critical is not None or sensor.health]
    if not judged:
        return ()
    hot = [(sensor, verdict) for sensor in judged if (verdict := _verdict(sensor)) is not Verdict.PASS]
    if not hot:
        measured = max(judged, key=lambda sensor: sensor.celsius)
        return (_finding(measured, Verdict.PASS, f"none of {len(judged)} sensors is too hot"),)
    findings = [_finding(sensor, verdict, _cause(sensor)) for sensor, verdict in hot]
    intake = next((_key(sensor) for sensor, verdict in hot if sensor.intake and verdict is Verdict.FAIL), "")
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
