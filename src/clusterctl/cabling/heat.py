"""What devices and ports tell of themselves: error rates after correction, temperatures of chips and transceivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clusterctl.cabling.symptoms import HealthKind, Label, Symptom, Window
from clusterctl.fleet.fabric import Link, PortId
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid
from clusterctl.fleet.telemetry import Telemetry


def told(window: Window, link: Link, label: Label) -> Iterator[Symptom]:
    """From both ends; nothing where they do not tell."""
    for port in (link.a, link.b):
        yield from _effective(window, port, label(port))
        yield from _heat(window, port, label(port))


def _effective(window: Window, port: PortId, name: str) -> Iterator[Symptom]:
    rates, limit = window.after.error_rates.get(port), window.limits["effective_ber_max"]
    if rates is not None and rates.effective is not None and rates.effective > limit.value:
        text = f"an effective BER of {rates.effective:.1e} at {name} (at most {limit.value:g})"
        yield Symptom(HealthKind.BIT_ERRORS, Verdict.FAIL, text)


def _heat(window: Window, port: PortId, name: str) -> Iterator[Symptom]:
    then, now = (_temperature(reading, port) for reading in (window.before, window.after))
    yield from _judge(window, then, now, f"the transceiver in {name}")


def hot_devices(window: Window, label: Callable[[Guid], str]) -> Iterator[tuple[Guid, Symptom]]:
    """Of switches and adapters by their own sensors."""
    for guid, now in window.after.temperatures.items():
        for symptom in _judge(window, window.before.temperatures.get(guid), now, label(guid)):
            yield guid, symptom


def _judge(window: Window, then: float | None, now: float | None, what: str) -> Iterator[Symptom]:
    if now is None:
        return
    highest, rise = window.limits["temperature_max"], window.limits["temperature_rise_max"]
    if now > highest.value:
        yield Symptom(HealthKind.OVERHEATED, Verdict.FAIL, f"{what} has {now:g} °C (at most {highest})")
    if then is not None and now - then > rise.value:
        text = f"{what} went from {then:g} to {now:g} °C (at most {rise} more)"
        yield Symptom(HealthKind.WARMING, Verdict.FAIL, text)


def _temperature(reading: Telemetry, port: PortId) -> float | None:
    found = reading.transceivers.get(port)
    return None if found is None else found.temperature_c
