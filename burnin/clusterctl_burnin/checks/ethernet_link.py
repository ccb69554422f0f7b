"""ethernet_link: each Ethernet port with a link runs at its speed in full duplex, in its bond, and counts no errors.

Ports without a link are host_network's: the site lists those that must have one. Counters are judged by what is added
between two readings. A slow or half-duplex port is what a bad cable or a wrong switch setting negotiates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.formats.host.ethernet_links import EthernetPort, EthernetReading, parse_ethernet_links
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, inconclusive, known
from clusterctl_burnin.limits.limit import Limit, LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

SPEED_MIN = LimitKey(
    "ethernet_speed_min", "Mb/s", default=1000, source="own choice; a site with faster switches sets their speed"
)
CRC_MAX = LimitKey(
    "ethernet_crc_errors_max", "per minute", default=0, source="own choice; a sound link has none for hours"
)
DROPS_MAX = LimitKey(
    "ethernet_drops_max", "per second", default=10, source="own choice; packets that the adapter had no room for"
)
WATCHED_S = "5"
LINKS = Probe("ethernet_links", ("ethernet-links", WATCHED_S), timeout=20.0, waits=True)
LINKS_ONCE = Probe("ethernet_links_once", ("ethernet-links", "once"))
_NAME = "ethernet_link"
_CABLE = "reseat or replace the cable and the transceivers, and compare the settings of the switch port"
_ROOM = (
    "give the port more receive buffers (ethtool -G), spread its interrupts over processors of its own socket, and "
    "compare the pause frames of the switch port"
)
_DROPS = ("rx_missed_errors", "rx_fifo_errors")
_Found = tuple[Code, str, Quantity | str, Bound | str]
"""Code, cause, measured, expected."""


@dataclass(frozen=True, slots=True)
class _Added:
    """What was added to a port's counters. `dropped`: packets for which the host had no buffer."""

    found: _Found
    dropped: bool = False


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    first, last = parse_ethernet_links(readings.text(LINKS), 2)
    ports = [port for port in last.ports if port.up]
    if not ports:
        raise UnmeasuredError("no Ethernet port has a link", remedy="read ip -br link on the node")
    bad = [*_links(ports, expected.limits), *_added(first, last, expected.limits)]
    yield from bad
    if not bad:
        speeds = ", ".join(f"{port.name} {port.speed} Mb/s" for port in ports)
        yield passed(_NAME, "the Ethernet ports run at their speed, without errors", measured=speeds)


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge what was added. Drops warn: a load at full speed makes them where the port's receive buffers are few."""
    (first,), (last,) = (parse_ethernet_links(readings.text(LINKS_ONCE), 1) for readings in (before, after))
    return _added(first, last, expected.limits, drops=Verdict.WARN)


def _finding(port: EthernetPort, found: _Found) -> Finding:
    code, cause, measured, allowed = found
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=code,
        subject=port.name,
        cause=cause,
        measured=measured,
        expected=allowed,
        remedy=_CABLE,
        deterministic=False,
    )


def _slow(port: EthernetPort, speed: int, fastest: int, limit: Limit) -> Iterator[Finding]:
    """Yield that the port is slow. `fastest`: the speed of the fastest member of its bond."""
    if speed < limit.value:
        yield _finding(port, (Code.ETHERNET_SPEED, "the port is slow", limit.quantity(speed), limit.at_least))
    elif speed < fastest:
        cause = f"the port is slower than the other members of {port.bond}"
        yield _finding(port, (Code.ETHERNET_SPEED, cause, f"{speed} Mb/s", f"{fastest} Mb/s"))


def _links(ports: list[EthernetPort], limits: Limits) -> Iterator[Finding]:
    """Yield what is wrong with the links as they are now."""
    for port in ports:
        try:
            speed, duplex = known(port.speed, f"the speed of {port.name}"), known(port.duplex, "its duplex")
        except UnmeasuredError as error:
            yield inconclusive(_NAME, error, port.name)
            continue
        if duplex != "full":
            yield _finding(port, (Code.ETHERNET_DUPLEX, "the port negotiated half duplex", duplex, "full"))
        else:
            others = [other.speed or 0 for other in ports if port.bond and other.bond == port.bond]
            yield from _slow(port, speed, max(others, default=speed), limits[SPEED_MIN])
        if port.member is False:
            cause = f"{port.bond} does not use the port"
            yield _finding(port, (Code.BOND_INCOMPLETE, cause, "down", "up"))


def _added(
    first: EthernetReading, last: EthernetReading, limits: Limits, drops: Verdict = Verdict.FAIL
) -> Iterator[Finding]:
    """Yield what was added to the counters of each port that had a link, and the ports that lost it or are gone."""
    later = {port.name: port for port in last.ports}
    for was in (port for port in first.ports if port.up):
        try:
            port = known(later.get(was.name), f"the port {was.name}, which was there before")
            found = _risen(was, port, last.at - first.at, limits)
        except UnmeasuredError as error:
            yield inconclusive(_NAME, error, was.name)
        else:
            if found is not None:
                finding = _finding(port, found.found)
                yield replace(finding, verdict=drops, remedy=_ROOM) if found.dropped else finding


def _risen(was: EthernetPort, port: EthernetPort, seconds: float, limits: Limits) -> _Added | None:
    def gained(*names: str) -> int:
        before, after = ([known(one.counters.get(name), name) for name in names] for one in (was, port))
        if any(last < first for first, last in zip(before, after, strict=True)):
            raise UnmeasuredError("the port's counters were counted from zero again", remedy="run the burn-in again")
        return sum(after) - sum(before)

    downs = known(port.downs, "how often its carrier was lost") - known(was.downs, "how often its carrier was lost")
    if downs or not port.up:
        return _Added((Code.ETHERNET_FLAPS, "the link went down", Quantity(max(1, downs), "times"), "0 times"))
    crc, drops = gained("rx_crc_errors"), gained(*_DROPS)
    limit = limits[CRC_MAX]
    if exceeds(crc, seconds, limit.value / 60):
        cause = "the port receives packets with CRC errors"
        return _Added((Code.ETHERNET_ERRORS, cause, Quantity(crc, f"packets in {seconds:.0f} s"), limit.at_most))
    limit = limits[DROPS_MAX]
    if exceeds(drops, seconds, limit.value):
        cause = "the port drops packets that it receives: the host takes them too slowly"
        measured = Quantity(drops, f"packets in {seconds:.0f} s")
        return _Added((Code.ETHERNET_ERRORS, cause, measured, limit.at_most), dropped=True)
    return None


CHECK = Check(
    _NAME,
    (LINKS,),
    _judge,
    area=Area.NETWORK,
    causes=(Cause("host_network", same_part=True),),
    limits=(SPEED_MIN, CRC_MAX, DROPS_MAX),
    watch=Watch((LINKS_ONCE,), _judge_load),
)
