"""hca_errors: no InfiniBand port gathers errors, and none goes down and up.

Counters are judged by what is added to them while the node is watched, never by what stands in them: they also hold the
cabling of weeks ago. How often the link went down is judged per 12 hours of the time that the node is up as well:
a port that flaps each hour is quiet while the check reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.formats.infiniband.adapters import Adapter
from clusterctl.formats.infiniband.port_counters import (
    CounterDocument,
    CounterSample,
    PortCounters,
    parse_port_counters,
)
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Check, Expected, Watch, inconclusive
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError
from clusterctl_burnin.probes.ibstat import IBSTAT, compute_adapters, serial_of
from clusterctl_burnin.probes.nvidia_smi import missing

HCA_LINK_DOWNS_MAX = LimitKey(
    "hca_link_downs_max",
    "per 12 hours",
    default=2,
    source="bring-up and a moved cable take a link down once or twice; three times in 12 hours is a flapping port",
)
HCA_LINK_RECOVERIES_MAX = LimitKey(
    "hca_link_recoveries_max",
    "per minute",
    default=5,
    source="a common rule of fleet health checks; a port above it is called degraded",
)
HCA_RECEIVE_ERRORS_MAX = LimitKey(
    "hca_receive_errors_max",
    "per second",
    default=10,
    source="a common rule of fleet health checks; a port above it is called degraded",
)
HCA_DISCARDS_MAX = LimitKey(
    "hca_xmit_discards_max",
    "per second",
    default=100,
    source="a common rule of fleet health checks; a port above it is called degraded",
)
HCA_LOCAL_ERRORS_MAX = LimitKey(
    "hca_local_errors_max",
    "per minute",
    default=0,
    source="a common rule of fleet health checks, for which one local link integrity or buffer overrun error is fatal",
)
HCA_SYMBOL_ERRORS_MAX = LimitKey(
    "hca_symbol_errors_max",
    "per hour",
    default=120,
    source="common rule, from the specification's bit error rate of 1e-12; a healthy NDR link with FEC has nearly none",
)

WATCHED_S = "5"
COUNTERS = Probe("port_counters", ("port-counters", WATCHED_S), timeout=60.0, waits=True)
COUNTERS_ONCE = Probe("port_counters_once", ("port-counters", "once"), timeout=30.0)
_NAME = "hca_errors"
_DOWNED = "LinkDownedCounter"
_DOWN_PERIOD_S = 12 * 3600
_CLEAN = (
    "clean and reseat the cable or transceiver at both ends and run the burn-in again; "
    "if that does not help, replace the cable, then the adapter"
)
_FLAPS = (
    "reseat the cable or transceiver at both ends and read the switch port's log; "
    "if errors come back, replace the cable, then the adapter"
)
_PRIVILEGE = (
    "install infiniband-diags and let the probes run as root: perfquery asks the adapter by management datagrams"
)
_CLEAR = "clear the counters (perfquery -R on the node), then run the burn-in again"


@dataclass(frozen=True, slots=True)
class _Rate:
    """A counter, the limit of its growth, and how many seconds the limit's unit has."""

    counter: str
    what: str
    limit: LimitKey
    seconds: float


_RATES = (
    _Rate("SymbolErrorCounter", "symbol errors", HCA_SYMBOL_ERRORS_MAX, 3600.0),
    _Rate("PortRcvErrors", "packets received with errors", HCA_RECEIVE_ERRORS_MAX, 1.0),
    _Rate("LinkErrorRecoveryCounter", "link error recoveries", HCA_LINK_RECOVERIES_MAX, 60.0),
    _Rate("PortXmitDiscards", "packets discarded before they were sent", HCA_DISCARDS_MAX, 1.0),
    _Rate("LocalLinkIntegrityErrors", "local link integrity errors", HCA_LOCAL_ERRORS_MAX, 60.0),
    _Rate("ExcessiveBufferOverrunErrors", "buffer overruns", HCA_LOCAL_ERRORS_MAX, 60.0),
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    return _of_ports(readings, parse_port_counters(_printed(readings, COUNTERS)), expected)


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge the two readings as those of one measurement, as long as the load."""
    first, last = (_printed(readings, COUNTERS_ONCE) for readings in (before, after))
    up, _, added = last.partition("\n")
    text = "\n".join((up, first.partition("\n")[2])) + added
    return _of_ports(after, parse_port_counters(text), expected, _active(before, expected))


def _active(readings: Readings, expected: Expected) -> frozenset[str]:
    """Return the adapters with an active port; none where that was not read."""
    try:
        return frozenset(one.name for one in compute_adapters(readings, expected.sku) if one.ports[0].up)
    except (UnmeasuredError, ParseError):
        return frozenset()


def _printed(readings: Readings, probe: Probe) -> str:
    result = readings.result(probe)
    if result.rc != 0:
        raise UnmeasuredError(f"the port counters cannot be read: {result.error_output}", remedy=_PRIVILEGE)
    return result.stdout


def _of_ports(
    readings: Readings, document: CounterDocument, expected: Expected, were_up: frozenset[str] = frozenset()
) -> Iterator[Finding]:
    """Yield what is wrong with each port. `were_up`: adapters with a port that was active before the load."""
    adapters = compute_adapters(readings, expected.sku)
    bad: list[Finding] = []
    for adapter in adapters:
        serial = serial_of(adapter, expected)
        try:
            found = _found(adapter, document, expected.limits, lost=adapter.name in were_up and not adapter.ports[0].up)
        except UnmeasuredError as error:
            bad.append(inconclusive(_NAME, error, adapter.name, serial))
        else:
            bad += [_finding(adapter, found, serial)] if found else []
    yield from bad
    absent = tuple(missing(_NAME, len(adapters), expected.sku.hca_count, "adapters"))
    yield from absent
    if not bad and not absent:
        yield passed(_NAME, f"no port gathered errors within {WATCHED_S} s")


Found = tuple[Code, str, Quantity | str, Bound | str, str]
"""Code, cause, measured, expected, remedy."""


def _finding(adapter: Adapter, found: Found, serial: str) -> Finding:
    code, cause, measured, allowed, remedy = found
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=code,
        subject=adapter.name,
        cause=cause,
        measured=measured,
        expected=allowed,
        remedy=remedy,
        serial=serial,
    )


def _found(adapter: Adapter, document: CounterDocument, limits: Limits, *, lost: bool) -> Found | None:
    """Return what is wrong with the port. Raises `UnmeasuredError` where a counter proves nothing, unless others do.

    `lost`: the port was active before.
    """
    if lost:
        cause = f"the link was lost, and the port is {adapter.ports[0].state} ({adapter.ports[0].physical}) since then"
        return Code.HCA_LINK_DOWNS, cause, adapter.ports[0].state, "Active", _FLAPS
    first, last = _samples(document.ports.get(adapter.name), adapter)
    gained = _gained(first, last)
    found = _flaps(gained, last, document.up, limits) or _errors(gained, last.at - first.at, limits)
    if found is None:
        _require_counted(first, last)
    return found


def _samples(port: PortCounters | None, adapter: Adapter) -> tuple[CounterSample, CounterSample]:
    """Return the port's two readings. Raises `UnmeasuredError` where there are not two of the same counters."""
    if not adapter.ports[0].up:
        raise UnmeasuredError("the port is not active, so its counters prove nothing", remedy="bring the link up first")
    if port is None or port.first is None or port.last is None:
        reason = port.error_output if port else "the node did not ask the adapter"
        raise UnmeasuredError(f"the port counters cannot be read: {reason}", remedy=_PRIVILEGE)
    if port.first.counters.keys() != port.last.counters.keys():
        raise UnmeasuredError("the port does not show the same counters twice", remedy="run the burn-in again")
    return port.first, port.last


def _gained(first: CounterSample, last: CounterSample) -> Mapping[str, int]:
    """Return what each counter gained at least: one that fell was cleared, and has counted since then."""
    return {
        counter: count - first.counters[counter] if count >= first.counters[counter] else count
        for counter, count in last.counters.items()
    }


def _require_counted(first: CounterSample, last: CounterSample) -> None:
    """Raise `UnmeasuredError` where a counter was cleared, or stopped at its maximum: it may have gained more."""
    for counter, count in last.counters.items():
        if count < first.counters[counter]:
            raise UnmeasuredError(
                "something cleared the counters during the measurement", remedy="run the burn-in again"
            )
        if last.stopped(counter):
            raise UnmeasuredError(f"{counter} has reached its highest value and counts no further", remedy=_CLEAR)


def _flaps(gained: Mapping[str, int], last: CounterSample, up: float, limits: Limits) -> Found | None:
    limit = limits[HCA_LINK_DOWNS_MAX]
    total, now = last.counters[_DOWNED], gained[_DOWNED]
    allowed = limit.value * max(1.0, up / _DOWN_PERIOD_S)
    if not now and total <= allowed:
        return None
    times = f"{total} times in the {_span(up)} since the node's boot"
    cause = f"the link goes down and up: {times}" + (f", {now} of them during the measurement" if now else "")
    return Code.HCA_LINK_DOWNS, cause, Quantity(total, "times"), limit.at_most, _FLAPS


def _errors(gained: Mapping[str, int], seconds: float, limits: Limits) -> Found | None:
    counted, allowed = [], []
    for rate in _RATES:
        count, limit = gained.get(rate.counter, 0), limits[rate.limit]
        if exceeds(count, seconds, limit.value / rate.seconds):
            counted.append(f"{count} {rate.what} in {seconds:.0f} s")
            allowed.append(f"at most {limit} {rate.what} {limit.unit}")
    if not counted:
        return None
    cause = "the port gathers errors: the signal is bad"
    return Code.HCA_ERRORS, cause, ", ".join(counted), ", ".join(allowed), _CLEAN


def _span(seconds: float) -> str:
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"


CHECK = Check(
    _NAME,
    (IBSTAT, COUNTERS),
    _judge,
    area=Area.INFINIBAND,
    limits=(
        HCA_DISCARDS_MAX,
        HCA_LINK_DOWNS_MAX,
        HCA_LOCAL_ERRORS_MAX,
        HCA_LINK_RECOVERIES_MAX,
        HCA_RECEIVE_ERRORS_MAX,
        HCA_SYMBOL_ERRORS_MAX,
    ),
    watch=Watch((IBSTAT, COUNTERS_ONCE), _judge_load),
)
