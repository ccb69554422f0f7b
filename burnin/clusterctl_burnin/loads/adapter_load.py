"""The adapters' part of `all_at_once`: each InfiniBand adapter writes to itself while everything else works.

No rate is held against a floor: the pairs do that. An adapter that is far slower than the fastest of its node fails:
all share processors and memory alike. One whose port is not active is hca_link's finding, and is not loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl.formats.infiniband.adapter_load import AdapterFlowEnd, LoadedAdapter, parse_adapter_load
from clusterctl.formats.infiniband.perftest import parse_bandwidth
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.limit import Limit, LimitKey, Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

NAME = "adapter_load"
ADAPTER_BELOW_BEST_MAX = LimitKey(
    "adapter_below_best_max",
    "%",
    default=75,
    source="own choice; an adapter that shares its socket with more work may be slower by half",
)
_MARGIN_S = 120.0
"""For ibstat and the start and end of the flows (node/programs/adapter_load.py)."""
_TIMED_OUT, _NOT_FOUND = 124, 127
_INSTALL = "install perftest and infiniband-diags on the node (role ib_tools), then run the burn-in again"
_NO_PORT = "see hca_link: cables, transceivers and the subnet manager; then run the burn-in again"
_REMEDY = "check the adapter's PCIe link, temperature and power lead; reseat it, then replace it"


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    length = limits.methods.stress_ng.seconds if seconds is None else seconds
    argv = ("adapter-load", str(length), str(limits.methods.ib_write_bw.message_bytes))
    return (Probe(NAME, argv, timeout=length + _MARGIN_S),)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.sku.hca_count:
        yield not_applicable(NAME, "the SKU has no InfiniBand adapter")
        return
    document = parse_adapter_load(readings.text(Probe(NAME, ("adapter-load",))))
    if document.trouble:
        raise UnmeasuredError(f"the adapters could not be listed: {document.trouble}", remedy=_INSTALL)
    ends = [end for adapter in document.adapters for end in (adapter.server, adapter.client)]
    if any(end.code == _NOT_FOUND for end in ends):
        raise UnmeasuredError("ib_write_bw is not installed on the node", remedy=_INSTALL)
    if not document.adapters:
        if expected.sku.hca_link_layer == "InfiniBand":
            raise UnmeasuredError("no adapter has an active InfiniBand port", remedy=_NO_PORT)
        yield not_applicable(NAME, "the SKU's adapters are in Ethernet mode, and none has an InfiniBand port")
        return
    bad = [*_ended_badly(document.adapters), *_slow(document.adapters, expected.limits[ADAPTER_BELOW_BEST_MAX])]
    yield from bad or (passed(NAME, f"{len(document.adapters)} adapters wrote to themselves at the same time"),)


def _ended_badly(adapters: Iterable[LoadedAdapter]) -> Iterator[Finding]:
    """Yield one finding for each adapter of which an end failed: that of the client, if both did."""
    for adapter in adapters:
        failed = [end for end in (adapter.client, adapter.server) if end.code != 0]
        if failed:
            yield _failed(adapter.name, failed[0])


def _slow(adapters: Sequence[LoadedAdapter], share: Limit) -> Iterator[Finding]:
    """Yield the adapters that are far slower than the fastest one. Raises `ParseError` for output without a rate."""
    ended = [adapter for adapter in adapters if adapter.client.code == adapter.server.code == 0]
    rates = {adapter.name: parse_bandwidth(adapter.client.output)[-1].average for adapter in ended}
    best = max(rates.values(), default=0.0)
    least = best * (1 - share.value / 100)
    for name, rate in rates.items():
        if rate < least:
            yield Finding(
                check=NAME,
                verdict=Verdict.FAIL,
                code=Code.LOAD_SLOW,
                subject=name,
                cause=f"the adapter is more than {share} % slower than the fastest of its node ({best:.4g} Gb/s)",
                measured=Quantity(rate, "Gb/s"),
                expected=at_least(least, "Gb/s"),
                remedy=f"{name}: {_REMEDY}",
                deterministic=False,
            )


def _failed(name: str, end: AdapterFlowEnd) -> Finding:
    hung = end.code == _TIMED_OUT
    return Finding(
        check=NAME,
        verdict=Verdict.FAIL,
        code=Code.LOAD_HUNG if hung else Code.LOAD_FAILED,
        subject=name,
        cause="ib_write_bw of the adapter to itself " + ("got no further" if hung else f"failed: {end.error_output}"),
        remedy=f"{name}: {_REMEDY}",
        deterministic=False,
    )


LOAD = NodeLoad(NAME, _probes, _judge, limits=(ADAPTER_BELOW_BEST_MAX,))
