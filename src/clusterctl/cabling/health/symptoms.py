"""Symptoms of a link: from the growth of its counters between two readings, and from error rates and temperatures."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from clusterctl.cabling.health.counters import Doubt, Growth, growth
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import HIGHEST, Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Link, PortId
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid


class HealthKind(enum.Enum):
    """In order of causation: each kind may cause the next."""

    SWITCH_LOST = "switch_lost"
    LOST = "lost"
    OVERHEATED = "overheated"
    FLAPPING = "flapping"
    BIT_ERRORS = "bit_errors"
    PACKET_ERRORS = "packet_errors"
    SLOW = "slow"
    WARMING = "warming"
    WENT_DOWN = "went_down"
    CONGESTED = "congested"
    MIXED_FIRMWARE = "mixed_firmware"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class Symptom:
    """`what` is a clause: `120 symbol errors at leaf-1 port 3 in 12 min (…)`; `counters` are those that it covers."""

    kind: HealthKind
    verdict: Verdict
    what: str
    counters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HealthWindow:
    """Two readings of one fabric, `seconds` apart, and the limits that they are judged by.

    modules  cable ends and transceivers by port as an earlier reading had them, where these readings have none
    grown    growth by port over further readings in between; none: only these two are compared
    """

    before: Telemetry
    after: Telemetry
    seconds: float
    limits: FabricLimits
    modules: Mapping[PortId, Transceiver] = field(default_factory=dict)
    grown: Mapping[PortId, Growth] = field(default_factory=dict)

    def module(self, port: PortId) -> Transceiver | None:
        """Return the cable end or transceiver in a port; None where it is unknown."""
        return self.after.transceivers.get(port) or self.modules.get(port)

    def growth(self, port: PortId) -> Growth:
        """Return the growth of a port's counters."""
        known = self.grown.get(port)
        return known if known is not None else growth(self.before.counters.get(port), self.after.counters.get(port))


Label = Callable[[PortId], str]
"""Returns the text for a port."""


@dataclass(frozen=True, slots=True)
class _Rate:
    """A counter that may grow by at most `limit` in each `period` (seconds; 0: in the whole interval)."""

    counter: str
    what: str
    limit: str
    period: float
    kind: HealthKind
    verdict: Verdict = Verdict.FAIL


_RATES = (
    _Rate("PortRcvErrors", "packets received with errors", "receive_errors_max", 1, HealthKind.PACKET_ERRORS),
    _Rate("LinkErrorRecoveryCounter", "error recoveries", "link_recoveries_max", 60, HealthKind.PACKET_ERRORS),
    _Rate("LocalLinkIntegrityErrors", "integrity errors", "integrity_errors_max", 0, HealthKind.PACKET_ERRORS),
    _Rate("ExcessiveBufferOverrunErrors", "buffer overruns", "buffer_overruns_max", 0, HealthKind.PACKET_ERRORS),
    _Rate("PortXmitDiscards", "packets discarded", "transmit_discards_max", 60, HealthKind.CONGESTED, Verdict.WARN),
)
DOWNED, _SYMBOLS = "LinkDownedCounter", "SymbolErrorCounter"
JUDGED = (DOWNED, _SYMBOLS, *(rate.counter for rate in _RATES))


def counter_symptoms(window: HealthWindow, link: Link, label: Label) -> Iterator[Symptom]:
    """Yield the symptoms that the counters of both ends show."""
    grown = {port: window.growth(port) for port in (link.a, link.b)}
    yield from _downs(window, grown, label)
    for port, added in grown.items():
        yield from _bit_errors(window, link, added.of(_SYMBOLS), label(port))
        for rate in _RATES:
            yield from _rate(window, rate, added.of(rate.counter), label(port))


def errors_added(window: HealthWindow, port: PortId) -> Iterator[tuple[str, int]]:
    """Yield the port's error counters that grew, and their growth."""
    grown = window.growth(port)
    yield from ((counter, grown.of(counter)) for counter in HIGHEST if grown.of(counter))


@dataclass(frozen=True, slots=True)
class Unproven:
    """Why counters do not prove a link healthy. `needed_s`: the interval that it takes; None if long enough."""

    doubts: frozenset[Doubt]
    needed_s: float | None


def unproven(window: HealthWindow, link: Link) -> Unproven | None:
    """Return why the counters do not prove the link; None where they do."""
    growths = (window.growth(port) for port in (link.a, link.b))
    found = {doubt for grown in growths for counter, doubt in grown.doubts.items() if counter in JUDGED}
    needed = interval_s(window.limits, link, "max")
    too_short = window.seconds < needed
    return Unproven(frozenset(found), needed if too_short else None) if found or too_short else None


def interval_s(limits: FabricLimits, link: Link, level: str) -> float:
    """Return the seconds in which the limit (`max`) or `goal` causes enough errors for a verdict."""
    errors, ber = limits.value(f"symbol_errors_{level}"), limits.value(f"symbol_ber_{level}")
    return errors / (ber * link.gbps * 1e9)


def span(seconds: float) -> str:
    """Return a duration as text: `45 s`, `12 min`, `2.1 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _downs(window: HealthWindow, grown: dict[PortId, Growth], label: Label) -> Iterator[Symptom]:
    """Yield symptoms of links that went down: both ends count that; if one end does, the other was restarted."""
    limit = window.limits.value("link_downs_max")
    downs = {port: added.of(DOWNED) for port, added in grown.items()}
    over = {port: count for port, count in downs.items() if count > limit}
    if len(over) == 2:
        text = f"went down {max(over.values())} times in {span(window.seconds)}, counted at both ends"
        yield Symptom(HealthKind.FLAPPING, Verdict.FAIL, text, frozenset({DOWNED}))
    for port, count in over.items():
        if len(over) == 1:
            text = f"went down {count} times as {label(port)} counted, and its far end did not"
            yield Symptom(HealthKind.WENT_DOWN, Verdict.WARN, text, frozenset({DOWNED}))


def _bit_errors(window: HealthWindow, link: Link, errors: int, port: str) -> Iterator[Symptom]:
    """Yield bit errors of the receiving end, judged over the limit's interval even if the readings are closer."""
    for level, verdict in (("max", Verdict.FAIL), ("goal", Verdict.WARN)):
        seconds = max(window.seconds, interval_s(window.limits, link, level))
        ber = window.limits.value(f"symbol_ber_{level}")
        if errors > ber * link.gbps * 1e9 * seconds:
            seen = errors / (link.gbps * 1e9 * window.seconds)
            text = f"{errors} symbol errors at {port} in {span(window.seconds)} ({seen:.1e} a bit, at most {ber:g})"
            yield Symptom(HealthKind.BIT_ERRORS, verdict, text, frozenset({_SYMBOLS}))
            return


def _rate(window: HealthWindow, rate: _Rate, count: int, port: str) -> Iterator[Symptom]:
    limit = window.limits[rate.limit]
    periods = max(1.0, window.seconds / rate.period) if rate.period else 1.0
    if count > limit.value * periods:
        text = f"{count} {rate.what} at {port} in {span(window.seconds)} (at most {limit})"
        yield Symptom(rate.kind, rate.verdict, text, frozenset({rate.counter}))


def sensor_symptoms(window: HealthWindow, link: Link, label: Label) -> Iterator[Symptom]:
    """Yield the symptoms that sensors of both ends report."""
    for port in (link.a, link.b):
        yield from _effective(window, port, label(port))
        yield from _heat(window, port, label(port))


def _effective(window: HealthWindow, port: PortId, name: str) -> Iterator[Symptom]:
    rates, limit = window.after.error_rates.get(port), window.limits["effective_ber_max"]
    if rates is not None and rates.effective is not None and rates.effective > limit.value:
        text = f"an effective BER of {rates.effective:.1e} at {name} (at most {limit.value:g})"
        yield Symptom(HealthKind.BIT_ERRORS, Verdict.FAIL, text)


def _heat(window: HealthWindow, port: PortId, name: str) -> Iterator[Symptom]:
    then, now = (temperature(reading, port) for reading in (window.before, window.after))
    yield from _judge(window, then, now, f"the transceiver in {name}")


def is_hot(window: HealthWindow, port: PortId) -> bool:
    """Return whether the transceiver in a port is too hot, or became hotter than its limit allows."""
    return any(_heat(window, port, ""))


def hot_devices(window: HealthWindow, label: Callable[[Guid], str]) -> Iterator[tuple[Guid, Symptom]]:
    """Yield the symptoms of switches and adapters from their own temperature sensors."""
    for guid, now in window.after.temperatures.items():
        for symptom in _judge(window, window.before.temperatures.get(guid), now, label(guid)):
            yield guid, symptom


def _judge(window: HealthWindow, then: float | None, now: float | None, what: str) -> Iterator[Symptom]:
    if now is None:
        return
    highest, rise = window.limits["temperature_max"], window.limits["temperature_rise_max"]
    if now > highest.value:
        yield Symptom(HealthKind.OVERHEATED, Verdict.FAIL, f"{what} has {now:g} °C (at most {highest})")
    if then is not None and now - then > rise.value:
        text = f"{what} went from {then:g} to {now:g} °C (at most {rise} more)"
        yield Symptom(HealthKind.WARMING, Verdict.FAIL, text)


def temperature(reading: Telemetry, port: PortId) -> float | None:
    """Return the temperature of the transceiver in a port, in °C; None where it was not read."""
    found = reading.transceivers.get(port)
    return None if found is None else found.temperature_c
