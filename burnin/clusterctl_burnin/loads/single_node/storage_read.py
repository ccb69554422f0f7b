"""storage_read: the node reads from the site's object store or network file system as fast as the site asks for.

No shipped suite has it: a site names its storage (`storage` of site.yml) and lists the load in a suite of its own. All
nodes of a burn-in read at the same time, as the nodes of a job do: the rate holds with all of them. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl.formats.host.storage_read import parse_storage_read
from clusterctl_burnin.check import Area, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

_NAME = "storage_read"
_MARGIN_S = 60.0
"""For the start and end of the readers; one may wait 20 s for a silent server (node/programs/storage_read.py)."""
_UNIT = "Gb/s"
_READ = Probe(_NAME, ("storage-read",))
_COMPARE = "compare the node's Ethernet link, MTU and mount options with the others'"
RATE = Metric("storage_read_gbps", _UNIT, Bad.LOW, 0.3, 0.0, _COMPARE)


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    how = limits.methods.storage_read
    length = how.seconds if seconds is None else seconds
    return (Probe(_NAME, ("storage-read", str(length), str(how.readers)), timeout=length + _MARGIN_S),)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    del expected
    found = parse_storage_read(readings.text(_READ))
    if not found.source:
        yield not_applicable(_NAME, "the site names no storage (storage in site.yml)")
        return
    if found.trouble or not found.readers:
        remedy = "see that the node reaches the storage and may read it, then run the burn-in again"
        raise UnmeasuredError(f"{found.source} could not be read: {found.trouble or 'no reader ran'}", remedy=remedy)
    measured, least = Quantity(found.gbps, _UNIT), at_least(found.least_gbps, _UNIT)
    if found.gbps >= found.least_gbps:
        cause = f"{len(found.readers)} readers read from {found.source} fast enough"
        yield passed(_NAME, cause, measured=measured, expected=least)
        return
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.LOAD_SLOW,
        cause=f"the node reads too slowly from {found.source}",
        measured=measured,
        expected=least,
        remedy=f"{_COMPARE}; if all nodes are slow, look at the storage and its network, then run the burn-in again",
        deterministic=False,
    )


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    found = parse_storage_read(readings.text(_READ))
    if found.source and not found.trouble and found.gbps:
        yield Sample(node, RATE, found.gbps, population)


LOAD = NodeLoad(_NAME, _probes, _judge, (RATE,), _samples, needs=frozenset(), about=frozenset({Area.NETWORK}))
