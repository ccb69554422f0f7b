"""clock_sync: the node's clock follows a time source that answers, within a limit.

By chrony: leap status, stratum, offset and the sources that answered one of the last eight polls. Where chrony is not
installed, by the kernel's flag, which systemd-timesyncd, ntpd or another service sets; the offset is then not known and
clock_offset alone bounds it. A node without any configured source is a warning: its clock drifts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.formats.host.clock import NOT_SYNCHRONISED, OWN_CLOCK, ClockSync, TimeSource, Tracking, parse_clock_sync
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

CLOCK_SYNC_OFFSET_MAX = LimitKey(
    "clock_sync_offset_max",
    "s",
    default=0.1,
    source="own choice; the offset that chronyd has still to correct plus its own bound of error",
)
CLOCK_STRATUM_MAX = LimitKey(
    "clock_stratum_max", "hops", default=15, source="RFC 5905, section 7.3: 16 is unsynchronised, above is reserved"
)
CLOCK_SOURCES_MIN = LimitKey(
    "clock_sources_min",
    "sources",
    default=1,
    source="own choice; with three and more, a wrong one is outvoted (RFC 5905)",
)
SYNC = Probe("clock_sync", ("clock-sync",), timeout=40.0)
_NAME = "clock_sync"
_SERVERS = "see that UDP port 123 of the time servers can be reached from the node (chronyc sources); role time_sync"
_SET_UP = "name time servers for the node and apply the role time_sync (time_sync_servers)"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    clock = parse_clock_sync(readings.text(SYNC))
    if clock.tracking is not None and clock.sources is not None:
        yield from _by_chrony(clock.tracking, clock.sources, expected.limits)
    else:
        yield _by_kernel(clock)


def _by_chrony(tracking: Tracking, sources: Sequence[TimeSource], limits: Limits) -> Iterator[Finding]:
    if not sources:
        yield _bad("chrony has no time source: the clock drifts", "no source", _SET_UP, verdict=Verdict.WARN)
        return
    answering = sum(source.reach > 0 for source in sources)
    of = f"{answering} of {len(sources)} sources answer, {tracking.leap}, stratum {tracking.stratum}"
    least = limits[CLOCK_SOURCES_MIN]
    offset = limits[CLOCK_SYNC_OFFSET_MAX]
    if answering < least.value:
        cause = f"{answering} of the node's {len(sources)} time sources answer"
        yield _bad(cause, least.quantity(answering), _SERVERS, allowed=least.at_least)
    elif tracking.leap == NOT_SYNCHRONISED or tracking.reference == OWN_CLOCK:
        yield _bad(f"the clock follows no time source{_why(sources)}", of, _SERVERS)
    elif not 0 < tracking.stratum <= limits[CLOCK_STRATUM_MAX].value:
        stratum = limits[CLOCK_STRATUM_MAX]
        cause = "the time source is too far from a reference clock"
        yield _bad(cause, stratum.quantity(tracking.stratum), _SERVERS, allowed=stratum.at_most)
    elif tracking.offset + tracking.error > offset.value:
        cause = "the clock may be further from the true time than the limit"
        remedy = "name time servers that are nearer to the node, or wait until chronyd has corrected the clock"
        yield _bad(cause, offset.quantity(tracking.offset + tracking.error), remedy, allowed=offset.at_most)
    else:
        yield passed(_NAME, of, measured=offset.quantity(tracking.offset + tracking.error), expected=offset.at_most)


def _why(sources: Sequence[TimeSource]) -> str:
    wrong = sum(source.state == "x" for source in sources)
    return f": {wrong} of {len(sources)} contradict the others" if wrong else ""


def _by_kernel(clock: ClockSync) -> Finding:
    if clock.synchronised is None:
        why = f": {clock.chrony_output}" if clock.chrony and clock.chrony_output else ""
        remedy = "apply the role time_sync, or install systemd-timesyncd, on the node; then run the burn-in again"
        raise UnmeasuredError(f"neither chronyd nor timedatectl answers{why}", remedy=remedy, fault="clock-sync")
    if clock.synchronised:
        return passed(
            _NAME, "the kernel reports a synchronised clock; its offset is not known", measured="synchronised"
        )
    if clock.chrony:
        cause = "chronyd does not run and no other service sets the clock"
        return _bad(cause, "not synchronised", "start chrony on the node (systemctl start chrony), role time_sync")
    if clock.service:
        return _bad("the time service has not reached a time server", "not synchronised", _SERVERS)
    return _bad("no time service sets the clock", "not synchronised", _SET_UP, verdict=Verdict.WARN)


def _bad(
    cause: str,
    measured: Quantity | str,
    remedy: str,
    *,
    allowed: Bound | str = "synchronised",
    verdict: Verdict = Verdict.FAIL,
) -> Finding:
    return Finding(
        check=_NAME,
        verdict=verdict,
        code=Code.CLOCK_UNSYNCHRONISED,
        cause=cause,
        measured=measured,
        expected=allowed,
        remedy=remedy,
        deterministic=False,
    )


CHECK = Check(
    _NAME,
    (SYNC,),
    _judge,
    area=Area.NODE,
    limits=(CLOCK_SYNC_OFFSET_MAX, CLOCK_STRATUM_MAX, CLOCK_SOURCES_MIN),
    causes=(Cause("identity"),),
)
