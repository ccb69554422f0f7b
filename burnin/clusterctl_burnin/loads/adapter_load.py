"""The adapters' part of `all_at_once`: each InfiniBand adapter writes to itself while everything else works.

No rate is judged: the pairs do that. An adapter whose port is not active is hca_link's finding, and is not loaded.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.infiniband.adapter_load import FlowEnd, parse_adapter_load
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

NAME = "adapter_load"
_MARGIN_S = 120.0
"""For ibstat and the start and end of the flows (node/programs/adapter_load.py)."""
_TIMED_OUT, _NOT_FOUND = 124, 127
_INSTALL = "install perftest and infiniband-diags on the node (role ib_tools), then run the burn-in again"
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
        yield not_applicable(NAME, "no adapter has an active InfiniBand port")
        return
    bad = [
        _failed(adapter.name, end)
        for adapter in document.adapters
        if (end := next((end for end in (adapter.client, adapter.server) if end.code != 0), None)) is not None
    ]
    yield from bad or (passed(NAME, f"{len(document.adapters)} adapters wrote to themselves at the same time"),)


def _failed(name: str, end: FlowEnd) -> Finding:
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


LOAD = NodeLoad(NAME, _probes, _judge)
