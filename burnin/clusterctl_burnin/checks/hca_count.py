"""hca_count: as many InfiniBand adapters as the SKU says."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.ibstat import IBSTAT, infiniband

_NAME = "hca_count"
_RESEAT = "power the machine off and on; if it is still absent, reseat the adapter, then replace it"
_SURPLUS = "correct the SKU, or set the surplus adapter to Ethernet"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    adapters, wanted = infiniband(readings), expected.sku.hca_count
    count, names = str(len(adapters)), ", ".join(a.name for a in adapters) or "none"
    if len(adapters) == wanted:
        yield passed(
            _NAME,
            "all InfiniBand adapters are there",
            measured=Quantity(len(adapters), "adapters"),
            expected=exactly(wanted, "adapters"),
        )
    else:
        remedy = _RESEAT if len(adapters) < wanted else _SURPLUS
        cause = f"{count} of {wanted} InfiniBand adapters answer: {names}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.HCA_COUNT,
            cause=cause,
            measured=Quantity(len(adapters), "adapters"),
            expected=exactly(wanted, "adapters"),
            remedy=remedy,
        )


CHECK = Check(_NAME, (IBSTAT,), _judge, area=Area.INFINIBAND)
