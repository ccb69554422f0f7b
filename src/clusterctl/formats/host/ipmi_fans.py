"""Fans as the node's own BMC reports them: `ipmitool sdr type Fan`.

A line has name, sensor number, state, entity and reading, between bars. Entities 29 are fans, 30 cooling units, 10
power supplies, 7 the system board (IPMI 2.0, table 43-13); texts of sensors without a figure are those of table 42-2,
and of 42-3 for the presence of a part.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

RPM = "RPM"
_LINE = re.compile(
    r"^(?P<name>[^|\s][^|]*)\|\s*(?P<number>[0-9A-Fa-f]{2}h)\s*\|\s*(?P<state>[a-z]+)\s*"
    r"\|\s*(?P<entity>\d{1,4}\.\d{1,4})\s*\|\s*(?P<reading>.*)$"
)
_FIGURE = re.compile(r"^(?P<value>\d{1,18}(?:\.\d+)?) (?P<unit>RPM|percent|unspecified)$")
_WHERE = "ipmitool sdr type Fan"


class FanState(enum.Enum):
    """OK; EMPTY: no reading, as of an empty socket; DEGRADED: past a warning threshold; FAILED: past a critical one."""

    OK = "ok"
    EMPTY = "empty"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FanSensor:
    """A fan, or a sensor about fans: then `speed` is None, and `reading` is what it reports, such as `Fully Redundant`.

    entity  the kind of part that it belongs to, by its number: only fans of one kind turn at like speeds
    speed   in `unit`: RPM, or percent of its highest
    """

    name: str
    entity: int
    state: FanState
    reading: str
    speed: float | None = None
    unit: str = ""


_STATES: Mapping[str, FanState] = {
    "ok": FanState.OK,
    **dict.fromkeys(("ns", "na"), FanState.EMPTY),
    **dict.fromkeys(("nc", "lnc", "unc"), FanState.DEGRADED),
    **dict.fromkeys(("cr", "lcr", "ucr", "nr", "lnr", "unr"), FanState.FAILED),
}
_TEXTS: Mapping[str, FanState] = {
    **dict.fromkeys(
        (
            "",
            "Present",
            "Device Present",
            "Device Enabled",
            "Presence detected",
            "Presence Detected",
            "State Deasserted",
            "Predictive Failure Deasserted",
            "Limit Not Exceeded",
            "Performance Met",
            "Transition to OK",
            "Transition to Running",
            "Transition to On Line",
            "Transition to Power Save",
            "Fully Redundant",
        ),
        FanState.OK,
    ),
    **dict.fromkeys(
        ("Absent", "Device Absent", "Device Removed/Device Absent", "Disabled", "Device Disabled"), FanState.EMPTY
    ),
    **dict.fromkeys(
        (
            "State Asserted",
            "Predictive Failure Asserted",
            "Limit Exceeded",
            "Performance Lags",
            "Transition to Degraded",
            "Transition to Non-critical from OK",
            "Transition to Non-critical from more severe",
            "Redundancy Degraded",
            "Redundancy Degraded from Fully Redundant",
            "Redundancy Degraded from Non-Redundant",
            "Non-Redundant: Sufficient from Redundant",
            "Non-Redundant: Sufficient from Insufficient",
        ),
        FanState.DEGRADED,
    ),
    **dict.fromkeys(
        (
            "Redundancy Lost",
            "Non-Redundant: Insufficient Resources",
            "Install Error",
            "Transition to Off Line",
            "Transition to Critical from less severe",
            "Transition to Critical from Non-recoverable",
            "Transition to Non-recoverable",
            "Transition to Non-recoverable from less severe",
        ),
        FanState.FAILED,
    ),
}
_SEVERITY = list(FanState)


def parse_fans(text: str) -> tuple[FanSensor, ...]:
    """Return all sensors about fans. Raises `ParseError` for text that is not understood, and where there is none."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise ParseError("no sensor in it", where=_WHERE)
    return tuple(_sensor(line, f"{_WHERE}:{number}") for number, line in lines)


def _sensor(line: str, where: str) -> FanSensor:
    match = _LINE.match(line)
    if match is None or match["state"] not in _STATES:
        raise ParseError(f"line not understood: {line[:100]!r}", where=where)
    name, entity, state = match["name"].rstrip(), int(match["entity"].partition(".")[0]), _STATES[match["state"]]
    reading = match["reading"].strip()
    if state is FanState.EMPTY:
        return FanSensor(name, entity, state, reading)
    if figure := _FIGURE.match(reading):
        return FanSensor(name, entity, state, reading, float(figure["value"]), figure["unit"])
    return FanSensor(name, entity, max(state, _text_state(reading, where), key=_SEVERITY.index), reading)


def _text_state(reading: str, where: str) -> FanState:
    """Return the worst of the states that a sensor without a figure reports, separated by commas."""
    texts = [text.strip() for text in reading.split(",")]
    if unknown := [text for text in texts if text not in _TEXTS]:
        raise ParseError(f"reading not understood: {unknown[0][:60]!r}", where=where)
    return max((_TEXTS[text] for text in texts), key=_SEVERITY.index)
