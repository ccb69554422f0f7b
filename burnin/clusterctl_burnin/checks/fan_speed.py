"""fan_speed: every fan turns, none is much slower than the others, and the BMC reports none as failing.

The node asks its own BMC, without a network or a password. Sockets without a reading are empty: a missing fan is found
by the step discover. A lost redundancy is a finding only where no failed fan explains it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.host.ipmi_fans import RPM, FanSensor, FanState, parse_fans
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

FAN_SPEED_MIN = LimitKey(
    "fan_speed_min",
    "% of the node's median fan",
    default=50,
    source="own choice; the two rotors of one fan, and fans of one server, differ by up to a quarter",
)
FAN_SPEED = Metric(
    "fan_speed",
    "% of the node's median fan",
    Bad.LOW,
    0.1,
    0.0,
    "clean the fan and the grille before it, reseat it, then replace it",
)

FANS = Probe("fans", ("ipmitool", "sdr", "type", "Fan"), timeout=30.0, role="burnin_tools")
_NAME = "fan_speed"
_FEW = 3
"""Fewer fans of one kind have no median that shows what is usual."""
_DRIVER = (
    "load ipmi_si and ipmi_devintf on the node (role burnin_tools), enable the BMC's host interface (KCS), "
    "then run the burn-in again"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    sensors = _sensors(readings)
    limit = expected.limits[FAN_SPEED_MIN]
    shares = dict(_shares(sensors))
    fans = [sensor for sensor in sensors if sensor.speed is not None]
    bad = [finding for fan in fans for finding in _bad(fan, shares.get(fan.name), limit)]
    if not any(finding.verdict is Verdict.FAIL for finding in bad):
        bad += map(_reported, filter(_silent_and_failing, sensors))
    yield from bad
    if not bad:
        slowest = limit.quantity(min(shares.values())) if shares else None
        yield passed(_NAME, f"{len(fans)} fans turn", measured=slowest, expected=limit.at_least if shares else None)


def _sensors(readings: Readings) -> tuple[FanSensor, ...]:
    """Return the fans. Raise `UnmeasuredError` where the node does not reach the BMC, or no fan has a reading."""
    result = readings.result(FANS)
    if result.rc != 0:
        raise UnmeasuredError(f"the node cannot ask its BMC for fans: {result.error_output}", remedy=_DRIVER)
    sensors = parse_fans(result.stdout)
    if all(sensor.speed is None for sensor in sensors):
        remedy = "compare the fans in the BMC's own list; drop fan_speed from the suite where the server has no fans"
        raise UnmeasuredError("the BMC reports the speed of no fan", remedy=remedy)
    return sensors


def _shares(sensors: Sequence[FanSensor]) -> Iterator[tuple[str, float]]:
    """Yield the name of each fan and its speed, in percent of the median of the node's fans of its kind."""
    for entity in sorted({sensor.entity for sensor in sensors}):
        speeds = {s.name: s.speed for s in sensors if s.entity == entity and s.unit == RPM and s.speed is not None}
        median = statistics.median(speeds.values()) if len(speeds) >= _FEW else 0.0
        if median:
            yield from ((name, 100 * speed / median) for name, speed in speeds.items())


def _silent_and_failing(sensor: FanSensor) -> bool:
    return sensor.speed is None and sensor.state in (FanState.DEGRADED, FanState.FAILED)


def _bad(fan: FanSensor, share: float | None, limit: Limit) -> Iterator[Finding]:
    if fan.unit == RPM and fan.speed == 0:
        yield _finding(fan, Code.FAN_STOPPED, "the fan does not turn")
    elif fan.state is FanState.FAILED:
        yield _reported(fan)
    elif share is not None and share < limit.value:
        slow = _finding(fan, Code.FAN_SLOW, f"the fan turns at {fan.reading}, much slower than the others")
        yield replace(slow, measured=limit.quantity(share), expected=limit.at_least)
    elif fan.state is FanState.DEGRADED:
        yield _reported(fan)


def _reported(sensor: FanSensor) -> Finding:
    """Return the BMC's own complaint about a fan: a failure past a critical threshold, else a warning."""
    if sensor.state is FanState.FAILED:
        return _finding(sensor, Code.PART_UNHEALTHY, f"the BMC reports {sensor.name} as critical")
    finding = _finding(sensor, Code.PART_UNHEALTHY, f"the BMC warns of {sensor.name}")
    return replace(finding, verdict=Verdict.WARN)


def _finding(sensor: FanSensor, code: Code, cause: str) -> Finding:
    part = f"fan {sensor.name}" if sensor.speed is not None else "the fans"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=code,
        subject=sensor.name,
        cause=cause,
        measured=sensor.reading if sensor.speed is None else Quantity(sensor.speed, sensor.unit),
        remedy=(
            f"check that nothing blocks {part}, clean and reseat it, and run the burn-in again; replace it if "
            "that does not help"
        ),
    )


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for name, share in _shares(_sensors(readings)):
        yield Sample(node, FAN_SPEED, share, population, name)


CHECK = Check(
    _NAME,
    (FANS,),
    _judge,
    area=Area.COOLING,
    limits=(FAN_SPEED_MIN,),
    metrics=(FAN_SPEED,),
    samples=_samples,
)
